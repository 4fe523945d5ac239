"""What git knows of a work tree: where it begins, what its index recorded, what it ignores. It changes nothing."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence

from witness.events.tree_files import stamp

_PATIENCE = 5.0
# An argument list holds some hundred kilobytes; what exceeds it is not worth the question.
_MOST_ASKED = 1000
# A cloned repository's own configuration must run nothing.
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false")
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
            ["git", "-C", folder, *_SAFE, *words],
            input=data,
            capture_output=True,
            env=environment,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return b""
    return done.stdout if done.returncode == 0 else b""
