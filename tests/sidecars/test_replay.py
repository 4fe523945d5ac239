from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sidecars.observer.factory import Components, assemble
from sidecars.observer.judge.verdict import Verdict
from sidecars.observer.observe.recorded import RecordedEvent
from sidecars.tuning.replay import replay
from sidecars.type_reader.sidecar_type import Confidence
from tests.sidecars.conftest import SlowJudge, tool_event
from tests.sidecars.observe.test_screen import EDIT, screen
from witness.assignment import Assignment


def edits(*seconds: float) -> list[RecordedEvent]:
    return [
        RecordedEvent(1000.0 + at, f"e{at}", tool_event("Edit", file_path=f"src/private/{at}.py", new_string="x"))
        for at in seconds
    ]


def test_what_when_and_why(scope: Components, assignment: Assignment) -> None:
    done = replay(
        scope, assignment, [*edits(0, 3600), RecordedEvent(5000.0, "r", tool_event("Read", file_path="README"))]
    )
    assert [(each.time, each.reason) for each in done.spoken] == [
        (1000.0, "edited-what-is-not"),
        (4600.0, "edited-what-is-not"),
    ]
    assert (done.moments, len(done.decisions), done.calls) == (3, 3, 0)
    assert done.naive_calls == 400
    assert done.naive_dollars > 0


def test_cooldowns_run_on_the_recordings_clock(assignment: Assignment) -> None:
    parts = assemble(replace(assignment, overrides={"cooldown": "60s"}))
    done = replay(parts, assignment, edits(0, 59, 61))
    assert [(each.outcome, each.gate, each.age) for each in done.decisions] == [
        ("injected", "", 0.0),
        ("injected", "cooldown", 1.0),
        ("injected", "cooldown", 59.0),
    ]


def test_a_slow_judge_is_asked_when_its_time_comes(scope: Components, assignment: Assignment) -> None:
    verdict = Verdict(True, "wrote: src/private/1.py", Confidence.HIGH, message="It was wrong.")
    judge = SlowJudge([verdict], [Verdict(False)])
    parts = replace(scope, judge=judge, kind=replace(scope.kind, judge="model", batch=5.0))
    done = replay(parts, assignment, edits(0, 1, 100))
    assert [len(asked) for asked in judge.asked] == [2, 1]
    assert [each.time for each in done.decisions] == [1005.0, 1105.0]


def test_an_estimate_asks_nobody(assignment: Assignment) -> None:
    Path(assignment.workdir, "spec.md").write_text("Answers must be whole. " * 400)
    mine = replace(assignment, type="specs", name="specs", argument="spec.md")
    parts = replace(assemble(mine), kind=replace(assemble(mine).kind, judge="rules+model"))
    moments = [
        RecordedEvent(1000.0 + 60 * n, f"e{n}", tool_event("Edit", file_path="src/a.py", new_string=f"x{n}"))
        for n in range(60)
    ]
    done = replay(parts, mine, moments, estimate=True)
    assert 0 < done.calls <= 0.1 * 360
    assert 0 < done.dollars < done.naive_dollars
    assert done.spoken == ()


def test_screens_are_replayed_too(scope: Components, assignment: Assignment) -> None:
    frames = [screen("● Bash(ls)\n  ⎿  a\n"), screen(EDIT.replace("src/sum.py", "src/private/sum.py"))]
    done = replay(scope, assignment, [RecordedEvent(20.0 * n, f"s{n}", screen=frame) for n, frame in enumerate(frames)])
    assert [each.event.startswith("pane-") for each in done.spoken] == [True]


def test_steps_that_are_not_looked_at_make_a_remark_late_as_they_do_live(assignment: Assignment) -> None:
    parts = assemble(replace(assignment, overrides={"cooldown": "20s", "tools": ["Edit"]}))
    reads = [RecordedEvent(1002.0 + n, f"r{n}", tool_event("Read", file_path=f"src/private/{n}.py")) for n in range(3)]
    done = replay(parts, assignment, [*edits(0, 1), *reads])
    assert [each.message.endswith("(19 s ago)") for each in done.spoken] == [False, True]
