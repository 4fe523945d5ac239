from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sidecars.observer.inject.deliver import Deliverer
from sidecars.observer.judge.verdict import Verdict
from sidecars.observer.pipeline import DecisionPipeline
from sidecars.type_reader.sidecar_type import Confidence
from tests.sidecars.conftest import ScriptedJudge, SlowJudge
from witness.assignment import Assignment
from witness.clock import ManualClock
from witness.delivery.nudge_queue import NudgeQueue
from witness.errors import QueueFullError
from witness.journal import Decision, Journal, Usage
from witness.judging.observation import Observation

SEEN = [Observation("e1", tool="Bash", command="first"), Observation("e2", tool="Bash", command="second")]
SIGNAL = Verdict(True, evidence="second", confidence=Confidence.HIGH, message="It was done.")


@pytest.fixture
def queue(assignment: Assignment, clock: ManualClock) -> NudgeQueue:
    return NudgeQueue(Path(assignment.queue), clock)


def test_every_verdict_is_in_the_ledger(make_observer: Callable[..., DecisionPipeline], journal: Journal) -> None:
    observer = make_observer(ScriptedJudge([Verdict(False, observation="e1"), SIGNAL]))
    observer.take(SEEN, "7:1")
    assert [(each.outcome, each.event) for each in journal.decisions.of("run-1")] == [
        ("silent", "e1"),
        ("injected", "e2"),
    ]
    assert journal.sidecars.get("run-1", "scope").position == "7:1"


def test_nothing_seen_still_moves_the_position(
    make_observer: Callable[..., DecisionPipeline], journal: Journal
) -> None:
    judge = ScriptedJudge()
    make_observer(judge).take([], "7:9")
    assert judge.asked == []
    assert journal.sidecars.get("run-1", "scope").position == "7:9"


def test_what_a_gap_held_back_is_queued_when_it_is_over(
    make_observer: Callable[..., DecisionPipeline], assignment: Assignment, clock: ManualClock, queue: NudgeQueue
) -> None:
    make_observer(ScriptedJudge([SIGNAL]), name="first").take(SEEN)
    mine = replace(assignment, name="second")
    late = make_observer(
        ScriptedJudge([replace(SIGNAL, message="Something else.")]),
        name="second",
        gap=5.0,
        deliverer=Deliverer(mine, clock),
    )
    late.take(SEEN)
    late.tick()
    assert queue.claim() == []
    clock.advance(5.1)
    late.tick()
    (claim,) = queue.claim()
    assert claim.nudge.message == "[sidecar:second] Something else."


@pytest.mark.parametrize("judge", [ScriptedJudge(), SlowJudge()])
def test_a_judge_that_trips_is_silent_and_visible(
    make_observer: Callable[..., DecisionPipeline], journal: Journal, judge: ScriptedJudge
) -> None:
    observer = make_observer(judge, batch=0.0)  # it has no answers, so it raises
    observer.take(SEEN, "7:1")
    if observer.due == 0.0:
        observer.ask("7:1")
    (decision,) = journal.decisions.of("run-1")
    assert (decision.outcome, decision.reason) == ("failed", "judge: IndexError: pop from empty list")
    assert journal.sidecars.get("run-1", "scope").position == "7:1"


def test_what_a_model_could_not_judge_is_asked_again(
    make_observer: Callable[..., DecisionPipeline], journal: Journal, clock: ManualClock
) -> None:
    failure = Verdict(False, error="overloaded_error 529", passing=True, usage=Usage(calls=1))
    judge = SlowJudge([failure], [SIGNAL])
    observer = make_observer(judge, judge="model", batch=2.0)
    observer.take(SEEN, "7:1")
    clock.advance(2)
    observer.ask("7:1")
    assert journal.sidecars.get("run-1", "scope").position == ""
    assert observer.due is not None
    assert observer.due >= 15
    clock.advance(observer.due)
    observer.ask("7:1")
    assert [each.outcome for each in journal.decisions.of("run-1")] == ["failed", "injected"]
    assert journal.sidecars.get("run-1", "scope").position == "7:1"
    assert judge.asked == [SEEN, SEEN]


def test_a_slow_judge_is_told_what_all_sidecars_have_said(make_observer: Callable[..., DecisionPipeline]) -> None:
    make_observer(ScriptedJudge([SIGNAL]), name="other").take(SEEN)
    judge = SlowJudge([Verdict(False)])
    slow = make_observer(judge, judge="model", batch=0.0)
    slow.take(SEEN)
    slow.ask()
    assert judge.said == [SIGNAL.message]


def test_an_old_backlog_is_worth_no_call(make_observer: Callable[..., DecisionPipeline], clock: ManualClock) -> None:
    judge = SlowJudge([Verdict(False)])
    observer = make_observer(judge, judge="model", batch=0.0)
    old = [replace(SEEN[0], id=f"o{n}", time=clock.wall() - 3600) for n in range(500)]
    observer.take([*old, replace(SEEN[1], time=clock.wall())])
    observer.ask()
    assert [len(asked) for asked in judge.asked] == [1]


def test_a_judge_cannot_make_up_what_it_saw(make_observer: Callable[..., DecisionPipeline]) -> None:
    observer = make_observer(ScriptedJudge([replace(SIGNAL, observation="invented")]))
    assert [decision.event for decision in observer.take(SEEN)] == ["e2"]


def test_a_full_queue_is_in_the_ledger(make_observer: Callable[..., DecisionPipeline], journal: Journal) -> None:
    class Full:
        def enqueue(self, decision: Decision) -> str:
            raise QueueFullError("50 wait")

    make_observer(ScriptedJudge([SIGNAL]), deliverer=Full()).take(SEEN)
    (decision,) = journal.decisions.of("run-1")
    assert (decision.stage, decision.reason) == ("undelivered", "queue: 50 wait")


def test_killed_between_the_ledger_and_the_queue(
    make_observer: Callable[..., DecisionPipeline],
    assignment: Assignment,
    clock: ManualClock,
    journal: Journal,
    queue: NudgeQueue,
) -> None:
    class Killed(BaseException):
        pass

    class Dying(Deliverer):
        def enqueue(self, *_: Any) -> str:
            raise Killed

    with pytest.raises(Killed):
        make_observer(ScriptedJudge([SIGNAL]), deliverer=Dying(assignment, clock)).take(SEEN)
    successor = make_observer(ScriptedJudge(), deliverer=Deliverer(assignment, clock))
    successor.recover()
    successor.recover()
    (waiting,) = queue.pending()
    (decision,) = journal.decisions.of("run-1")
    assert waiting.nudge.thread_id == f"scope/{decision.id}"
    assert decision.stage == "enqueued"


def test_killed_between_the_queue_and_the_ledger(
    make_observer: Callable[..., DecisionPipeline],
    assignment: Assignment,
    clock: ManualClock,
    journal: Journal,
    queue: NudgeQueue,
) -> None:
    class Killed(BaseException):
        pass

    class Dying(Deliverer):
        def enqueue(self, *given: Any) -> str:
            super().enqueue(*given)
            raise Killed

    with pytest.raises(Killed):
        make_observer(ScriptedJudge([SIGNAL]), deliverer=Dying(assignment, clock)).take(SEEN)
    make_observer(ScriptedJudge(), deliverer=Deliverer(assignment, clock)).recover()
    assert len(queue.pending()) == 1
