"""Reading what a repository holds: regular files within bounds, and nothing that a link leads to outside of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from witness.files.opening import UnsafeFileError, open_regular

# What is looked at of a tree for one glob; whoever has more names its files.
_MOST_ENTRIES = 100_000
_DEEPEST = 64
_LARGEST = 16 << 20
# What a person hands over by a pipe or a descriptor, as a shell's <(…) does.
_HANDED = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


def project_top(workdir: Path) -> Path:
    """The top of the repository that holds the working directory; the directory itself outside of any."""
    return repository_of(workdir) or workdir


def repository_of(place: Path) -> Path | None:
    """The top of the repository that holds a place, as it is written; None outside of any."""
    return next((each for each in (place, *place.parents) if (each / ".git").exists()), None)


def open_project(path: Path) -> int:
    """Open a file that may have come with a repository.

    Links within the repository are followed, as projects have them; one that leads outside is not. A file that lies in
    no repository is whoever named it's own, and may be a link to anywhere.

    Returns:
        A descriptor, which the caller closes.

    Raises:
        FileNotFoundError: it is not there.
        UnsafeFileError: it is no regular file, or a link leads outside.
        OSError: it cannot be opened.
    """
    written = Path(os.path.abspath(path))  # noqa: PTH100 - links stay as they are written
    if str(written).startswith(_HANDED):
        return os.open(written, os.O_RDONLY | os.O_CLOEXEC)
    top = repository_of(written.parent)
    real = os.path.realpath(written)
    handle = open_regular(real, owners=())
    try:
        # What was opened counts, not what stood there when the path was looked at.
        opened = os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115
        if top is not None and not Path(opened).is_relative_to(os.path.realpath(top)):
            raise UnsafeFileError(path, f"a link leads out of {top}: not read", errno.EXDEV)
    except BaseException:
        os.close(handle)
        raise
    return handle


def read_project(path: Path, limit: int = _LARGEST, *, cut: bool = False) -> bytes:
    """The content of a file that may have come with a repository; see ``open_project``.

    Args:
        path: the file.
        limit: bytes; a larger file is refused.
        cut: take the beginning of a larger one.

    Raises:
        OSError: as ``open_project``, or it is larger than the limit.
    """
    handle = open_project(path)
    try:
        parts, left = [], limit + 1
        while left > 0 and (part := os.read(handle, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(handle)
    if left <= 0 and not cut:
        raise UnsafeFileError(path, f"it is larger than {limit} bytes: not read", errno.EFBIG)
    return b"".join(parts)[:limit]


def check_within(path: Path) -> None:
    """Refuse a folder in a repository that a link leads out of it; for who reads and writes files of ours there.

    Raises:
        UnsafeFileError: it does.
    """
    top = repository_of(Path(os.path.abspath(path)))  # noqa: PTH100
    if top is not None and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(top)):
        raise UnsafeFileError(path, f"a link leads out of {top}: not used", errno.EXDEV)


def files_below(folder: Path, wanted: Callable[[str], bool]) -> Iterator[Path]:
    """The regular files below a folder that are wanted, in order of their paths; no link to a folder is entered.

    Args:
        folder: where to look.
        wanted: given a path relative to it, whether it is one.
    """
    left = _MOST_ENTRIES
    for place, folders, files in os.walk(folder):
        inner = os.path.relpath(place, folder)
        folders[:] = sorted(each for each in folders if each != ".git") if inner.count("/") < _DEEPEST else []
        left -= len(folders) + len(files)
        for name in sorted(files):
            path = Path(place, name)
            if wanted(name if inner == "." else f"{inner}/{name}") and path.is_file():
                yield path
        if left <= 0:
            return


def files_matching(pattern: str, folder: Path) -> list[Path]:
    """The regular files that a glob means (``**`` for any depth), seen from a folder; ``*`` means no hidden ones.

    The time is bounded by the tree, whatever the glob is made of: no link to a folder is entered.
    """
    parts = [part for part in pattern.split("/") if part != "."]
    fixed = next((at for at, part in enumerate(parts) if is_glob(part)), len(parts) - 1)
    start = folder / ("/".join(parts[:fixed]) or ("/" if pattern.startswith("/") else "."))
    wanted = parts[fixed:]
    return list(files_below(start, lambda path: _fits(path.split("/"), wanted)))


def is_glob(text: str) -> bool:
    """Whether a path holds wildcards."""
    return any(sign in text for sign in "*?[")


def _fits(path: list[str], pattern: list[str]) -> bool:
    """Whether the parts of a path fit those of a glob, in time of their product."""
    reached = {0}
    for part in path:
        hidden = part.startswith(".")
        after = set()
        for at in _past_stars(reached, pattern):
            if at < len(pattern) and pattern[at] == "**":
                if not hidden:
                    after.add(at)
            elif at < len(pattern) and (not hidden or pattern[at].startswith(".")) and fnmatchcase(part, pattern[at]):
                after.add(at + 1)
        reached = after
    return len(pattern) in _past_stars(reached, pattern)


def _past_stars(reached: set[int], pattern: list[str]) -> set[int]:
    """``**`` may also stand for nothing."""
    found = set(reached)
    for first in reached:
        at = first
        while at < len(pattern) and pattern[at] == "**":
            at += 1
            found.add(at)
    return found
