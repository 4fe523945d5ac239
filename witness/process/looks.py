"""Looks at the process table that know what they have missed.

The kernel lists processes in the order of their pids, and a child has a higher one than its parent (until the numbers
start again from the lowest). So one listing names at least one process of every line of descent that lives on while it
is made: where the walk comes upon a process that has just ended, that one's child stands further on. What a listing
names may still be gone when it is read, and then it can have left a child that the listing does not name. A look that
counts such processes tells "nobody is there" from "nobody was seen".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from witness.process import ProcessId
from witness.process.table import LINUX, Mark, Markers, Row, Table, list_pids, look_up, newest_pid, read_table


@dataclass(frozen=True, slots=True)
class Look:
    """One look.

    Args:
        table: the process table.
        marks: who carries which marker.
        missed: pids of processes that lived when the look began or shortly before, and ended before it was known whose
            they are. While there is one, nobody can be said to be absent.
    """

    table: Table
    marks: Mapping[ProcessId, Mark]
    missed: frozenset[int]


class Looks:
    """Looks in a row; the later ones of a row read only what is new, so the time in which to miss it is short."""

    def __init__(self, markers: Markers) -> None:
        self._markers = markers
        self._rows: dict[int, Row] = {}
        self._dead: set[ProcessId] = set()

    def take(self, *, afresh: bool = True) -> Look:
        """Look once.

        Args:
            afresh: read everybody again; otherwise those of the last look who are still listed stand as they did then.
        """
        if not LINUX:
            table = read_table()
            return Look(table, self._markers.marks(table), frozenset())
        newest, kept = newest_pid(), {} if afresh else self._rows
        rows = {pid: kept.get(pid) or look_up(pid) for pid in list_pids()}
        found = {pid: row for pid, row in rows.items() if row}
        marks = self._markers.marks(found)
        # One that was dead before this listing has left no child since.
        dead = {row.process for row in found.values() if row.defunct} | self._markers.unread
        missed = {pid for pid, row in rows.items() if row is None} | {each.pid for each in dead - self._dead}
        self._rows, self._dead = found, dead
        if newest_pid() < newest:  # pids began anew: a child may have got one that the listing had passed by
            missed.add(newest)
            self._rows = {}
        return Look(found, marks, frozenset(missed))
