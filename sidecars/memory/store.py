"""The files of the agents' memories: read, journalled, folded, never lost.

A change is one line in the agent's journal, written and synced before anybody is told that it is done. Folding
applies the journal to the memory file and replaces that atomically. Whatever dies in between leaves either the
journal or the folded file, or both; the file says which entries it holds already.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from sidecars.memory.archive import of_lines, to_lines
from sidecars.memory.briefing import is_about
from sidecars.memory.join import has_conflict_marks
from sidecars.memory.lenient_reader import Reading, parse, read_sidecar
from sidecars.memory.paths import SUFFIX, Place, is_agent, place_of, sidecars_folder
from sidecars.memory.protocol import apply, replay
from sidecars.memory.record import (
    Applied,
    Dropped,
    Entry,
    Memory,
    Refused,
    Sidecar,
    dump,
    empty_sidecar,
    entries_of,
    entry_to_line,
    iso,
    one_line,
    sameness,
)
from sidecars.memory.versions import joined_conflict
from witness import files
from witness.clock import Clock, SystemClock
from witness.errors import WitnessError
from witness.files import check_within, read_from, replace_file

# One writer at a time, and nobody waits for ever.
#
# Among our own processes the kernel's file lock decides: it ends with the process that holds it, however that ends.
# MDAN's own program locks by making a folder; while we write the file that it shares with us we make the same folder.

LOCK_WAIT = 5.0
# After this MDAN takes a folder for left behind.
_FOREIGN_STALE = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05


class MemoryBusyError(WitnessError):
    """Somebody else holds the memory for longer than we wait; what stands in the journal is safe."""

    def __init__(self, path: Path, seconds: float) -> None:
        self.path = path
        super().__init__(f"{path} was held by another process for {seconds:g} s: try again")


@contextmanager
def locked(path: Path, wait: float = LOCK_WAIT) -> Iterator[int]:
    """Hold the file lock at ``path``.

    Args:
        path: the lock file; made when missing, never removed (a removed one would let two processes in).
        wait: seconds.

    Yields:
        The open lock file's descriptor.

    Raises:
        MemoryBusyError: it was not to be had in time.
    """
    with files.locked(path, wait) as held:
        if held is None:
            raise MemoryBusyError(path, wait)
        yield held


@contextmanager
def foreign_locked(folder: Path, held: int, clock: Clock, wait: float = LOCK_WAIT) -> Iterator[None]:
    """Hold MDAN's folder lock as well.

    Args:
        folder: the folder whose existence is the lock.
        held: descriptor of our own lock, which is held. It notes that the folder is ours: a holder that was killed
            leaves the note, so that the next one clears the folder at once instead of waiting till it is stale.
        clock: for the bounded wait and the folder's age.
        wait: seconds.

    Raises:
        MemoryBusyError: MDAN holds it for longer than we wait.
    """
    if os.fstat(held).st_size:
        with suppress(OSError):
            folder.rmdir()
    os.pwrite(held, b"1", 0)
    for _ in _attempts(folder, clock, wait):
        try:
            folder.mkdir()
            break
        except FileExistsError:
            with suppress(OSError):
                if clock.wall() - folder.stat().st_mtime > _FOREIGN_STALE:
                    folder.rmdir()
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()
        os.ftruncate(held, 0)


def _attempts(path: Path, clock: Clock, wait: float) -> Iterator[int]:
    deadline, pause, number = clock.monotonic() + wait, _FIRST_PAUSE, 0
    while True:
        yield number
        if clock.monotonic() >= deadline:
            raise MemoryBusyError(path, wait)
        time.sleep(pause)
        pause, number = min(pause * 2, _LONGEST_PAUSE), number + 1


_log = logging.getLogger(__name__)

# We keep 50 short lines; foreign files of thousands are read too. What is larger than this is no memory.
SIZE_LIMIT = 64 * 1024 * 1024
_LONGEST_SESSION = 128


class MemoryFileError(WitnessError):
    """A memory's file cannot be read or written."""

    def __init__(self, path: Path, error: OSError) -> None:
        self.path = path
        super().__init__(f"{path}: {error.strerror or error}")


class MemoryConflictError(WitnessError):
    """git has left both sides of a merge in a memory's file. It is neither read nor written until they are joined."""

    def __init__(self, path: Path, agent: str) -> None:
        self.path = path
        super().__init__(f"{path} has conflict marks of git: 'gt memory merge {agent}' joins both sides")


