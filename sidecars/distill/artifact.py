"""What was declared, and the only way to open it.

Nothing outside of the declared artifacts can be read, whatever is asked and whatever the file system is made to look
like:

- A declared path is resolved once and then opened from the root, one component at a time, without following a link.
  A component that is swapped between the resolving and the opening makes the opening fail.
- A declared file is held open from then on. What is read later is that file, whatever its name has come to mean.
- Of a declared folder the folder itself is held open, and files are opened downwards from it, again without links.
- What was opened is looked at again: a regular file, not of a kernel file system, and not a further name of a file that
  has names outside of the folder.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sidecars.distill.errors import QuestionError, UnreadableError
from sidecars.distill.folder import (
    OPEN_FOLDER,
    PASS_FOLDER,
    IgnoreRules,
    ignored,
    kernel_devices,
    open_beneath,
    refusal,
)

# A folder with more files than this is not one artifact any more; the rest is reported as left out.
MOST_FILES = 20_000
_DEEPEST = 64

# Their content is of no use to a question, and a repository's history holds what was deleted on purpose.
_ALWAYS_IGNORED = frozenset({".git", ".hg", ".svn", ".jj"})


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
        if re.match(r"[a-z][a-z0-9+.-]+://", path, re.IGNORECASE) and not os.path.lexists(path):
            raise UnreadableError(path, f"is a URL: fetch it into a file first (curl -fsSLo FILE '{path}')")
        try:
            real = os.path.realpath(path, strict=True)
        except (OSError, ValueError) as error:
            raise UnreadableError(path, getattr(error, "strerror", None) or str(error)) from error
        parts = Path(real).parts[1:]
        top = os.open("/", PASS_FOLDER)
        try:
            fd = open_beneath(top, parts, path) if parts else os.open("/", OPEN_FOLDER)
        finally:
            os.close(top)
        self._stack.callback(os.close, fd)
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            if found.st_dev in kernel_devices():
                raise UnreadableError(path, "belongs to a file system of the kernel")
            return _Root(path.rstrip("/") or "/", fd, False, real)
        if why := refusal(found):
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
        rules: list[tuple[int, IgnoreRules]],
        found: dict[str, tuple[tuple[str, ...], os.stat_result]],
    ) -> None:
        if len(above) > _DEEPEST:
            self.left_out.append(("/".join((root.declared, *above)), f"is deeper than {_DEEPEST} folders"))
            return
        names = sorted(os.listdir(fd))
        if self._ignore and ".gitignore" in names and (own := IgnoreRules.of(fd)):
            rules = [*rules, (len(above), own)]
        for name in names:
            parts = (*above, name)
            shown = "/".join((root.declared.rstrip("/"), *parts))
            try:
                entry = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except OSError:
                continue  # gone since the listing
            folder = stat.S_ISDIR(entry.st_mode)
            if name in _ALWAYS_IGNORED or ignored(rules, parts, folder):
                continue
            if len(found) >= MOST_FILES:
                self.left_out.append((shown, f"comes after the first {MOST_FILES} files"))
                return
            if folder:
                self._walk_into(root, fd, parts, rules, found)
            elif why := refusal(entry):
                self.left_out.append((shown, why))
            else:
                found[shown] = (parts, entry)

    def _walk_into(
        self,
        root: _Root,
        fd: int,
        parts: tuple[str, ...],
        rules: list[tuple[int, IgnoreRules]],
        found: dict[str, tuple[tuple[str, ...], os.stat_result]],
    ) -> None:
        try:
            below = os.open(parts[-1], OPEN_FOLDER, dir_fd=fd)
        except OSError as error:
            self.left_out.append(("/".join((root.declared, *parts)), f"cannot be opened: {error.strerror}"))
            return
        try:
            if os.fstat(below).st_dev not in kernel_devices():
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
        fd = open_beneath(root.fd, parts, name)
        found = os.fstat(fd)
        why = refusal(found)
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
                fd = open_beneath(root.fd, parts, "")
            except UnreadableError:
                continue
            try:
                each = os.fstat(fd)
            finally:
                os.close(fd)
            names += (each.st_dev, each.st_ino) == (found.st_dev, found.st_ino)
        return names >= found.st_nlink
