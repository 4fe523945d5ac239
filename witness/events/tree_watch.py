"""A watched work tree: every change in it, with its time, whatever made it.

Where inotify can be had, the kernel says which names to look at, and a look at an unchanged tree costs one system call.
Where it cannot (another system, no watches left, a network file system), and when its queue has overflown, the whole
tree is compared with what is remembered of it: the same answer, later.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from witness.events import tree_files
from witness.events.tree_files import MARKS, Folder, Signature, State, Tree, differing, digest, join, look_at

# Beyond this a tree is not watched at all: somebody's home or the root of the system, not a project.
_MOST_FOLDERS = 60_000
_MOST_FILES = 600_000
# So much content is read before the first call, of files that git's index does not know as they are.
_HASHED_FILES, _HASHED_BYTES = 4_000, 64 << 20
# A file that is written twice between two ticks of the file system's clock bears the same times both times.
_TICK = 0.05
# Of more changes at once the later ones are told apart by size and times alone.
_READ_AT_ONCE = 1_000
# Digests and changes that are remembered.
_MOST_REMEMBERED = 20_000
# File systems whose other users change files without our kernel's knowledge.
_REMOTE = re.compile(r"nfs4?|cifs|smb\w+|9p|afs|ceph|lustre|virtiofs|(fuse\.)?(sshfs|glusterfs)")


class TreeTooLargeError(Exception):
    """There are more folders or files than we would watch."""


@dataclass(slots=True)
class Change:
    """One file's way from one state to another.

    Args:
        path: relative to the root; with a ``/`` at its end a tree of generated files.
        time: wall clock.
        before, after: None where it does not stand there.
    """

    path: str
    time: float
    before: State | None
    after: State | None


@dataclass(slots=True)
class _Known:
    """What is remembered: files by folder, and the content of some."""

    folders: dict[str, dict[str, Signature]] = field(default_factory=dict)
    generated: set[str] = field(default_factory=set)
    digests: dict[str, bytes] = field(default_factory=dict)

    def state(self, path: str) -> State | None:
        folder, _, name = path.rpartition("/")
        known = self.folders.get(folder, {}).get(name)
        return None if known is None else State(known, self.digests.get(path, b""))

    def put(self, path: str, state: State | None) -> None:
        folder, _, name = path.rpartition("/")
        self.digests.pop(path, None)
        if state is None:
            self.folders.get(folder, {}).pop(name, None)
            return
        self.folders.setdefault(folder, {})[name] = state.signature
        if state.digest:
            while len(self.digests) >= _MOST_REMEMBERED:
                del self.digests[next(iter(self.digests))]
            self.digests[path] = state.digest

    def below(self, path: str) -> list[str]:
        """A folder and those in it."""
        return [each for each in self.folders if each == path or each.startswith(path + "/")]


class TreeWatch:
    """Watches one tree from its making on.

    Args:
        tree: the tree.
        wall: the clock.
        watches: whether to use inotify where it can be had.

    Raises:
        TreeTooLargeError: the tree is no project.
    """

    def __init__(self, tree: Tree, wall: Callable[[], float] = time.time, watches: bool = True) -> None:
        self.tree = tree
        self._wall = wall
        self._known = _Known()
        self._dirty: dict[str, float] = {}
        self._left: set[str] = set()
        self._fresh: set[str] = set()
        self._lost = False
        self._changes: list[Change] = []
        self._inotify = _open_inotify() if watches and _is_local(tree.root) else None
        self._mask = _mask() if self._inotify else 0
        self._paths: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        files = 0
        for folder in tree.walk(enter=self._watch):
            self._remember(folder, folder.files)
            files += len(folder.files)
            if len(self._known.folders) > _MOST_FOLDERS or files > _MOST_FILES:
                self.close()
                raise TreeTooLargeError(f"{tree.root}: more than {_MOST_FOLDERS} folders or {_MOST_FILES} files")
        self._learn_contents()

    @property
    def warm(self) -> bool:
        """Whether the kernel tells us of changes; if not, every look compares the whole tree."""
        return self._inotify is not None

    @property
    def generated(self) -> Collection[str]:
        """Folders of generated files, which are watched at their top only."""
        return self._known.generated

    def fileno(self) -> int:
        """Readable when something has changed; -1 without watches."""
        return self._inotify.fileno() if self._inotify else -1

    def close(self) -> None:
        if self._inotify:
            self._inotify.close()
            self._inotify = None

    def notice(self) -> bool:
        """Read what the kernel has told since; whether there is anything to settle."""
        if self._inotify is None:
            return True
        from inotify_simple import flags

        now = self._wall()
        for wd, mask, _, name in self._inotify.read(timeout=0):
            if mask & (flags.Q_OVERFLOW | flags.UNMOUNT):
                self._lost = True
            elif mask & flags.IGNORED:
                if self._watches.get(path := self._paths.pop(wd, "")) == wd:
                    del self._watches[path]
            elif name and (folder := self._paths.get(wd)) is not None:
                gone = bool(mask & (flags.DELETE | flags.MOVED_FROM))
                self._entry(folder, name, now, bool(mask & flags.ISDIR), gone)
        return self._lost or bool(self._dirty)

    def settle(self) -> None:
        """Look at every name that was told of, and put down what has become of it."""
        if not self.notice():
            return
        if self._lost or self._inotify is None:
            self._lost = False
            self._compare_all()
        dirty, self._dirty = self._dirty, {}
        found = [
            (path, told, self._known.state(path), self._now(path, read=count < _READ_AT_ONCE))
            for count, (path, told) in enumerate(dirty.items())
        ]
        self._add_indexed(found)
        for path, told, before, after in found:
            now, changed = after or (None, told)
            self._known.put(path, now)
            # What comes with a folder that was moved here bears old times.
            change = Change(path, told if before is None else min(told, changed), before, now)
            if _is_change(change):
                self._changes.append(change)
        del self._changes[:-_MOST_REMEMBERED]
        for path in self._left:
            if path not in self._watches and not self._known.folders.get(path):
                self._known.folders.pop(path, None)
        self._left.clear()

    def changes(self, since: float) -> list[Change]:
        """What has changed since a time, one for each file that is not as it was then, oldest first.

        They stay until ``forget``.
        """
        merged: dict[str, Change] = {}
        for change in self._changes:
            if change.time < since:
                continue
            if (first := merged.get(change.path)) is None:
                merged[change.path] = Change(change.path, change.time, change.before, change.after)
            else:
                first.after, first.time = change.after, change.time
        return [each for each in merged.values() if _is_change(each)]

    def forget(self, since: float) -> None:
        """What has changed since a time is told, or will never be."""
        self._changes = [each for each in self._changes if each.time < since]

    def drop_before(self, time: float) -> None:
        """Nobody asks for anything older."""
        if self._changes and self._changes[0].time < time:
            self._changes = [each for each in self._changes if each.time >= time]

    # -- folders ---------------------------------------------------------------------------------------------------

    def _watch(self, path: str) -> None:
        """Have the kernel tell of a folder's entries from now on; called before they are read."""
        if self._inotify is None or path in self._watches:
            return
        try:
            wd = self._inotify.add_watch(self.tree.full(path), self._mask)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return
        except OSError:  # the system's limit of watches: all or nothing, half a watch would be silent on the rest
            self.close()
            return
        self._paths[wd], self._watches[path] = path, wd

    def _remember(self, folder: Folder, files: dict[str, Signature]) -> None:
        self._known.folders[folder.path] = files
        if folder.generated:
            self._known.generated.add(folder.path)

    def _entry(self, folder: str, name: str, now: float, is_folder: bool, gone: bool) -> None:
        if folder in self._known.generated:
            self._dirty[folder + "/"] = now
            return
        if not self.tree.has(folder, name):
            return
        path = join(folder, name)
        if name in MARKS and folder and not gone:
            self._leave(folder, now)
            self._new_folder(folder, now)
        elif not is_folder:
            self._dirty[path] = now
        elif gone:
            self._leave(path, now)
        else:
            self._new_folder(path, now)

    def _new_folder(self, path: str, now: float) -> None:
        for folder in self.tree.walk(path, self._watch):
            self._remember(folder, self._known.folders.get(folder.path, {}))
            if folder.generated:
                self._dirty[folder.path + "/"] = now
            for name in folder.files:
                self._dirty.setdefault(join(folder.path, name), now)

    def _leave(self, path: str, now: float) -> None:
        """A folder has gone from where it was: so has each of its files."""
        for folder in self._known.below(path):
            self._left.add(folder)
            if folder in self._known.generated:
                self._known.generated.discard(folder)
                self._dirty[folder + "/"] = now
            for name in self._known.folders[folder]:
                self._dirty[join(folder, name)] = now
            if (wd := self._watches.pop(folder, None)) is not None:
                self._paths.pop(wd, None)
                if self._inotify:
                    with suppress(OSError):
                        self._inotify.rm_watch(wd)

    def _compare_all(self) -> None:
        """Everything against what is remembered: after an overflow, or where there are no watches."""
        gone = set(self._known.folders)
        self._dirty |= dict.fromkeys(self._fresh, self._wall())
        self._fresh.clear()
        for folder in self.tree.walk(enter=self._watch):
            gone.discard(folder.path)
            new = folder.path not in self._known.folders
            known = self._known.folders.get(folder.path, {})
            names = list(differing(known, folder.files))
            if names or (new and folder.generated):
                # When a name came or went, only the folder knows: its time is that of the last one.
                told = self._moved(folder.path)
                if folder.generated:
                    self._dirty[folder.path + "/"] = told
                for name in names:
                    stayed = name in known and name in folder.files
                    self._dirty[join(folder.path, name)] = self._wall() if stayed else told
            self._remember(folder, known)
        for path in gone:
            self._leave(path, self._moved(path))

    def _moved(self, path: str) -> float:
        """When a name last came into or went from a folder; of one that is gone or new, when it did so itself."""
        while path and (path not in self._known.folders or not os.path.isdir(self.tree.full(path))):
            path = path.rpartition("/")[0]
        with suppress(OSError):
            return min(os.stat(self.tree.full(path)).st_mtime, self._wall())
        return self._wall()

    # -- contents --------------------------------------------------------------------------------------------------

    def _now(self, path: str, read: bool) -> tuple[State, float] | None:
        found = None if path.endswith("/") else look_at(self.tree.full(path))
        if found is None:
            return None
        return State(found[0], digest(self.tree.full(path)) if read else b""), found[1]

    def _add_indexed(self, found: list[tuple[str, float, State | None, tuple[State, float] | None]]) -> None:
        """Where the content of before is not known and decides: git's index may know it."""
        open_ = [
            path
            for path, _, before, after in found
            if before and after and not before.digest and before.signature != after[0].signature
        ]
        staged = tree_files.staged(self.tree.root, open_)
        for index, (path, told, before, after) in enumerate(found):
            if before and path in staged and staged[path][0] == before.stamp:
                found[index] = (path, told, State(before.signature, staged[path][1]), after)

    def _learn_contents(self) -> None:
        """Read all of a small tree, of a large one what git's index does not know as it is.

        A file that is written anew as it was is no change; that can only be told by what it held before.
        """
        paths: Iterable[str] | None = None
        if sum(len(files) for files in self._known.folders.values()) > _HASHED_FILES:
            paths = tree_files.unsettled(self.tree.root)
        if paths is None:
            paths = (join(folder, name) for folder, files in self._known.folders.items() for name in files)
        room = _HASHED_BYTES
        for count, path in enumerate(paths):
            if count >= _HASHED_FILES or room <= 0:
                return
            if (state := self._known.state(path)) is not None:
                with suppress(OSError):
                    room -= os.lstat(self.tree.full(path)).st_size
                self._known.put(path, State(state.signature, digest(self.tree.full(path))))


def _is_change(change: Change) -> bool:
    before, after = change.before, change.after
    if change.path.endswith("/"):
        return True
    if before is None or after is None:
        return before is not after
    return not before.same_as(after)


def _open_inotify() -> Any:
    try:
        from inotify_simple import INotify

        return INotify(nonblocking=True)
    except (ImportError, OSError, AttributeError, TypeError):  # another system, or no instance left
        return None


def _mask() -> int:
    from inotify_simple import flags

    mask = flags.MODIFY | flags.CLOSE_WRITE | flags.ATTRIB | flags.CREATE | flags.DELETE | flags.MOVED_FROM
    return int(mask | flags.MOVED_TO | flags.ONLYDIR | flags.DONT_FOLLOW | flags.EXCL_UNLINK)


def _is_local(path: str) -> bool:
    """Whether our kernel sees every change of what is mounted at a path."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
            mounts = [line.split() for line in file]
    except OSError:
        return True
    best, kind = "", ""
    for fields in mounts:
        if len(fields) > 2:
            point = fields[1].replace("\\040", " ")
            if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
                best, kind = point, fields[2]
    return not _REMOTE.fullmatch(kind)