class MemoryStore:
    """The memories of one project.

    Args:
        root: the project's root.
        clock: where the dates come from.
        wait: seconds to wait for another writer.
    """

    def __init__(self, root: Path, clock: Clock | None = None, wait: float = LOCK_WAIT) -> None:
        self.root = root
        self._clock = clock or SystemClock()
        self._wait = wait
        self._understood: tuple[Place, bytes, Reading] | None = None

    @property
    def now(self) -> str:
        """The date as it is written into the files."""
        return iso(self._clock.wall())

    def place(self, agent: str) -> Place:
        """The files of an agent.

        Raises:
            UsageError: the name is not usable.
        """
        return place_of(self.root, agent)

    def agents(self) -> list[str]:
        """Who has a memory here; files that no agent could have are passed over."""
        folder = sidecars_folder(self.root)
        if not folder.is_dir():
            return []
        names = (path.name.removesuffix(SUFFIX) for path in folder.iterdir() if path.name.endswith(SUFFIX))
        return sorted(filter(is_agent, names))

    def exists(self, agent: str) -> bool:
        """Whether the agent has a memory or a journal of one."""
        place = self.place(agent)
        return place.file.exists() or place.journal.exists()

    def read(self, agent: str) -> Sidecar:
        """The agent's memory with everything in its journal; an empty one when it has none. Nothing is written.

        Raises:
            MemoryFileError: the file cannot be read. A corrupt one is no error: see ``change``.
            MemoryConflictError: git has left conflict marks in it.
        """
        place = self.place(agent)
        # The journal first: an entry that is folded between the two reads is then seen twice and counted once.
        entries = entries_of(_read(place.journal))
        try:
            reading = self._understand(place)
        except ValueError as error:
            _log.warning("%s is not readable (%s): going on with its journal", place.file, error)
            reading = Reading(empty_sidecar(agent, self.now), ())
        return replay(reading.sidecar, entries)[0]

    def change(self, agent: str, op: str, session: str, data: Mapping[str, Any] | None = None) -> Applied:
        """Journal one operation, when the rules allow it. When this returns, it is on the disk.

        Args:
            agent: whose memory.
            op: the operation's name.
            session: in which session it happens.
            data: what the operation needs.

        Raises:
            RuleError: it breaks a rule; nothing was written.
            NotFoundError: it names a memory that is not there.
            MemoryBusyError, MemoryFileError, MemoryConflictError: nothing was written.
        """
        place = self.place(agent)
        entry = Entry(uuid4().hex, self.now, one_line(session)[:_LONGEST_SESSION] or "unknown", op, dict(data or {}))
        try:
            _make_folder(place.folder)
            with locked(place.lock, self._wait):
                self._set_corrupt_aside(place)
                applied = apply(self.read(agent), entry)
                _append(place.journal, entry_to_line(entry))
        except OSError as error:
            raise MemoryFileError(place.file, error) from error
        return applied

    def fold(self, agent: str) -> Sidecar:
        """Put the journal into the memory file; makes the file when there is none.

        Raises:
            MemoryBusyError, MemoryFileError, MemoryConflictError: the journal stands as it was.
        """
        place = self.place(agent)
        try:
            _make_folder(place.folder)
            with (
                locked(place.lock, self._wait) as held,
                foreign_locked(place.foreign_lock, held, self._clock, self._wait),
            ):
                return self._fold(place)
        except OSError as error:
            raise MemoryFileError(place.file, error) from error

    def _fold(self, place: Place) -> Sidecar:
        self._set_corrupt_aside(place)
        reading = self._understand(place)
        entries = entries_of(_read(place.journal))
        folded, refused = replay(reading.sidecar, entries)
        if place.file.exists() and not entries and not reading.repairs:
            return folded
        if reading.repairs:
            self._keep_original(place, reading.repairs)
        _keep_refused(place, refused)
        folded = replace(folded, books=replace(folded.books, applied=tuple(entry.id for entry in entries)))
        if folded.dropped:
            # Before the file: a crash in between leaves them in both places and never in none.
            _append(place.archive, to_lines(folded.dropped))
            _tell_dropped(place.agent, folded.dropped)
        replace_file(place.file, dump(folded))
        # Only now may the journal go. If this is as far as we come, the file says that it holds the entries.
        place.journal.unlink(missing_ok=True)
        return folded

    def join_conflict(self, agent: str) -> Path | None:
        """Join both sides of a file that git has left with conflict marks; the file is kept beside as it was.

        Returns:
            Where it is kept; None when there are no marks.

        Raises:
            MemoryFileError: a side is no memory, or a file cannot be written. All stands as it was.
        """
        place = self.place(agent)
        try:
            with (
                locked(place.lock, self._wait) as held,
                foreign_locked(place.foreign_lock, held, self._clock, self._wait),
            ):
                data = _read(place.file)
                if not has_conflict_marks(data):
                    return None
                try:
                    joined = joined_conflict(data, agent, self.now)
                except ValueError as error:
                    raise OSError(22, f"the sides cannot be joined ({error}): mend it by hand") from error
                aside = _unused(place.aside("conflict", self.now))
                replace_file(aside, data)
                replace_file(place.file, joined)
        except OSError as error:
            raise MemoryFileError(place.file, error) from error
        return aside

    # -- the archive ----------------------------------------------------------------------------------------------

    def archived(self, agent: str, query: str = "") -> tuple[Dropped, ...]:
        """What the agent's memory no longer holds, the oldest first.

        Args:
            agent: whose.
            query: words that each of them holds; all of them when empty.

        Raises:
            MemoryFileError, MemoryConflictError: a file cannot be read.
        """
        memory = self.read(agent)
        live = {sameness(each.content) for each in memory.memories}
        kept = of_lines(_read(self.place(agent).archive) + to_lines(memory.dropped), live)
        return tuple(each for each in kept if is_about(each.memory, query)) if query else kept

    def purge_archive(self, agent: str, gone: Collection[Memory]) -> int:
        """Take memories out of the archive for good.

        Args:
            agent: whose.
            gone: the memories; what has the id or says the same as one of them goes.

        Returns:
            How many lines went.
        """
        place = self.place(agent)
        ids, said = {each.id for each in gone}, {sameness(each.content) for each in gone}
        try:
            with locked(place.lock, self._wait):
                known = of_lines(_read(place.archive))
                kept = [
                    each for each in known if each.memory.id not in ids and sameness(each.memory.content) not in said
                ]
                if len(kept) < len(known):
                    replace_file(place.archive, to_lines(kept))
        except OSError as error:
            raise MemoryFileError(place.archive, error) from error
        return len(known) - len(kept)

    # -- files --------------------------------------------------------------------------------------------------

    def _understand(self, place: Place) -> Reading:
        data = _read(place.file)
        if not data and not place.file.exists():
            return Reading(empty_sidecar(place.agent, self.now), ())
        if has_conflict_marks(data):
            raise MemoryConflictError(place.file, place.agent)
        # A session's begin looks at the same file several times; to understand thousands of memories takes its time.
        if self._understood is None or self._understood[:2] != (place, data):
            self._understood = (place, data, read_sidecar(parse(data), place.agent, self.now))
        return self._understood[2]

    def _set_corrupt_aside(self, place: Place) -> None:
        try:
            self._understand(place)
        except ValueError as error:
            aside = _unused(place.aside("corrupt", self.now))
            place.file.rename(aside)
            _log.warning("%s is not readable (%s): its content is kept in %s", place.file, error, aside.name)

    def _keep_original(self, place: Place, repairs: tuple[str, ...]) -> None:
        aside = _unused(place.aside("before", self.now))
        replace_file(aside, _read(place.file))
        shown = "; ".join(repairs[:3]) + (f"; and {len(repairs) - 3} more" if len(repairs) > 3 else "")
        _log.warning("%s was brought into form (%s): the original is kept in %s", place.file, shown, aside.name)


