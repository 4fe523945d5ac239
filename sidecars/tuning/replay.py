"""Running a sidecar over a recorded session at full speed: what it would have said, when, why, and for how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sidecars.observer.context import Context
from sidecars.observer.factory import Components
from sidecars.observer.judge.model import CombinedJudge
from sidecars.observer.judge.model_prompt import SILENT_TOKENS, question, system_prompt
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.judge.verdict import Judge, Verdict
from sidecars.observer.observe.event_source import ActionFilter
from sidecars.observer.observe.pane import PaneWatch
from sidecars.observer.observe.recorded import UNFINISHED, RecordedEvent
from sidecars.type_reader.sidecar_type import SidecarType
from witness.assignment import Assignment
from witness.clock import Clock, ManualClock
from witness.events.spool_reader import SpooledEvent
from witness.journal import Decision, Journal
from witness.journal.records import Usage
from witness.judging.observation import Observation
from witness.prices import Prices, dollars, price

# The naive way: the whole screen to the model, so often.
NAIVE_SECONDS = 10.0
_NAIVE_SCREEN = 4_000


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of it.

    Args:
        decisions: every decision, oldest first; their times are the recording's.
        began: wall clock of the first moment.
        seconds: how long the recorded session took.
        moments: how much was recorded.
        not_looked_at: shell commands whose effects were not recorded, so that their text was read.
        unfinished: calls that began and whose end was not recorded.
        calls, dollars: what the model was asked and cost, or would have.
        naive_calls, naive_dollars: the same for a call every ten seconds.
    """

    decisions: tuple[Decision, ...]
    began: float
    seconds: float
    moments: int
    calls: int
    dollars: float
    naive_calls: int
    naive_dollars: float
    not_looked_at: int = 0
    unfinished: int = 0

    @property
    def spoken(self) -> tuple[Decision, ...]:
        """What it would have said."""
        return tuple(each for each in self.decisions if each.outcome == "injected")


def replay(
    parts: Components, assignment: Assignment, moments: Sequence[RecordedEvent], *, estimate: bool = False
) -> Replay:
    """Run a sidecar over a recording.

    Args:
        parts: the sidecar; its own gates, pace and cooldowns hold, on the recording's clock.
        assignment: which agent it would have observed; only its workdir, group and name count.
        moments: oldest first.
        estimate: ask no model, and count what asking would have cost.
    """
    began = moments[0].time if moments else 0.0
    clock = ManualClock(now=1_000.0, date=began)
    if estimate:
        parts = replace(parts, judge=_estimating(parts, clock))
    with Journal(Path(":memory:")) as journal:
        run = _Run(parts, assignment, journal, clock)
        for moment in moments:
            run.pass_time(moment.time)
            run.see(moment)
        run.finish()
        decisions = journal.decisions.of(assignment.group.run, last=1_000_000)
    seconds = moments[-1].time - began if moments else 0.0
    usages = [each.usage for each in decisions if each.usage]
    naive_calls = max(1, round(seconds / NAIVE_SECONDS))
    model = parts.kind.model or parts.settings.model
    naive = EstimatingJudge(parts.kind, parts.material, model, clock, parts.settings.prices)
    return Replay(
        decisions=tuple(decisions),
        began=began,
        seconds=seconds,
        moments=len(moments),
        calls=sum(usage.calls for usage in usages),
        dollars=sum(usage.dollars for usage in usages),
        naive_calls=naive_calls,
        naive_dollars=sum(naive.usage("x" * _NAIVE_SCREEN).dollars for _ in range(naive_calls)),
        not_looked_at=run.not_looked_at,
        unfinished=run.unfinished,
    )


def _estimating(parts: Components, clock: ManualClock) -> Judge:
    kind, material = parts.kind, parts.material
    model = EstimatingJudge(kind, material, kind.model or parts.settings.model, clock, parts.settings.prices)
    if kind.judge == "model":
        return model
    return CombinedJudge(RulesJudge((*material.rules, *kind.rules), material), model, kind.threshold)


