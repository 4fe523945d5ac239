"""The ledger: what the sidecars decided, what became of it, what it cost."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from witness.journal.records import Decision, Subject, Usage

if TYPE_CHECKING:
    from witness.journal.database import Journal

_OWN = tuple(field.name for field in fields(Decision) if field.name != "usage")
_USAGE = tuple(field.name for field in fields(Usage))
_COLUMNS = ", ".join(_OWN + _USAGE)
_MARKS = ", ".join("?" * len(_OWN + _USAGE))


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
    heeded: int = 0
    unheeded: int = 0
    undecided: int = 0
    unsaid: int = 0


# Why a remark that was put off was never made.
UNSAID = "unsaid: the run ended first"
# So many remarks of a rule must have been judged before anything is concluded from them.
JUDGED_ENOUGH = 5

# What costs may be summed by, and the column or expression behind it.
COSTS_BY = {
    "sidecar": "sidecar",
    "run": "run",
    "day": "date(time, 'unixepoch', 'localtime')",
    "rule": "sidecar || CASE rule WHEN '' THEN '' ELSE '/' || rule END",
}


class Heeding(NamedTuple):
    """How often what a rule said was heeded."""

    sidecar: str
    rule: str
    yes: int
    no: int
    undecided: int

    @property
    def judged(self) -> int:
        """Remarks of which it is known."""
        return self.yes + self.no

    @property
    def unheeded(self) -> float:
        """The share of those that were not heeded; 0 when none is known."""
        return self.no / self.judged if self.judged else 0.0


class Lines(NamedTuple):
    """What became of the lines that a sidecar said in a run.

    Args:
        said: lines that were queued for the agent.
        delivered: of these, the ones that were handed over to its client.
        seen: of these, the ones that its transcript shows as given to the model.
        heeded, unheeded: remarks in them that it was seen to follow, or not; of the others that is not known.
    """

    said: int = 0
    delivered: int = 0
    seen: int = 0
    heeded: int = 0
    unheeded: int = 0


class PriorInjection(NamedTuple):
    """What the gates need to know of an earlier remark: one that was said, or that waits to be said.

    Args:
        sidecar, rule, words, line: as in ``Decision``.
        subjects: those that were named, and all that still wait.
        spoken: monotonic seconds at which it was said, 0 when it waits.
    """

    sidecar: str
    rule: str
    words: str
    subjects: tuple[Subject, ...]
    line: str
    spoken: float


class Spoken(NamedTuple):
    """What one sidecar has said in a run: how many lines, and the monotonic second of the last."""

    lines: int
    last: float


class DecisionLog:
    """Reads and writes decisions. Caps and cooldowns are read from here, so a respawn resets none of them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def add(self, decision: Decision) -> None:
        """Record one decision."""
        self._journal.run(f"INSERT INTO decisions ({_COLUMNS}) VALUES ({_MARKS})", *_values(decision))  # noqa: S608

    def update(self, decision: Decision) -> None:
        """Write a decision anew: what was held back is said, or has become of it what it has."""
        self._journal.run(
            f"UPDATE decisions SET ({_COLUMNS}) = ({_MARKS}) WHERE id = ?",  # noqa: S608
            *_values(decision), decision.id,
        )  # fmt: skip

    def of(self, run: str, sidecar: str = "", last: int = 1000) -> list[Decision]:
        """The newest decisions of a run, oldest first; of one sidecar, or of all."""
        return self._select("run = ? AND ? IN ('', sidecar)", run, sidecar, last=last)

    def last_signal(self, run: str, sidecar: str) -> Decision | None:
        """The newest thing that a sidecar had to say in a run, whether or not it was said; None when nothing was."""
        found = self._select("run = ? AND sidecar = ? AND confidence != ''", run, sidecar, last=1)
        return found[0] if found else None

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
        """The lines that were said in a run, oldest first; by one sidecar, or by all."""
        return self._select(
            "run = ? AND outcome = 'injected' AND line = id AND ? IN ('', sidecar)", run, sidecar, last=1000
        )

    def tally(self, run: str) -> list[tuple[str, int, int, int]]:
        """Of each sidecar of a run: its name, how many signals it reported, how many lines were said and seen."""
        rows = self._journal.run(
            "SELECT sidecar, SUM(outcome IN ('injected', 'refused')), SUM(outcome = 'injected' AND line = id),"
            " SUM(outcome = 'injected' AND line = id AND stage = 'seen') FROM decisions WHERE run = ?"
            " GROUP BY sidecar ORDER BY sidecar",
            run,
        ).fetchall()
        return [(str(name), int(reported), int(said), int(seen)) for name, reported, said, seen in rows]

    def lines_of_living(self) -> dict[tuple[str, str], Lines]:
        """What became of what each sidecar said in each living run, by (run, sidecar): one query for the whole town."""
        return self._lines("r.run IN (SELECT run FROM groups WHERE state != 'NUKED')")

    def lines(self, run: str) -> dict[tuple[str, str], Lines]:
        """The same of one run, which may be over."""
        return self._lines("r.run = ?", run)

    def _lines(self, where: str, *values: str) -> dict[tuple[str, str], Lines]:
        # A line holds one remark or several, each a decision of its own; what was heeded is judged of each.
        rows = self._journal.run(
            "SELECT r.run, r.sidecar, SUM(r.line = r.id), SUM(r.line = r.id AND r.stage IN ('drained', 'seen')),"  # noqa: S608
            " SUM(r.line = r.id AND r.stage = 'seen'), SUM(r.heeded = 'yes'), SUM(r.heeded = 'no')"
            f" FROM decisions r WHERE {where} AND r.outcome = 'injected' GROUP BY r.run, r.sidecar",
            *values,
        ).fetchall()  # fmt: skip
        return {(run, sidecar): Lines(*numbers) for run, sidecar, *numbers in rows}

    def held(self, run: str, sidecar: str) -> list[Decision]:
        """What a sidecar still has to say in a run, oldest first."""
        return self._select("run = ? AND sidecar = ? AND stage = 'held'", run, sidecar, last=100_000)

    def hand_over(self, run: str, to: str) -> None:
        """Let a run go on from another one: what was said in that counts in this."""
        self._journal.run("UPDATE decisions SET run = ? WHERE run = ?", to, run)

    def leave_unsaid(self, run: str, sidecar: str = "") -> int:
        """Record of what still waits to be said that it never will be, the run having ended; how much that was.

        Args:
            run: the run.
            sidecar: only this one's; all when empty.
        """
        return self._journal.run(
            "UPDATE decisions SET stage = 'unsaid', reason = reason || CASE reason WHEN '' THEN '' ELSE '; ' END || ?"
            " WHERE run = ? AND ? IN ('', sidecar) AND stage = 'held'",
            UNSAID, run, sidecar,
        ).rowcount  # fmt: skip

    def said(self, run: str) -> list[PriorInjection]:
        """What in a run has reached the agent, or may yet, oldest first."""
        rows = self._journal.run(
            "SELECT sidecar, rule, words, subjects, named, line, spoken FROM decisions WHERE run = ?"
            " AND (outcome = 'injected' AND stage != 'undelivered' OR stage = 'held') ORDER BY time, rowid",
            run,
        ).fetchall()  # fmt: skip
        return [
            PriorInjection(sidecar, rule, words, _subjects(subjects)[: named if spoken else None], line, spoken)
            for sidecar, rule, words, subjects, named, line, spoken in rows
        ]

    def spoken(self, run: str) -> dict[str, Spoken]:
        """How much each sidecar of a run has said that has reached the agent, or may yet, by its name."""
        rows = self._journal.run(
            "SELECT sidecar, COUNT(DISTINCT line), MAX(spoken) FROM decisions WHERE run = ? AND outcome = 'injected'"
            " AND stage != 'undelivered' AND spoken > 0 GROUP BY sidecar",
            run,
        ).fetchall()
        return {name: Spoken(lines, last) for name, lines, last in rows}

    def remarks(self, run: str, sidecar: str) -> list[Decision]:
        """What the rules of a sidecar have said in a run, oldest first: what may have been heeded."""
        return self._select("run = ? AND sidecar = ? AND outcome = 'injected' AND rule != ''", run, sidecar, last=1000)

    def heeding(self, sidecar: str = "", rule: str = "") -> list[Heeding]:
        """How often the remarks of each rule were heeded, in all runs; of one sidecar and rule, or of all."""
        rows = self._journal.run(
            "SELECT sidecar, rule, SUM(heeded = 'yes'), SUM(heeded = 'no'), SUM(heeded = 'undecided') FROM decisions"
            " WHERE heeded != '' AND ? IN ('', sidecar) AND ? IN ('', rule) GROUP BY sidecar, rule",
            sidecar, rule,
        ).fetchall()  # fmt: skip
        return [Heeding(*row) for row in rows]

    def judge_heeded(self, decision: str, heeded: str) -> None:
        """Record whether a remark was heeded: yes, no or undecided."""
        self._journal.run("UPDATE decisions SET heeded = ? WHERE id = ?", heeded, decision)

    def queued(self, decision: str, nudge: str) -> None:
        """Record the file in which a line waits; a stage that it has reached meanwhile stays."""
        self._journal.run(
            "UPDATE decisions SET nudge = ?, stage = CASE stage WHEN '' THEN 'enqueued' ELSE stage END WHERE line = ?",
            nudge, decision,
        )  # fmt: skip

    def stage(self, decision: str, stage: str, reason: str = "") -> None:
        """Record how far the delivery of a line has come: enqueued, drained, seen or undelivered."""
        self._journal.run(
            "UPDATE decisions SET stage = ?, reason = CASE ? WHEN '' THEN reason ELSE ? END WHERE line = ?",
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
        # A line is counted once, and of each rule every remark.
        said = "1" if by == "rule" else "line = id"
        rows = self._journal.run(
            f"SELECT {COSTS_BY[by]} AS key, COUNT(*), SUM(outcome = 'injected' AND {said}),"  # noqa: S608
            " SUM(outcome = 'refused' AND gate = 'holdout'), SUM(calls), SUM(input_tokens),"
            " SUM(cached_tokens), SUM(cache_written_tokens), SUM(output_tokens), SUM(dollars),"
            " SUM(heeded = 'yes'), SUM(heeded = 'no'), SUM(heeded = 'undecided'), SUM(stage = 'unsaid') FROM decisions"
            " WHERE ? IN ('', run) AND ? IN ('', sidecar) AND time >= ? GROUP BY key ORDER BY key",
            run, sidecar, since,
        ).fetchall()  # fmt: skip
        return [CostRow(*row) for row in rows]

    def _select(self, where: str, *values: Any, last: int) -> list[Decision]:
        rows = self._journal.run(
            f"SELECT {_COLUMNS} FROM decisions WHERE {where} ORDER BY time DESC, rowid DESC LIMIT ?",  # noqa: S608
            *values, last,
        ).fetchall()  # fmt: skip
        return [_decision(row) for row in reversed(rows)]


def _values(decision: Decision) -> list[Any]:
    usage = decision.usage or Usage()
    if decision.outcome == "injected" and not decision.line:
        decision = replace(decision, line=decision.id)  # a remark that stands alone is a line of its own
    own = [getattr(decision, name) for name in _OWN]
    own[_OWN.index("subjects")] = json.dumps(decision.subjects, ensure_ascii=False)
    return own + [getattr(usage, name) for name in _USAGE]


@lru_cache(maxsize=4096)  # each step reads all that was said before
def _subjects(text: str) -> tuple[Subject, ...]:
    return () if text == "[]" else tuple(Subject(*each) for each in json.loads(text))


def _decision(row: tuple[Any, ...]) -> Decision:
    own = dict(zip(_OWN, row, strict=False))
    own["subjects"] = _subjects(own["subjects"])
    return Decision(**own, usage=Usage(*row[len(_OWN) :]))
