"""The files of a work tree: which there are, what state each is in, which are left out."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from witness.process.git import SAFE

# Larger files are compared by size, times and inode alone: a megabyte is hashed in about a millisecond.
_LARGEST_HASHED = 1 << 20
# Trees that tools fill with thousands of files that nobody wrote. They are watched at their top only.
_GENERATED = re.compile(
    r"node_modules|bower_components|jspm_packages|__pycache__|\.(venv|tox|nox|eggs|mypy_cache|ruff_cache|pytest_cache"
    r"|hypothesis|gradle|next|nuxt|svelte-kit|turbo|parcel-cache|terraform|dart_tool|pnpm-store|ipynb_checkpoints)"
)
_IN_GENERATED = re.compile(rf"(?:^|/)(?:{_GENERATED.pattern})/")
# The files by which tools mark such trees themselves (bford.info/cachedir; PEP 405).
MARKS = ("CACHEDIR.TAG", "pyvenv.cfg")
# What editors keep beside a file while it is open.
_EDITORS = re.compile(r"\..*\.sw[a-px]|4913|.*~|\.#.*|#.*#|\.nfs[0-9a-f]{10,}|\.goutputstream-\w+|.*___jb_(tmp|old)___")

Signature = int


@dataclass(frozen=True, slots=True)
class State:
    """One file at one moment.

    Args:
        signature: its inode, size, times and mode in one number (see ``signature``).
        digest: what git calls the blob of its content, empty when it is not known.
    """

    signature: Signature
    digest: bytes = b""

    def same_as(self, other: State) -> bool:
        """Whether both hold the same, as far as is known: an unknown content is the same only if nothing moved."""
        if self.mode != other.mode:
            return False
        if self.digest and other.digest:
            return self.digest == other.digest
        return self.signature == other.signature

    @property
    def mode(self) -> int:
        return self.signature & 0xFFFF

    @property
    def stamp(self) -> int:
        return self.signature >> 16


def in_generated_tree(path: str) -> bool:
    """Whether a file lies in a tree that tools fill, by the tree's name."""
    return _IN_GENERATED.search(path) is not None