class _Run:
    """What the live sidecar does with its spool and its screen, on the recording's clock."""

    def __init__(self, parts: Components, assignment: Assignment, journal: Journal, clock: ManualClock) -> None:
        self._parts, self._assignment, self._journal, self._clock = parts, assignment, journal, clock
        self._observer = parts.observer(assignment, journal, clock, aloud=False)
        self._events = ActionFilter(parts.kind, assignment.workdir)
        self._screen = ""
        self._pane = PaneWatch(parts.kind, lambda _: self._screen, assignment.workdir, clock)
        self._over = False
        #: Shell commands of which nobody recorded what they did, and calls whose end was not recorded.
        self.not_looked_at = 0
        self.unfinished = 0

    def pass_time(self, until: float) -> None:
        """Let the recording's clock go on, asking the slow judge when it is due on the way."""
        while (due := self._observer.due) is not None and self._clock.wall() + due <= until:
            self._clock.advance(due)
            self._observer.tick()
        self._clock.advance(max(0.0, until - self._clock.wall()))

    def see(self, moment: RecordedEvent) -> None:
        if moment.screen is not None:
            if seen := self._screens(moment.screen):
                self._observer.take(seen)
            return
        event = moment.event or SpooledEvent(moment.id, moment.time, dict(moment.payload or {}))
        seen = self._events.sift([event])
        self.not_looked_at += sum(bool(each.command) and each.seen == "read" and not event.awaited for each in seen)
        self.unfinished += event.payload.get("hook_event_name") == UNFINISHED
        self._observer.take(seen, passed=self._events.passed)
        self._over = event.payload.get("hook_event_name") == "SessionEnd"
        if parts := self._parts.with_prompt(self._events.prompt, Path(self._assignment.workdir)):
            self._parts = parts
            self._observer = parts.observer(self._assignment, self._journal, self._clock, aloud=False)
        if self._events.turn_ended and self._events.may_go_on:
            self._observer.end_turn()

    def finish(self) -> None:
        """Whatever waits still has its time, unless the recording says that the session ended there."""
        while not self._over and (due := self._observer.due) is not None:
            self._clock.advance(due)
            self._observer.tick()
        self._observer.finish()

    def _screens(self, screen: str) -> list[Observation]:
        self._screen = screen
        if self._pane.due > 0:
            return []
        return [each for each in self._pane.look() if not each.tool or self._events.wanted(each.tool)]


# A stand-in for a model: it never finds anything, and counts what asking would have cost.

# Haiku 5.5 counts about three tenths more tokens for the same text than its predecessors' four characters a token.
_CHARACTERS_PER_TOKEN = 3.1
# The cache of the API forgets after five minutes.
_CACHE_SECONDS = 300.0


class EstimatingJudge:
    """Counts calls, tokens and dollars.

    Args:
        kind, material: as for the model judge.
        model: whose prices count.
        clock: by which the cache grows old.
        prices: the town's own prices.
    """

    def __init__(
        self, kind: SidecarType, material: Context, model: str, clock: Clock, prices: Prices | None = None
    ) -> None:
        self._model, self._clock, self._prices = model, clock, prices or {}
        self._system = len(system_prompt(kind, material)) / _CHARACTERS_PER_TOKEN
        self._cached_until = -1.0

    def close(self) -> None:
        """It holds nothing open."""

    def sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        return [], list(seen)

    def judge(
        self, seen: Sequence[Observation], said: Sequence[str] = (), hints: Mapping[str, str] | None = None
    ) -> list[Verdict]:
        if not seen:
            return []
        text, left_out = question(seen, said, hints or {})
        return [Verdict(False, usage=self.usage(text, len(seen) - left_out))]

    def usage(self, question: str, actions: int = 1) -> Usage:
        """What asking that question about so many actions now would cost."""
        system, asked = round(self._system), round(len(question) / _CHARACTERS_PER_TOKEN)
        now = self._clock.monotonic()
        usage = Usage(model=self._model, input_tokens=asked, output_tokens=SILENT_TOKENS * actions, calls=1)
        if system < price(self._model, self._prices).cache_minimum:
            usage = replace(usage, input_tokens=asked + system)
        elif now < self._cached_until:
            usage = replace(usage, cached_tokens=system)
        else:
            usage = replace(usage, cache_written_tokens=system)
        self._cached_until = now + _CACHE_SECONDS
        return replace(usage, dollars=dollars(usage, self._prices))
