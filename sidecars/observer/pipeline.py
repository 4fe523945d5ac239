"""From what was seen to what is said: judge, gates, ledger, queue.

It does not know where observations come from, so that a recorded session is replayed by the same code at full speed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from sidecars.definition.sidecar_type import SidecarType
from sidecars.observer.inject.deliver import Deliverer, address, compose
from sidecars.observer.inject.gate import Gates
from sidecars.observer.judge.rate_limit import Pace
from sidecars.observer.judge.verdict import Judge, Verdict, quoted_from
from sidecars.observer.observe.observation import Observation
from witness.assignment import Assignment
from witness.clock import Clock
from witness.errors import QueueFullError
from witness.journal import Decision, Journal, Usage

_STALE = 600.0
_MOST_WAITING = 100


class DecisionPipeline:
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
        # What waits for a slow judge, and since when.
        self._waiting: list[Observation] = []
        self._since = 0.0
        run, name = assignment.group.run, assignment.name
        self._pace = Pace(journal, run, name, kind.calls_per_hour, clock) if kind.asks_model else None

    @property
    def due(self) -> float | None:
        """Seconds until ``ask`` should be called; None while nobody waits."""
        if not self._waiting:
            return None
        due = self._since + self._kind.batch - self._clock.monotonic()
        return max(0.0, due, self._pace.wait() if self._pace else 0.0)

    def take(self, seen: Sequence[Observation], position: str = "") -> list[Decision]:
        """Judge at once what can be judged at once; the rest waits for ``ask``.

        Decisions and the reading position are one transaction, so that a sidecar that is killed in between neither
        judges an event twice nor skips one; a nudge that was recorded and not queued is queued by ``recover``.

        Args:
            seen: completed actions, oldest first.
            position: the spool position after them, empty when they come from elsewhere.

        Raises:
            JournalError: the journal cannot be used.
        """
        began = self._clock.monotonic()
        verdicts, later = self._sift(seen) if seen else ([], [])
        seconds = (self._clock.monotonic() - began) / max(1, len(verdicts))
        verdicts = [
            verdict if verdict.usage else replace(verdict, usage=Usage(seconds=seconds)) for verdict in verdicts
        ]
        if later and not self._waiting:
            self._since = self._clock.monotonic()
        self._wait_for(later)
        return self._record(verdicts, seen, "" if self._waiting else position)

    def ask(self, position: str = "") -> list[Decision]:
        """Put what waits to the slow judge, all of it at once.

        Args:
            position: as for ``take``.
        """
        if self._silenced_now() and self._kind.asks_model:
            self._waiting.clear()
            return self._record([], [], position)
        asked, self._waiting = self._waiting, []
        try:
            verdicts = self._judge.judge(asked)
        except Exception as error:  # noqa: BLE001 - as above
            verdicts = [_tripped(error)]
        failure = next((verdict for verdict in verdicts if verdict.passing), None)
        if self._pace and any(verdict.usage and verdict.usage.calls for verdict in verdicts):
            if failure:
                self._pace.failed(failure.pause)
            else:
                self._pace.succeeded()
        if failure and not self._pace:
            failure = None
        if failure:
            self._wait_for(asked)  # asked again when the trouble is over
            position = ""
        return self._record(verdicts, asked, position)

    def _sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        try:
            return self._judge.sift(seen)
        except Exception as error:  # noqa: BLE001 - an event that trips a judge must not trip every successor too
            return [_tripped(error)], []

    def _wait_for(self, later: Sequence[Observation]) -> None:
        oldest = self._clock.wall() - _STALE
        # What happened long ago (a backlog at the start, an hour of trouble) is no longer worth a word, nor a call.
        self._waiting = [each for each in [*self._waiting, *later] if not each.time or each.time >= oldest][
            -_MOST_WAITING:
        ]

    def _record(self, verdicts: Sequence[Verdict], seen: Sequence[Observation], position: str) -> list[Decision]:
        spoken: list[tuple[Decision, float]] = []
        decisions = []
        with self._journal.transaction():
            for verdict in verdicts:
                decision, delay = self._decide(verdict, seen)
                self._journal.decisions.add(decision)
                decisions.append(decision)
                if decision.outcome == "injected":
                    spoken.append((decision, delay))
            if position:
                self._journal.sidecars.set_position(self._assignment.group.run, self._assignment.name, position)
        for decision, delay in spoken:
            self._deliver(decision, delay)
        return decisions

    def pass_over(self, seen: Sequence[Observation], position: str) -> None:
        """Record that actions are not judged because judging them ended several predecessors."""
        reason = "passed over: several predecessors ended on it"
        self._record([Verdict(False, observation=each.id, error=reason) for each in seen], seen, position)

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

    def _silenced_now(self) -> str:
        """Why nobody may ask the model just now; each change is one line of the town's history."""
        silenced = self._gates.stopped() or self._gates.over_budget()
        if silenced.partition(":")[0] != self._silenced.partition(":")[0]:
            kind = "sidecar-silenced" if silenced else "sidecar-speaks-again"
            self.note(kind, silenced or self._silenced)
            self._silenced = silenced
        return silenced

    def note(self, kind: str, reason: str) -> None:
        """Add a line about this sidecar to the town's history."""
        self._journal.note(
            self._clock.wall(), kind, run=self._assignment.group.run, member=self._assignment.name, reason=reason
        )

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
            rule=verdict.rule,
            usage=verdict.usage,
        )
        if verdict.error:
            short = _in_short(decision.event, seen)
            return replace(decision, outcome="failed", reason=verdict.error, evidence=short), 0.0
        if not verdict.signal:
            return replace(decision, evidence=verdict.evidence or _in_short(decision.event, seen)), 0.0
        source = quoted_from(verdict.evidence, seen)
        if source is None:
            return replace(
                decision, outcome="refused", gate="evidence", reason="evidence: it is not in what was seen"
            ), 0.0
        words = compose(verdict, self._kind.snippets)
        message = address(self._assignment.name, words)
        known = any(each.id == verdict.observation for each in seen)
        event = verdict.observation if known else source
        decision = replace(decision, message=message, words=words, event=event)
        if not words.strip():
            return replace(decision, outcome="refused", gate="message", reason="message: the judge gave no words"), 0.0
        ruling = self._gates.rule(verdict, words, decision.id)
        if not ruling.passed:
            return replace(decision, outcome="refused", gate=ruling.gate, reason=ruling.reason), 0.0
        reason = ", ".join(part for part in (verdict.rule, ruling.wait) if part)
        spoken = decision.monotonic + ruling.delay
        return replace(decision, outcome="injected", reason=reason, line=decision.id, spoken=spoken), ruling.delay

    def _deliver(self, decision: Decision, delay: float) -> None:
        if self._deliverer is None:
            return
        try:
            file = self._deliverer.enqueue(decision, self._clock.wall() + delay if delay else 0.0)
        except (QueueFullError, OSError) as error:
            self._journal.decisions.stage(decision.id, "undelivered", f"queue: {error}")
        else:
            self._journal.decisions.queued(decision.id, file)


def _in_short(event: str, seen: Sequence[Observation]) -> str:
    """What was silently passed over, for whoever reads the log."""
    found = next((each for each in seen if each.id == event), None)
    if found is None:
        return ""
    words = found.command.strip().splitlines()[:1] or found.paths[:1] or found.output.strip().splitlines()[:1]
    return " ".join([found.tool, *words]).strip()[:120]


def _tripped(error: Exception) -> Verdict:
    return Verdict(False, error=f"judge: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
