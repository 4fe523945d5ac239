"""From what was seen to what is said: judge, gates, ledger, queue.

It does not know where observations come from, so that a recorded session is replayed by the same code at full speed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypedDict

from sidecars.observer.inject.deliver import Deliverer, Line, address, as_mark, compose, gather
from sidecars.observer.inject.gate import Gates, gate_of
from sidecars.observer.judge.asking import Asking, Pace
from sidecars.observer.judge.verdict import Judge, Verdict, quoted_from
from sidecars.type_reader.sidecar_type import SidecarType
from witness.assignment import Assignment
from witness.clock import Clock
from witness.errors import QueueFullError
from witness.journal import Decision, Journal, Usage
from witness.judging.observation import Observation

_MOST_WAITING = 100
# An age is told once so many steps have followed, or, where they were not counted, after so many seconds.
_STEPS, _LONG = 2, 10.0
_REMEMBERED_STEPS = 1_000
# So many earlier remarks are shown to a judge.
_REMEMBERED_REMARKS = 20


class DecisionPipeline:
    """One sidecar's mind.

    Args:
        kind: its type.
        assignment: which agent it observes.
        judge: who judges.
        gates: may it be said.
        journal: where every decision is recorded.
        clock: where the time comes from.
        deliverer: how it gets there; None says nothing aloud (replay, dry run).
        aside: whether a slow judge is asked in a thread of its own; else its answers are awaited.
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
        aside: bool = False,
    ) -> None:
        self._kind, self._assignment, self._judge, self._gates = kind, assignment, judge, gates
        self._journal, self._clock, self._deliverer = journal, clock, deliverer
        self._silenced = ""
        # What waits for a slow judge, and since when.
        self._waiting: list[Observation] = []
        self._since = 0.0
        self._asking = Asking(judge, aside=aside and kind.judge != "rules")
        run, name = assignment.group.run, assignment.name
        self._pace = Pace(journal, run, name, kind.calls_per_hour, clock) if kind.asks_model else None
        # What waits to be said, and the monotonic instant at which it may be; a predecessor's is said as well.
        self._held = journal.decisions.held(run, name)
        self._release_at = 0.0
        # How many steps the agent has made, and at which of them an action was seen.
        self._step = 0
        self._step_of: dict[str, int] = {}

    @property
    def due(self) -> float | None:
        """Seconds until ``tick`` should be called; None while nothing waits."""
        now = self._clock.monotonic()
        waits = [max(0.0, self._release_at - now)] if self._held else []
        if self._asks_next:
            turn = self._since + self._kind.batch - now
            waits.append(max(0.0, turn, self._pace.wait() if self._pace else 0.0))
        return min(waits, default=None)

    @property
    def _asks_next(self) -> bool:
        return bool(self._waiting) and not self._asking.busy

    def fileno(self) -> int:
        """Readable once a slow judge has answered, so that ``tick`` should be called; -1 when nobody is slow."""
        return self._asking.fileno()

    def close(self) -> None:
        """Let go of the judge."""
        self._asking.close()

    def take(self, seen: Sequence[Observation], position: str = "", passed: int = 0) -> list[Decision]:
        """Judge at once what can be judged at once; the rest waits for ``ask``.

        Decisions and the reading position are one transaction, so that a sidecar that is killed in between neither
        judges an event twice nor skips one; a nudge that was recorded and not queued is queued by ``recover``.

        Args:
            seen: completed actions, oldest first.
            position: the spool position after them, empty when they come from elsewhere.
            passed: how many more steps the agent has made that are not looked at.

        Raises:
            JournalError: the journal cannot be used.
        """
        self._count(seen, passed)
        began = self._clock.monotonic()
        verdicts, later = self._sift(seen) if seen else ([], [])
        seconds = (self._clock.monotonic() - began) / max(1, len(verdicts))
        verdicts = [
            verdict if verdict.usage else replace(verdict, usage=Usage(seconds=seconds)) for verdict in verdicts
        ]
        if later and not self._waiting:
            self._since = self._clock.monotonic()
        self._wait_for(later)
        return self._record(verdicts, seen, self._settled(position))

    def tick(self, position: str = "") -> list[Decision]:
        """Do what is due: say what was held back, take a slow judge's answer, ask it anew.

        Args:
            position: as for ``take``.
        """
        decisions = self._answered(position)
        if self._held and self._release_at <= self._clock.monotonic():
            decisions += self._record([], [], "")
        turn = self._since + self._kind.batch <= self._clock.monotonic()
        if self._asks_next and turn and not (self._pace and self._pace.wait()):
            decisions += self.ask(position)
        return decisions

    def ask(self, position: str = "") -> list[Decision]:
        """Put what waits to the slow judge, all of it at once.

        Args:
            position: as for ``take``.
        """
        if not self._asks_next:
            return []
        if self._silenced_now() and self._kind.asks_model:
            self._waiting.clear()
            return self._record([], [], position)
        asked, self._waiting = self._waiting, []
        said = self._journal.decisions.said(self._assignment.group.run)
        self._asking.ask(asked, [each.words for each in said[-_REMEMBERED_REMARKS:]])
        return self._answered(position)

    def end_turn(self) -> list[Decision]:
        """Say now what cooldown and gap put off: the agent's turn ends, and later is after its work."""
        return self._record([], [], "", turn_ends=True) if self._held else []

    def finish(self) -> None:
        """The run has ended: take the answer that is on its way, and record what nobody will hear any more."""
        self._asking.wait()
        self._answered("")
        if self._waiting:
            self.note("sidecar-unjudged", f"{len(self._waiting)} actions were put to no judge before the run ended")
            self._waiting.clear()
        self._held = []
        self._journal.decisions.leave_unsaid(self._assignment.group.run, self._assignment.name)

    def _answered(self, position: str) -> list[Decision]:
        asked = self._asking.asked
        try:
            verdicts = self._asking.take()
        except Exception as error:  # noqa: BLE001 - as below
            verdicts = [_tripped(error)]
        if verdicts is None:
            return []
        failure = next((verdict for verdict in verdicts if verdict.passing), None)
        if self._pace and any(verdict.usage and verdict.usage.calls for verdict in verdicts):
            if failure:
                self._pace.failed(failure.pause)
            else:
                self._pace.succeeded()
        if failure and self._pace:  # asked again when the trouble is over
            later, self._waiting = self._waiting, []
            self._wait_for([*asked, *later])
        return self._record(verdicts, asked, self._settled(position))

    def _settled(self, position: str) -> str:
        """The position, where nothing before it waits for a judge."""
        return "" if self._waiting or self._asking.busy else position

    def _count(self, seen: Sequence[Observation], passed: int) -> None:
        for observation in seen:
            self._step += 1
            self._step_of[observation.id] = self._step
        self._step += passed
        while len(self._step_of) > _REMEMBERED_STEPS:
            del self._step_of[next(iter(self._step_of))]

    def _sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        try:
            return self._judge.sift(seen)
        except Exception as error:  # noqa: BLE001 - an event that trips a judge must not trip every successor too
            return [_tripped(error)], []

    def _wait_for(self, later: Sequence[Observation]) -> None:
        oldest = self._clock.wall() - self._kind.max_age
        # What happened long ago (a backlog at the start, an hour of trouble) is no longer worth a word, nor a call.
        self._waiting = [each for each in [*self._waiting, *later] if not each.time or each.time >= oldest][
            -_MOST_WAITING:
        ]

    def _record(
        self, verdicts: Sequence[Verdict], seen: Sequence[Observation], position: str, *, turn_ends: bool = False
    ) -> list[Decision]:
        """Record verdicts, and say what may be said by now: one line for each action, or for all that waited."""
        recorded: dict[str, Decision] = {}
        lines: list[Decision] = []
        with self._journal.transaction():
            for _, group in groupby(verdicts, key=lambda verdict: verdict.observation):
                for verdict in group:
                    decision = self._decide(verdict, seen)
                    self._journal.decisions.add(decision)
                    recorded[decision.id] = decision
                    if decision.stage == "held":
                        self._held.append(decision)
                lines += self._speak(recorded)
            if not verdicts:
                lines += self._speak(recorded, turn_ends)
            if position:
                self._journal.sidecars.set_position(self._assignment.group.run, self._assignment.name, position)
        for line in lines:
            self._deliver(line)
        return list(recorded.values())

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
                self._deliver(decision)

    # -- saying -----------------------------------------------------------------------------------------------------

    def _speak(self, recorded: dict[str, Decision], turn_ends: bool = False) -> list[Decision]:
        """Say what is held as far as the gates allow just now.

        Args:
            recorded: the decisions of this call; what becomes of others that were held is added.
            turn_ends: what only delays lets all through that is there, in one line.

        Returns:
            The decisions that stand for the lines which are to be queued.
        """
        lines = []
        while self._held:
            left = self._gates.lines_left()
            if not left:
                dropped, self._held = self._held, []
                self._update([_refused(replace(each, stage=""), self._gates.capped) for each in dropped], recorded)
            elif not turn_ends and (hold := self._gates.hold(min(each.monotonic for each in self._held))):
                self._release_at = self._clock.monotonic() + hold.seconds
                # What waits already keeps the name of the gate that it met first.
                self._held = [each if each.gate else _refused(each, hold.reason) for each in self._held]
                self._update(self._held, recorded)
                break
            else:
                line = gather(self._assignment.name, self._held, self._age, last=left == 1)
                self._held = list(line.left)
                said = [self._said(each, line) for each in line.said]
                self._update(said, recorded)
                lines.append(said[0])
                turn_ends = False  # one line; what found no room in it waits on
        return lines

    def _update(self, changed: Sequence[Decision], recorded: dict[str, Decision]) -> None:
        for decision in changed:
            self._journal.decisions.update(decision)
            recorded[decision.id] = decision

    def _said(self, decision: Decision, line: Line) -> Decision:
        lead = line.said[0].id
        held = f"held back: {decision.reason}" if decision.gate else ""
        return replace(
            decision,
            outcome="injected",
            stage="",
            reason=", ".join(part for part in (decision.rule, held) if part),
            message=line.text if decision.id == lead else decision.message,
            line=lead,
            spoken=self._clock.monotonic(),
            age=round(max(0.0, self._clock.wall() - decision.acted), 3) if decision.acted else None,
        )

    def _age(self, decision: Decision) -> str:
        """How long ago the action was, where the agent has gone on since."""
        seconds = self._clock.wall() - decision.acted
        if not decision.acted or seconds < 1:
            return ""
        step = self._step_of.get(decision.event)
        # How far the agent has come since a predecessor's time is not known.
        recent = self._step - step <= _STEPS if step is not None else seconds < _LONG
        return "" if recent else f"{ago(seconds)} ago"

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

    def _decide(self, verdict: Verdict, seen: Sequence[Observation]) -> Decision:
        """What a verdict comes to; one that may be said is ``held`` until the gates let it through."""
        event = verdict.observation or (seen[-1].id if seen else "")
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
            rule=verdict.rule,
            usage=verdict.usage,
            **_about(event, seen, verdict.evidence),
        )
        if verdict.error:
            short = _in_short(event, seen)
            return replace(decision, outcome="failed", reason=verdict.error, evidence=short)
        if not verdict.signal:
            return replace(decision, evidence=verdict.evidence or _in_short(event, seen))
        source = quoted_from(verdict.evidence, seen)
        if source is None:
            return _refused(decision, "evidence: it is not in what was seen")
        if not any(each.id == verdict.observation for each in seen):
            decision = replace(decision, **_about(source, seen, verdict.evidence))
        words = compose(verdict, self._kind.snippets)
        decision = self._worded(decision, verdict, words, seen)
        if not words.strip():
            return _refused(decision, "message: the judge gave no words")
        ruling = self._gates.rule(verdict, words, decision)
        if not ruling.passed:
            return _refused(decision, ruling.reason)
        if ruling.subjects and ruling.subjects[0] != verdict.places[0][0]:
            # The first place was told before: the words are those of the first that was not.
            values = dict(verdict.places)[ruling.subjects[0]]
            words = compose(replace(verdict, values=values), self._kind.snippets)
            decision = self._worded(decision, verdict, words, seen)
        return replace(decision, outcome="refused", stage="held", subjects=ruling.subjects)

    def _worded(self, decision: Decision, verdict: Verdict, words: str, seen: Sequence[Observation]) -> Decision:
        # The main agent reads the line: what it has not done itself is not told as its doing.
        if who := next((each.subagent for each in seen if each.id == decision.event), ""):
            words = f"By subagent {as_mark(who)}: {words}"
        source = verdict.source or self._kind.sources.get(verdict.snippet, "")
        return replace(decision, words=words, message=address(self._assignment.name, words, source), source=source)

    def _deliver(self, decision: Decision) -> None:
        if self._deliverer is None:
            return
        try:
            file = self._deliverer.enqueue(decision)
        except (QueueFullError, OSError) as error:
            self._journal.decisions.stage(decision.id, "undelivered", f"queue: {error}")
        else:
            self._journal.decisions.queued(decision.id, file)


class _About(TypedDict):
    event: str
    about: str
    seen: str
    acted: float


def _about(event: str, seen: Sequence[Observation], evidence: str) -> _About:
    """Which action a decision is about, who did it and how that is known."""
    found = next((each for each in seen if each.id == event), None)
    if found is None:
        return {"event": event, "about": "", "seen": "", "acted": 0.0}
    return {
        "event": event,
        "about": found.subagent_id or found.subagent or "main",
        "seen": found.known(evidence),
        "acted": found.time,
    }


def _refused(decision: Decision, reason: str) -> Decision:
    return replace(decision, outcome="refused", gate=gate_of(reason), reason=reason)


def ago(seconds: float) -> str:
    """A length of time for people: ``40 s``, ``5 min``, ``2 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.0f} h"


def _in_short(event: str, seen: Sequence[Observation]) -> str:
    """What was silently passed over, for people who read the log."""
    found = next((each for each in seen if each.id == event), None)
    if found is None:
        return ""
    words = found.command.strip().splitlines()[:1] or found.paths[:1] or found.output.strip().splitlines()[:1]
    return " ".join([found.tool, *words]).strip()[:120]


def _tripped(error: Exception) -> Verdict:
    return Verdict(False, error=f"judge: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
