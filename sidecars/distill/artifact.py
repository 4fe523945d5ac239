"""What was declared, and the only way to open it.

Nothing outside of the declared artifacts can be read, whoever asks and whatever the file system is made to look like:

- A declared path is resolved once and then opened from the root, one component at a time, without following a link.
  A component that is swapped between the resolving and the opening makes the opening fail.
- A declared file is held open from then on. What is read later is that file, whatever its name has come to mean.
- Of a declared folder the folder itself is held open, and files are opened downwards from it, again without links.
- What was opened is looked at again: a regular file, not of a kernel file system, and not a further name of a file that
  has names outside of the folder.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

from sidecars.distill.errors import QuestionError, UnreadableError

# Without O_NONBLOCK the opening of a pipe would wait for a writer.
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_OPEN_FOLDER = _OPEN | os.O_DIRECTORY
# On the way down a folder need not be listed: with O_PATH the right to go through is enough, as it is for any program.
_PASS_FOLDER = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY

# A folder with more files than this is not one artifact any more; the rest is reported as left out.
MOST_FILES = 20_000
_DEEPEST = 64

# Their content is of no use to a question, and a repository's history holds what was deleted on purpose.
_ALWAYS_IGNORED = frozenset({".git", ".hg", ".svn", ".jj"})

_KINDS = {
    stat.S_IFIFO: "a pipe: save what comes out of it into a file first",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link, and links inside a folder are not followed: declare its target as an artifact",
    stat.S_IFDIR: "a folder",
}


@dataclass(frozen=True, slots=True)
class _Root:
    declared: str
    fd: int
    is_file: bool
    real: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One file that may be read.

    Args:
        name: how it is called in questions and evidence: as declared, or the declared folder with the way down.
        size: bytes, when it was listed.
    """

    name: str
    size: int


@cache
def _kernel_devices() -> frozenset[int]:
    # Files of these are windows into the kernel and into other processes, with sizes that mean nothing.
    top = Path("/").stat().st_dev
    found = {Path(place).stat().st_dev for place in ("/proc", "/sys", "/dev") if Path(place).is_dir()}
    return frozenset(found - {top})


def _refusal(found: os.stat_result) -> str:
    if not stat.S_ISREG(found.st_mode):
        return f"is {_KINDS.get(stat.S_IFMT(found.st_mode), 'not a regular file')}"
    return "belongs to a file system of the kernel" if found.st_dev in _kernel_devices() else ""


def _open_from(fd: int, parts: Sequence[str], shown: str) -> int:
    """Open what lies at ``parts`` below ``fd``, every step without following a link. Returns a new descriptor."""
    if not parts or any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts):
        raise UnreadableError(shown, "is not a way down from a declared artifact")
    at, held = fd, -1
    try:
        for part in parts[:-1]:
            below = os.open(part, _PASS_FOLDER, dir_fd=at)
            if held >= 0:
                os.close(held)
            at = held = below
        # Looked at before it is opened, because the very opening of a device can do something.
        kind = os.stat(parts[-1], dir_fd=at, follow_symlinks=False)
        if not stat.S_ISDIR(kind.st_mode) and (why := _refusal(kind)):
            raise UnreadableError(shown, why)
        return os.open(parts[-1], _OPEN, dir_fd=at)
    except OSError as error:
        raise UnreadableError(shown, f"cannot be opened: {error.strerror}") from error
    finally:
        if held >= 0:
            os.close(held)


