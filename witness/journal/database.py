"""Opening the journal, and its one connection."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from witness.errors import JournalCorruptError, JournalError, JournalMovedError
from witness.journal.decisions import DecisionLog
from witness.journal.groups import DefinitionTable, GroupTable, MemberTable
from witness.journal.records import Event
from witness.journal.saved_state import QueueTable, SidecarTable, TownTable
from witness.journal.schema import STEPS
from witness.journal.worktrees import WorktreeTable

# Longest wait for another writer; every transaction of ours is far shorter.
_BUSY_SECONDS = 5.0


def _make_private(path: Path) -> None:
    """Make the file, for the user alone; SQLite gives its companions the same mode.

    Not by the umask, which is the whole process's: of two threads that set and restore it one would leave it changed.
    An existing file is not opened: closing it again would drop the locks of another connection in this process.
    """
    if str(path) == ":memory:":  # SQLite's own word for a journal without a file
        return
    with contextlib.suppress(OSError):  # it is there, or cannot be: SQLite says so with its own words
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


class Journal:
    """The town's journal. Not to be shared across a fork, nor used by two threads at once (``Witness`` takes turns).

    Attributes:
        groups: the groups and what is wanted of them.
        members: their processes.
        decisions: what the sidecars decided, said and spent.
        sidecars: what each sidecar leaves to its successor.
        queues: how far each queue's delivery ledger was read.
        town: what is remembered of the whole town.
        definitions: what each run's sidecar types are.
    """

    def __init__(self, path: Path, patience: float | None = None) -> None:
        """Open the journal at ``path``, making it when there is none.

        Args:
            path: its file.
            patience: seconds to wait for another writer; five when None, longer than any transaction of ours.

        Raises:
            JournalCorruptError: the file is damaged.
            JournalError: it cannot be opened, read or written (no room, read-only, locked for too long).
        """
        self.path, self._patience = path, _BUSY_SECONDS if patience is None else patience
        with self._told():
            _make_private(path)
            self._db = sqlite3.connect(path, timeout=self._patience, isolation_level=None, check_same_thread=False)
            if not (path.exists() and path.stat().st_size):
                # Free pages of a new file can be given back in small steps; a file that stands keeps what it was made
                # with, and would be locked for the question alone.
                self._db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._db.execute("PRAGMA journal_mode = WAL")
            # A crash of the machine may lose the last commits, never the database; a crash of ours loses nothing.
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._migrate()
        self._identity = _identity(path)
        self.groups = GroupTable(self)
        self.members = MemberTable(self)
        self.decisions = DecisionLog(self)
        self.sidecars = SidecarTable(self)
        self.queues = QueueTable(self)
        self.town = TownTable(self)
        self.definitions = DefinitionTable(self)
        self.worktrees = WorktreeTable(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def check_place(self) -> None:
        """See that the file which is open here still stands in its place: cheap, for those who keep it open for long.

        Raises:
            JournalMovedError: it was set aside, and perhaps another one stands there.
        """
        if _identity(self.path) != self._identity:
            raise JournalMovedError(f"the journal {self.path} was set aside; the one that stands there now is used")

    def _migrate(self) -> None:
        done = self._db.execute("PRAGMA user_version").fetchone()[0]
        if done > len(STEPS):
            raise JournalError(f"{self.path} was written by a newer gt-witness (schema {done}): upgrade this one")
        if done == len(STEPS):
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            # Read again: another process may have come first.
            done = self._db.execute("PRAGMA user_version").fetchone()[0]
            for number, script in enumerate(STEPS[done:], start=done + 1):
                for statement in script.split(";"):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {number}")
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            text = str(error)
            if "malformed" in text or "not a database" in text:
                raise JournalCorruptError(
                    f"the journal {self.path} is damaged ({text}): 'gt doctor --fix' sets it aside"
                ) from error
            if "locked" in text:
                text += f"; somebody holds it for more than {self._patience:.0f} s"
            raise JournalError(f"the journal {self.path} cannot be used: {text}") from error

    def run(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Execute one statement; errors come as JournalError."""
        with self._told():
            return self._db.execute(sql, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; nested use joins the outer one."""
        if self._db.in_transaction:
            yield
            return
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            self._db.rollback()  # a no-op where SQLite itself has rolled back already
            raise

    # -- history ------------------------------------------------------------------------------------------------

    def note(self, time: float, kind: str, run: str = "", member: str = "", **data: Any) -> None:
        """Add one line to the town's history.

        Args:
            time: wall clock.
            kind: what happened, as ``spawned`` or ``nuke-failed``.
            run, member: which ones it concerns.
            data: anything else, as JSON.
        """
        self.run(
            "INSERT INTO events (time, kind, run, member, data) VALUES (?, ?, ?, ?, ?)",
            time, kind, run, member, json.dumps(data, ensure_ascii=False, default=str),
        )  # fmt: skip

    def history(self, run: str = "", last: int = 200) -> list[Event]:
        """The newest lines, oldest first; of one run, or of all."""
        rows = self.run(
            "SELECT time, kind, run, member, data FROM events WHERE ? IN ('', run) ORDER BY id DESC LIMIT ?", run, last
        ).fetchall()
        return [Event(time, kind, of, member, json.loads(data)) for time, kind, of, member, data in reversed(rows)]

    @property
    def last_event(self) -> int:
        """Number of the newest line of the history, 0 when there is none."""
        return int(self.run("SELECT ifnull(max(id), 0) FROM events").fetchone()[0])

    def events_after(self, number: int, most: int = 10_000) -> list[tuple[int, Event]]:
        """Lines of the history that are newer than that one, oldest first, with their numbers."""
        rows = self.run(
            "SELECT id, time, kind, run, member, data FROM events WHERE id > ? ORDER BY id LIMIT ?", number, most
        ).fetchall()
        return [(id, Event(time, kind, of, member, json.loads(data))) for id, time, kind, of, member, data in rows]

    @property
    def data_version(self) -> int:
        """A number that changes whenever another connection has committed; microseconds to read."""
        return int(self.run("PRAGMA data_version").fetchone()[0])


def _identity(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)