def signature(status: os.stat_result) -> Signature:
    """Inode, size and times, hashed, above the sixteen bits of the mode: small, for there is one for each file."""
    number = stamp(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return number << 16 | (status.st_mode & 0xFFFF)


def stamp(inode: int, size: int, modified: int, changed: int) -> int:
    """What a signature says beside the mode, from what git's index too knows of a file (32 bits of two of them)."""
    return hash((inode & 0xFFFFFFFF, size & 0xFFFFFFFF, modified, changed)) & 0x7FFFFFFFFFFF


def look_at(path: str) -> tuple[Signature, float] | None:
    """A file's signature and the time of its last change; None when there is none, or nothing that holds content."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        return None
    return signature(status), status.st_ctime


def digest(path: str) -> bytes:
    """Git's name of a file's content (of its target's name for a link); empty when it is large or cannot be read."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            data = os.fsencode(os.readlink(path))
        elif stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST_HASHED:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                data = os.read(file, _LARGEST_HASHED + 1)
            finally:
                os.close(file)
        else:
            return b""
    except OSError:
        return b""
    if len(data) > _LARGEST_HASHED:
        return b""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest().encode()


@dataclass(frozen=True, slots=True)
class Folder:
    """One folder as it was found.

    Args:
        path: relative to the tree's root, empty for the root.
        files: the signature of each of its files.
        folders: names of the folders in it that belong to the tree.
        generated: it is the top of a tree of generated files, so nothing in it is listed.
    """

    path: str
    files: dict[str, Signature]
    folders: tuple[str, ...] = ()
    generated: bool = False


class Tree:
    """A work tree on the disk.

    Args:
        root: absolute, without links.
        left_out: absolute folders that are no part of it (our own runtime).
    """

    def __init__(self, root: str, left_out: tuple[str, ...] = ()) -> None:
        self.root = root
        self._left_out = frozenset(
            os.path.relpath(path, root) for path in left_out if path.startswith(root.rstrip("/") + "/")
        )

    def full(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def has(self, folder: str, name: str) -> bool:
        """Whether an entry belongs to the tree: git's own files, ours, and what editors keep do not."""
        if name == ".git" or _EDITORS.fullmatch(name):
            return False
        return not self._left_out or join(folder, name) not in self._left_out

    def folder(self, path: str) -> Folder | None:
        """One folder as it is now; None when it is none (any longer), or may not be read."""
        files: dict[str, Signature] = {}
        folders: list[str] = []
        if _GENERATED.fullmatch(path.rpartition("/")[2]):
            return Folder(path, files, generated=True)
        try:
            with os.scandir(self.full(path)) as entries:
                for entry in entries:
                    name = entry.name
                    if name in MARKS and path:
                        return Folder(path, {}, generated=True)
                    if not self.has(path, name):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(name)
                    elif (found := look_at(entry.path)) is not None:
                        files[name] = found[0]
        except OSError:
            # Gone while it was read, or not ours to read: what is known of it is all there is.
            return None if not files and not folders else Folder(path, files, tuple(folders))
        return Folder(path, files, tuple(folders))

    def walk(self, top: str = "", enter: Callable[[str], None] | None = None) -> Iterator[Folder]:
        """All folders from one on, each before those in it; links are not followed.

        Args:
            top: where to begin.
            enter: called with each folder before it is read.
        """
        waiting = [top]
        while waiting:
            path = waiting.pop()
            if enter is not None:
                enter(path)
            if (folder := self.folder(path)) is not None:
                yield folder
                waiting += [join(path, name) for name in folder.folders]


def join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def differing(before: Mapping[str, Signature], after: Mapping[str, Signature]) -> Iterator[str]:
    """The names whose signatures differ."""
    for name, known in before.items():
        if after.get(name) != known:
            yield name
    for name in after:
        if name not in before:
            yield name


# What git knows of a work tree: where it begins, what its index recorded, what it ignores. It changes nothing.

_PATIENCE = 5.0
# An argument list holds some hundred kilobytes; what exceeds it is not worth the question.
_MOST_ASKED = 1000
_DEBUG = re.compile(
    rb"\s+ctime: (\d+):(\d+)\n\s+mtime: (\d+):(\d+)\n\s+dev: \d+\s+ino: (\d+)\n\s+uid: \d+\s+gid: \d+\n"
    rb"\s+size: (\d+)\s+flags: \w+\n"
)


def top_level(folder: str) -> str:
    """The root of the work tree that a folder lies in; the folder itself, without links, where there is none."""
    real = at = os.path.realpath(folder)
    while not os.path.lexists(f"{at}/.git"):
        if (above := os.path.dirname(at)) == at:
            return real
        at = above
    return at


def staged(root: str, paths: Sequence[str]) -> dict[str, tuple[int, bytes]]:
    """What the index says of files.

    Args:
        root: the work tree.
        paths: relative to it.

    Returns:
        For each that it knows: the stamp (see ``tree_files``) of the file as it was indexed, and its blob's name.
    """
    if not paths or len(paths) > _MOST_ASKED:
        return {}
    output = _git(root, "ls-files", "--stage", "--debug", "-z", "--", *paths, literal=True)
    found: dict[str, tuple[int, bytes]] = {}
    at = 0
    while (end := output.find(b"\0", at)) >= 0:
        head, _, name = output[at:end].partition(b"\t")
        facts = _DEBUG.match(output, end + 1)
        fields = head.split()
        if facts is None or len(fields) != 3:
            break  # a git that prints it otherwise: nothing is known then
        ctime, ctime_ns, mtime, mtime_ns, inode, size = (int(each) for each in facts.groups())
        if fields[2] == b"0":
            of_file = stamp(inode, size, mtime * 10**9 + mtime_ns, ctime * 10**9 + ctime_ns)
            found[os.fsdecode(name)] = (of_file, fields[1])
        at = facts.end()
    return found


def unsettled(root: str) -> list[str] | None:
    """Files that differ from the index or are not in it, relative to the root; None where there is no repository."""
    output = _git(root, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
    if not output and not _git(root, "rev-parse", "--git-dir"):
        return None
    return [os.fsdecode(each[3:]) for each in output.split(b"\0") if each[3:]]


def committed_at(root: str, path: str) -> float:
    """When the last commit of a file was made, wall clock; 0 where there is none.

    Args:
        root: the work tree.
        path: relative to it.
    """
    when = _git(root, "log", "-1", "--format=%ct", "--", path, literal=True).strip()
    return float(when) if when.isdigit() else 0.0


def ignored(root: str, paths: Iterable[str]) -> frozenset[str]:
    """Those of the paths that git ignores and does not track."""
    asked = b"\0".join(os.fsencode(path) for path in paths)
    if not asked:
        return frozenset()
    # With the index, git reads all of it whatever is asked; hardly ever does a name match.
    output = _git(root, "check-ignore", "--no-index", "-z", "--stdin", data=asked + b"\0")
    matching = [os.fsdecode(each) for each in output.split(b"\0") if each]
    return frozenset(matching) - staged(root, matching).keys()


def _git(folder: str, *words: str, data: bytes = b"", literal: bool = False) -> bytes:
    """What git prints, empty when it fails, in whatever way."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_CEILING_DIRECTORIES": ""}
    if literal:
        environment["GIT_LITERAL_PATHSPECS"] = "1"
    try:
        done = subprocess.run(
            ["git", "-C", folder, *SAFE, *words],
            input=data,
            capture_output=True,
            env=environment,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return b""
    return done.stdout if done.returncode == 0 else b""
