"""From what was seen to what is said: judge, gates, ledger, queue.

It does not know where observations come from, so that a recorded session is replayed by the same code at full speed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from sidecars.inject.deliver import Deliverer, address, compose
from sidecars.inject.gate import Gates
from sidecars.judge.verdict import Judge, Verdict, quoted_from
from sidecars.observe.observation import Observation
from sidecars.sidecar_type import SidecarType
from witness.assignment import Assignment
from witness.clock import Clock
from witness.errors import QueueFullError
from witness.journal import Decision, Journal, Usage


class Observer:
    """One sidecar's mind.

    Args:
        kind: its type.
        assignment: whom it observes.
        judge: who judges.
        gates: may it be said.
        journal: where every decision is recorded.
        clock: where the time comes from.
        deliverer: how it gets there; None says nothing aloud (replay, dry run).
    """

    def __init__(
        self,
        kind: SidecarType,
        assignment: Assignment,
        *,
        judge: Judge,
        gates: Gates,
        journal: Journal,
        clock: Clock,
        deliverer: Deliverer | None,
    ) -> None:
        self._kind, self._assignment, self._judge, self._gates = kind, assignment, judge, gates
        self._journal, self._clock, self._deliverer = journal, clock, deliverer
        self._silenced = ""

    def consider(self, seen: Sequence[Observation], position: str = "") -> list[Decision]:
        """Judge what was seen, record every decision, and deliver what passes the gates.

        Decisions and the reading position are one transaction, so that a sidecar that is killed in between neither
        judges an event twice nor skips one; a nudge that was recorded and not queued is queued by ``recover``.

        Args:
            seen: completed actions, oldest first.
            position: the spool position after them, empty when they come from elsewhere.

        Raises:
            JournalError: the journal cannot be used.
        """
        verdicts = self._verdicts(seen)
        spoken: list[tuple[Decision, float]] = []
        decisions = []
        with self._journal.transaction():
            for verdict in verdicts:
                decision, delay = self._decide(verdict, seen)
                self._journal.decisions.add(decision)
                decisions.append(decision)
                if decision.outcome == "injected":
                    self._gates.take_slot(delay)
                    spoken.append((decision, delay))
            if position:
                self._journal.decisions.set_cursor(self._assignment.group.run, self._assignment.name, position)
        for decision, delay in spoken:
            self._deliver(decision, delay)
        return decisions

    def recover(self) -> None:
        """Queue what a predecessor decided to say and was killed before it could."""
        if self._deliverer is None:
            return
        for decision in self._journal.decisions.injected(self._assignment.group.run, self._assignment.name):
            if decision.stage or decision.nudge:
                continue
            if self._deliverer.waits(decision.id):
                self._journal.decisions.stage(decision.id, "enqueued")
            else:
                self._deliver(decision, 0.0)

    # -- one verdict ------------------------------------------------------------------------------------------------

    def _verdicts(self, seen: Sequence[Observation]) -> list[Verdict]:
        if not seen:
            return []
        silenced = self._gates.stopped() or self._gates.over_budget()
        if silenced.partition(":")[0] != self._silenced.partition(":")[0]:
            self._journal.note(
                self._clock.wall(),
                "sidecar-silenced" if silenced else "sidecar-speaks-again",
                run=self._assignment.group.run,
                member=self._assignment.name,
                reason=silenced or self._silenced,
            )
            self._silenced = silenced
        if silenced and self._kind.asks_model:
            return []
        began = self._clock.monotonic()
        verdicts = self._judge.judge(seen)
        seconds = (self._clock.monotonic() - began) / max(1, len(verdicts))
        return [verdict if verdict.usage else replace(verdict, usage=Usage(seconds=seconds)) for verdict in verdicts]

    def _decide(self, verdict: Verdict, seen: Sequence[Observation]) -> tuple[Decision, float]:
        decision = Decision(
            id=os.urandom(6).hex(),
            run=self._assignment.group.run,
            sidecar=self._assignment.name,
            time=self._clock.wall(),
            monotonic=self._clock.monotonic(),
            outcome="silent",
            reason=verdict.rule,
            evidence=verdict.evidence,
            confidence=str(verdict.confidence) if verdict.signal else "",
            event=verdict.observation or (seen[-1].id if seen else ""),
            usage=verdict.usage,
        )
        if verdict.error:
            return replace(decision, outcome="failed", reason=verdict.error), 0.0
        if not verdict.signal:
            return decision, 0.0
        source = quoted_from(verdict.evidence, seen)
        if source is None:
            return replace(decision, outcome="refused", reason="evidence: it is not in what was seen"), 0.0
        words = compose(verdict, self._kind.snippets)
        message = address(self._assignment.name, words)
        decision = replace(decision, message=message, event=verdict.observation or source)
        if not words.strip():
            return replace(decision, outcome="refused", reason="message: the judge gave no words"), 0.0
        ruling = self._gates.rule(verdict, message, decision.id)
        if not ruling.passed:
            return replace(decision, outcome="refused", reason=ruling.reason), 0.0
        reason = ", ".join(part for part in (verdict.rule, ruling.wait) if part)
        return replace(decision, outcome="injected", reason=reason), ruling.delay

    def _deliver(self, decision: Decision, delay: float) -> None:
        if self._deliverer is None:
            return
        try:
            file = self._deliverer.enqueue(decision, self._clock.wall() + delay if delay else 0.0)
        except (QueueFullError, OSError) as error:
            self._journal.decisions.stage(decision.id, "undelivered", f"queue: {error}")
        else:
            self._journal.decisions.queued(decision.id, file)
