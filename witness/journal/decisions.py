"""The ledger: what the sidecars decided, what became of it, what it cost."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from witness.journal.records import Decision, Usage

if TYPE_CHECKING:
    from witness.journal.database import Journal

_PLAIN = "id, run, sidecar, time, monotonic, outcome, reason, message, evidence, confidence, event, nudge, stage"
_USAGE = "model, input_tokens, cached_tokens, cache_written_tokens, output_tokens, dollars, seconds, calls"


@dataclass(frozen=True, slots=True)
class Spend:
    """Dollars and calls of some span."""

    dollars: float
    calls: int


@dataclass(frozen=True, slots=True)
class CostRow:
    """What one sidecar, run or day came to."""

    key: str
    decisions: int
    injected: int
    held_out: int
    calls: int
    input_tokens: int
    cached_tokens: int
    cache_written_tokens: int
    output_tokens: int
    dollars: float


# What costs may be summed by, and the column or expression behind it.
COSTS_BY = {"sidecar": "sidecar", "run": "run", "day": "date(time, 'unixepoch', 'localtime')"}


class PriorInjection(NamedTuple):
    """What the gates need to know of an earlier injection."""

    sidecar: str
    monotonic: float
    message: str
    reason: str


class DecisionLog:
    """Reads and writes decisions. Caps and cooldowns are read from here, so a respawn resets none of them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def add(self, decision: Decision) -> None:
        """Record one decision."""
        values = astuple(decision)[:-1] + astuple(decision.usage or Usage())
        marks = ", ".join("?" * len(values))
        self._journal.run(f"INSERT INTO decisions ({_PLAIN}, {_USAGE}) VALUES ({marks})", *values)  # noqa: S608

    def of(self, run: str, sidecar: str = "", last: int = 1000) -> list[Decision]:
        """The newest decisions of a run, oldest first; of one sidecar, or of all."""
        return self._select("run = ? AND ? IN ('', sidecar)", run, sidecar, last=last)

    @property
    def last_sequence(self) -> int:
        """Number of the newest decision, 0 when there is none."""
        return int(self._journal.run("SELECT ifnull(max(rowid), 0) FROM decisions").fetchone()[0])

    def after(self, number: int, most: int = 10_000) -> list[tuple[int, Decision]]:
        """Decisions of the whole town that are newer than that one, oldest first, with their numbers."""
        numbers = self._journal.run(
            "SELECT rowid FROM decisions WHERE rowid > ? ORDER BY rowid LIMIT ?", number, most
        ).fetchall()
        found = [self._select("rowid = ?", each, last=1) for (each,) in numbers]
        return [(each, decision) for (each,), (decision,) in zip(numbers, found, strict=True)]

    def injected(self, run: str, sidecar: str = "") -> list[Decision]:
        """What was said in a run, oldest first; by one sidecar, or by all."""
        return self._select("run = ? AND outcome = 'injected' AND ? IN ('', sidecar)", run, sidecar, last=1000)

    def said(self, run: str) -> list[PriorInjection]:
        """What was said in a run and has reached the agent or may yet, oldest first."""
        rows = self._journal.run(
            "SELECT sidecar, monotonic, message, reason FROM decisions"
            " WHERE run = ? AND outcome = 'injected' AND stage != 'undelivered' ORDER BY time, rowid",
            run,
        ).fetchall()  # fmt: skip
        return [PriorInjection(*row) for row in rows]

    def queued(self, decision: str, nudge: str) -> None:
        """Record the file in which an injection waits; a stage that it has reached meanwhile stays."""
        self._journal.run(
            "UPDATE decisions SET nudge = ?, stage = CASE stage WHEN '' THEN 'enqueued' ELSE stage END WHERE id = ?",
            nudge, decision,
        )  # fmt: skip

    def stage(self, decision: str, stage: str, reason: str = "") -> None:
        """Record how far the delivery of an injection has come: drained, seen or undelivered."""
        self._journal.run(
            "UPDATE decisions SET stage = ?, reason = CASE ? WHEN '' THEN reason ELSE ? END WHERE id = ?",
            stage, reason, reason, decision,
        )  # fmt: skip

    def spend(self, run: str = "", since: float = 0.0) -> Spend:
        """What the model calls cost: of one run or of all, from a wall-clock instant on."""
        row = self._journal.run(
            "SELECT COALESCE(SUM(dollars), 0.0), COALESCE(SUM(calls), 0) FROM decisions WHERE ? IN ('', run)"
            " AND time >= ?",
            run, since,
        ).fetchone()  # fmt: skip
        return Spend(row[0], row[1])

    def call_times(self, run: str, sidecar: str, since: float) -> list[float]:
        """When a sidecar asked a model, oldest first, from a wall-clock instant on."""
        rows = self._journal.run(
            "SELECT time FROM decisions WHERE run = ? AND sidecar = ? AND time >= ? AND calls > 0 ORDER BY time",
            run, sidecar, since,
        ).fetchall()  # fmt: skip
        return [row[0] for row in rows]

    def costs(self, by: str, run: str = "", sidecar: str = "", since: float = 0.0) -> list[CostRow]:
        """Sums over decisions.

        Args:
            by: one of ``COSTS_BY``.
            run, sidecar: only these; all when empty.
            since: wall clock.
        """
        rows = self._journal.run(
            f"SELECT {COSTS_BY[by]} AS key, COUNT(*), SUM(outcome = 'injected'),"  # noqa: S608
            " SUM(outcome = 'refused' AND reason LIKE 'holdout%'), SUM(calls), SUM(input_tokens),"
            " SUM(cached_tokens), SUM(cache_written_tokens), SUM(output_tokens), SUM(dollars) FROM decisions"
            " WHERE ? IN ('', run) AND ? IN ('', sidecar) AND time >= ? GROUP BY key ORDER BY key",
            run, sidecar, since,
        ).fetchall()  # fmt: skip
        return [CostRow(*row) for row in rows]

    # -- where a sidecar stopped reading -----------------------------------------------------------------------------

    def cursor(self, run: str, sidecar: str) -> str:
        """The spool position after the last event that the sidecar has judged, empty when none."""
        row = self._journal.run("SELECT position FROM cursors WHERE run = ? AND sidecar = ?", run, sidecar).fetchone()
        return row[0] if row else ""

    def set_cursor(self, run: str, sidecar: str, position: str) -> None:
        """Remember that position, so that a respawned sidecar goes on where its predecessor stopped."""
        self._journal.run(
            "INSERT INTO cursors VALUES (?, ?, ?)"
            " ON CONFLICT (run, sidecar) DO UPDATE SET position = excluded.position",
            run, sidecar, position,
        )  # fmt: skip

    def _select(self, where: str, *values: Any, last: int) -> list[Decision]:
        rows = self._journal.run(
            f"SELECT {_PLAIN}, {_USAGE} FROM decisions WHERE {where} ORDER BY time DESC, rowid DESC LIMIT ?",  # noqa: S608
            *values, last,
        ).fetchall()  # fmt: skip
        plain = len(_PLAIN.split(", "))
        return [replace(Decision(*row[:plain]), usage=Usage(*row[plain:])) for row in reversed(rows)]
