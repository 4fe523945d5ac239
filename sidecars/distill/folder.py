"""What lies below an open folder: opened without following a link, and left out as git would."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Self

from sidecars.distill.errors import UnreadableError

# Without O_NONBLOCK the opening of a pipe would wait for a writer.
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
OPEN_FOLDER = _OPEN | os.O_DIRECTORY
# On the way down a folder need not be listed: with O_PATH the right to go through is enough, as it is for any program.
PASS_FOLDER = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY

_KINDS = {
    stat.S_IFIFO: "a pipe: save what comes out of it into a file first",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link, and links inside a folder are not followed: declare its target as an artifact",
    stat.S_IFDIR: "a folder",
}


@cache
def kernel_devices() -> frozenset[int]:
    """The devices of the kernel's own file systems."""
    # Files of these are windows into the kernel and into other processes, with sizes that mean nothing.
    top = Path("/").stat().st_dev
    found = {Path(place).stat().st_dev for place in ("/proc", "/sys", "/dev") if Path(place).is_dir()}
    return frozenset(found - {top})


def refusal(found: os.stat_result) -> str:
    """Why this must not be read, empty when it may: only regular files, and none of the kernel's."""
    if not stat.S_ISREG(found.st_mode):
        return f"is {_KINDS.get(stat.S_IFMT(found.st_mode), 'not a regular file')}"
    return "belongs to a file system of the kernel" if found.st_dev in kernel_devices() else ""


def open_beneath(fd: int, parts: Sequence[str], shown: str) -> int:
    """Open what lies at ``parts`` below ``fd``, every step without following a link. Returns a new descriptor."""
    if not parts or any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts):
        raise UnreadableError(shown, "is not a way down from a declared artifact")
    at, held = fd, -1
    try:
        for part in parts[:-1]:
            below = os.open(part, PASS_FOLDER, dir_fd=at)
            if held >= 0:
                os.close(held)
            at = held = below
        # Looked at before it is opened, because the very opening of a device can do something.
        kind = os.stat(parts[-1], dir_fd=at, follow_symlinks=False)
        if not stat.S_ISDIR(kind.st_mode) and (why := refusal(kind)):
            raise UnreadableError(shown, why)
        return os.open(parts[-1], _OPEN, dir_fd=at)
    except OSError as error:
        raise UnreadableError(shown, f"cannot be opened: {error.strerror}") from error
    finally:
        if held >= 0:
            os.close(held)


# The rules by which a folder's files are left out, as git reads them.

# In characters, of a file and of a line of it; the largest that projects share have a tenth of it.
_LARGEST, _LONGEST = 1 << 16, 1000


class IgnoreRules:
    """One ``.gitignore``."""

    def __init__(self, text: str) -> None:
        from pathspec import GitIgnoreSpec

        self._spec = GitIgnoreSpec.from_lines(text.splitlines())

    @classmethod
    def of(cls, folder: int) -> Self | None:
        """The rules that stand in an open folder, None when there are none that can be read."""
        try:
            own = open_beneath(folder, (".gitignore",), ".gitignore")
        except UnreadableError:
            return None
        try:
            text = os.pread(own, _LARGEST + 1, 0).decode("utf-8", "replace")
            # Each rule becomes an expression: a file that is none of a person's would cost minutes.
            if len(text) > _LARGEST or "\0" in text or max(map(len, text.splitlines()), default=0) > _LONGEST:
                return None
            return cls(text)
        except (ValueError, OSError, OverflowError, RecursionError, re.error):
            return None  # a rule that git itself would not understand, or a folder of that name
        finally:
            os.close(own)

    def verdict(self, path: str) -> bool | None:
        """Whether a path below their folder is left out; None when they say nothing of it."""
        return self._spec.check_file(path).include


def ignored(rules: list[tuple[int, IgnoreRules]], parts: tuple[str, ...], folder: bool) -> bool:
    """Whether a path is left out.

    Args:
        rules: from the root downwards, each with the depth of its folder.
        parts: the path from the root.
        folder: whether it is a folder.
    """
    # As git does it: the nearest file that says anything about the path decides.
    for depth, each in reversed(rules):
        verdict = each.verdict("/".join(parts[depth:]) + ("/" if folder else ""))
        if verdict is not None:
            return verdict
    return False