def write_file(path: Path, data: bytes) -> None:
    """Write another file of the project's state: whole or not at all, in a folder that is kept out of git.

    Raises:
        MemoryFileError: it cannot be written.
    """
    try:
        _make_folder(path.parent)
        replace_file(path, data)
    except OSError as error:
        raise MemoryFileError(path, error) from error


def append_line(path: Path, line: bytes) -> None:
    """Add a line to another file of the project's state, synced.

    Raises:
        MemoryFileError: it cannot be written.
    """
    try:
        _make_folder(path.parent)
        _append(path, line)
    except OSError as error:
        raise MemoryFileError(path, error) from error


def _make_folder(folder: Path) -> None:
    check_within(folder)
    if folder.is_dir():
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # What an agent remembers is the user's own; `git add -A` in a project must not publish it.
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


def _read(path: Path) -> bytes:
    try:
        check_within(path.parent)
        data = read_from(path, 0, SIZE_LIMIT + 1, owners=())
        if len(data) > SIZE_LIMIT:
            # Cut off it would read as corrupt, and be set aside.
            raise OSError(27, f"larger than {SIZE_LIMIT >> 20} MiB, which is no memory")
        return data
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise MemoryFileError(path, error) from error


_MOST_TOLD = 5


def _tell_dropped(agent: str, dropped: tuple[Dropped, ...]) -> None:
    for each in dropped[:_MOST_TOLD]:
        _log.warning("%s: to the archive, %s: %s %s", agent, each.why, each.memory.id, each.memory.content)
    if (more := len(dropped) - _MOST_TOLD) > 0:
        _log.warning("%s: %d more to the archive: 'gt memory show %s --archive'", agent, more, agent)


def _append(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        end = os.fstat(descriptor).st_size
        try:
            if os.write(descriptor, line) != len(line):
                raise OSError(28, "no space left on the device")
        except OSError:
            os.ftruncate(descriptor, end)
            raise
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if end == 0:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    # The name of a new file is only safe once its folder is.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unused(path: Path) -> Path:
    number, candidate = 1, path
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def _keep_refused(place: Place, refused: tuple[Refused, ...]) -> None:
    for each in refused:
        _log.warning("%s: could not be kept: %s", place.agent, each.reason)
        line = json.dumps({"reason": each.reason, "entry": asdict(each.entry)}, ensure_ascii=False)
        _append(place.refused, f"{line}\n".encode())
