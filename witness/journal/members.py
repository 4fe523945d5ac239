"""The journal's members."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from witness.journal.records import Member, MemberKind, MemberState
from witness.process.identity import ProcessId

if TYPE_CHECKING:
    from witness.journal.database import Journal

_COLUMNS = "run, name, kind, state, pid, started, type, argument, since, retry_at, crashes, restarts, note"


class MemberTable:
    """Reads and writes members. State changes go through ``witness.supervise.lifecycle`` first."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def add(self, member: Member) -> None:
        """Record a member."""
        self._journal.run(
            f"INSERT INTO members ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            member.run, member.name, member.kind, *_mutable(member)[:3], member.type, member.argument,
            *_mutable(member)[3:],
        )  # fmt: skip

    def update(self, member: Member, expected: MemberState) -> bool:
        """Write a member's new state if it still is in the ``expected`` one; False when somebody was quicker."""
        cursor = self._journal.run(
            "UPDATE members SET state = ?, pid = ?, started = ?, since = ?, retry_at = ?, crashes = ?, restarts = ?,"
            " note = ? WHERE run = ? AND name = ? AND state = ?",
            *_mutable(member), member.run, member.name, expected,
        )  # fmt: skip
        return cursor.rowcount == 1

    def of(self, run: str) -> list[Member]:
        """The members of a run: reaper and agent first, then the sidecars as declared."""
        rows = self._journal.run(f"SELECT {_COLUMNS} FROM members WHERE run = ? ORDER BY rowid", run).fetchall()  # noqa: S608
        return [_member(row) for row in rows]

    def of_living(self) -> dict[str, list[Member]]:
        """The members of every living run, by run: one query for the whole town."""
        columns = ", ".join(f"m.{name}" for name in _COLUMNS.split(", "))
        rows = self._journal.run(
            f"SELECT {columns} FROM members m JOIN groups g ON g.run = m.run WHERE g.state != 'NUKED' ORDER BY m.rowid"  # noqa: S608
        ).fetchall()
        found: dict[str, list[Member]] = {}
        for row in rows:
            member = _member(row)
            found.setdefault(member.run, []).append(member)
        return found


def _mutable(member: Member) -> tuple[Any, ...]:
    process = member.process
    return (
        member.state,
        process.pid if process else None,
        process.started if process else None,
        member.since,
        member.retry_at,
        json.dumps(member.crashes),
        member.restarts,
        member.note,
    )


def _member(row: tuple[Any, ...]) -> Member:
    run, name, kind, state, pid, started, type_, argument, since, retry_at, crashes, restarts, note = row
    return Member(
        run=run,
        name=name,
        kind=MemberKind(kind),
        state=MemberState(state),
        process=ProcessId(pid, started) if pid else None,
        type=type_,
        argument=argument,
        since=since,
        retry_at=retry_at,
        crashes=() if crashes == "[]" else tuple(json.loads(crashes)),
        restarts=restarts,
        note=note,
    )