class Artifacts:
    """The declared files and folders, held open. A context manager.

    Attributes:
        left_out: name and reason of each file of a folder that is not offered.
    """

    def __init__(self, paths: Iterable[str | Path], *, ignore: bool = True) -> None:
        """Resolve and open what was declared.

        Args:
            paths: files and folders.
            ignore: leave out of folders what their ``.gitignore`` files say.

        Raises:
            QuestionError: nothing was declared.
            UnreadableError: one is missing, or is nothing that can be read as an artifact.
        """
        self.left_out: list[tuple[str, str]] = []
        self._ignore = ignore
        self._stack = ExitStack()
        self._files: dict[str, tuple[_Root, tuple[str, ...], int]] = {}
        # Names of files that have several, by device and inode, as they were listed.
        self._links: dict[tuple[int, int], list[tuple[_Root, tuple[str, ...]]]] = {}
        declared = list(dict.fromkeys(os.fspath(path) for path in paths))
        if not declared:
            raise QuestionError("declare at least one artifact: --artifact PATH")
        try:
            roots = [self._declare(path) for path in declared]
            for root in roots:
                self._list(root)
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # -- declaring ----------------------------------------------------------------------------------------------

    def _declare(self, path: str) -> _Root:
        try:
            real = os.path.realpath(path, strict=True)
        except (OSError, ValueError) as error:
            raise UnreadableError(path, getattr(error, "strerror", None) or str(error)) from error
        parts = Path(real).parts[1:]
        top = os.open("/", _PASS_FOLDER)
        try:
            fd = _open_from(top, parts, path) if parts else os.open("/", _OPEN_FOLDER)
        finally:
            os.close(top)
        self._stack.callback(os.close, fd)
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            if found.st_dev in _kernel_devices():
                raise UnreadableError(path, "belongs to a file system of the kernel")
            return _Root(path.rstrip("/") or "/", fd, False, real)
        if why := _refusal(found):
            raise UnreadableError(path, why)
        return _Root(path, fd, True, real)

    def _list(self, root: _Root) -> None:
        if root.is_file:
            self._files[root.declared] = (root, (), os.fstat(root.fd).st_size)
            return
        found: dict[str, tuple[tuple[str, ...], os.stat_result]] = {}
        self._walk(root, root.fd, (), [], found)
        links = Counter((each.st_dev, each.st_ino) for _, each in found.values() if each.st_nlink > 1)
        for name, (parts, entry) in found.items():
            if entry.st_nlink > 1:
                self._links.setdefault((entry.st_dev, entry.st_ino), []).append((root, parts))
            if entry.st_nlink > 1 and links[entry.st_dev, entry.st_ino] < entry.st_nlink:
                self.left_out.append((name, "has another name outside of the folder (hard link)"))
            else:
                self._files[name] = (root, parts, entry.st_size)

    def _walk(
        self,
        root: _Root,
        fd: int,
        above: tuple[str, ...],
        rules: list[tuple[int, _Ignore]],
        found: dict[str, tuple[tuple[str, ...], os.stat_result]],
    ) -> None:
        if len(above) > _DEEPEST:
            self.left_out.append(("/".join((root.declared, *above)), f"is deeper than {_DEEPEST} folders"))
            return
        names = sorted(os.listdir(fd))
        if self._ignore and ".gitignore" in names and (own := _read_ignore(fd)):
            rules = [*rules, (len(above), own)]
        for name in names:
            parts = (*above, name)
            shown = "/".join((root.declared.rstrip("/"), *parts))
            try:
                entry = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except OSError:
                continue  # gone since the listing
            folder = stat.S_ISDIR(entry.st_mode)
            if name in _ALWAYS_IGNORED or _ignored(rules, parts, folder):
                continue
            if len(found) >= MOST_FILES:
                self.left_out.append((shown, f"comes after the first {MOST_FILES} files"))
                return
            if folder:
                self._walk_into(root, fd, parts, rules, found)
            elif why := _refusal(entry):
                self.left_out.append((shown, why))
            else:
                found[shown] = (parts, entry)

    def _walk_into(
        self,
        root: _Root,
        fd: int,
        parts: tuple[str, ...],
        rules: list[tuple[int, _Ignore]],
        found: dict[str, tuple[tuple[str, ...], os.stat_result]],
    ) -> None:
        try:
            below = os.open(parts[-1], _OPEN_FOLDER, dir_fd=fd)
        except OSError as error:
            self.left_out.append(("/".join((root.declared, *parts)), f"cannot be opened: {error.strerror}"))
            return
        try:
            if os.fstat(below).st_dev not in _kernel_devices():
                self._walk(root, below, parts, rules, found)
        finally:
            os.close(below)

    # -- reading ------------------------------------------------------------------------------------------------

    def entries(self) -> list[Entry]:
        """The files that may be read, in the order declared."""
        return [Entry(name, size) for name, (_, _, size) in self._files.items()]

    def resolve(self, name: str) -> str:
        """The entry that somebody (a model, too) means by ``name``.

        Accepted are the entry's own name, its real absolute path, and an ending of it that only one entry has.

        Raises:
            UnreadableError: it is none of the declared artifacts, or several could be meant.
        """
        if name in self._files:
            return name
        plain = os.path.normpath(name) if name else name
        if ".." in Path(plain).parts:
            raise UnreadableError(name, "is outside of the declared artifacts")
        by_real = {"/".join((root.real, *parts)): key for key, (root, parts, _) in self._files.items()}
        if plain in by_real:
            return by_real[plain]
        wanted = Path(plain).parts
        if wanted and not Path(plain).is_absolute():
            same = [key for key in self._files if Path(key).parts[-len(wanted) :] == wanted]
            if len(same) == 1:
                return same[0]
            if same:
                raise UnreadableError(name, f"could be any of {len(same)} files: write the whole path")
        raise UnreadableError(name, "is outside of the declared artifacts")

    def open(self, name: str) -> int:
        """Open one entry.

        Args:
            name: one of ``entries()``.

        Returns:
            A descriptor for reading, the caller's to close.

        Raises:
            UnreadableError: it is no entry, or is not the file any more that may be read.
        """
        if name not in self._files:
            raise UnreadableError(name, "is outside of the declared artifacts")
        root, parts, _ = self._files[name]
        if root.is_file:
            return os.dup(root.fd)
        fd = _open_from(root.fd, parts, name)
        found = os.fstat(fd)
        why = _refusal(found)
        if not why and found.st_nlink > 1 and not self._all_inside(root, found):
            why = "has another name outside of the folder (hard link)"
        if why:
            os.close(fd)
            raise UnreadableError(name, why)
        return fd

    def _all_inside(self, root: _Root, found: os.stat_result) -> bool:
        """Whether every name of this file was listed below ``root`` and still means it, reached without links."""
        names = 0
        for owner, parts in self._links.get((found.st_dev, found.st_ino), ()):
            if owner is not root:
                continue
            try:
                fd = _open_from(root.fd, parts, "")
            except UnreadableError:
                continue
            try:
                each = os.fstat(fd)
            finally:
                os.close(fd)
            names += (each.st_dev, each.st_ino) == (found.st_dev, found.st_ino)
        return names >= found.st_nlink


# -- ignore rules -----------------------------------------------------------------------------------------------


class _Ignore:
    """One ``.gitignore``."""

    def __init__(self, text: str) -> None:
        from pathspec import GitIgnoreSpec

        self._spec = GitIgnoreSpec.from_lines(text.splitlines())

    def verdict(self, path: str) -> bool | None:
        return self._spec.check_file(path).include


def _read_ignore(fd: int) -> _Ignore | None:
    try:
        own = _open_from(fd, (".gitignore",), ".gitignore")
    except UnreadableError:
        return None
    try:
        return _Ignore(os.pread(own, 1 << 20, 0).decode("utf-8", "replace"))
    except ValueError:
        return None  # a rule that git itself would not understand
    finally:
        os.close(own)


def _ignored(rules: list[tuple[int, _Ignore]], parts: tuple[str, ...], folder: bool) -> bool:
    # As git does it: the nearest file that says anything about the path decides.
    for depth, each in reversed(rules):
        verdict = each.verdict("/".join(parts[depth:]) + ("/" if folder else ""))
        if verdict is not None:
            return verdict
    return False
