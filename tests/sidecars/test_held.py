"""What cooldown, gap and cap make of what rules find: late is not lost, whoever is killed in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sidecars.observer.context import Context
from sidecars.observer.inject.deliver import FURTHER
from sidecars.observer.inject.gate import Gates
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.judge.verdict import Verdict
from sidecars.observer.pipeline import DecisionPipeline
from sidecars.type_reader.sidecar_type import Confidence, Rule, SidecarType
from tests.sidecars.conftest import SlowJudge
from witness.assignment import Assignment
from witness.clock import ManualClock
from witness.config.settings import Settings
from witness.journal import Decision, Journal
from witness.judging.observation import Observation
from witness.names import GroupId
from witness.process import ProcessId

Make = Callable[..., DecisionPipeline]
RULES = (
    Rule("edited", writes=("private/",), say="{path} was changed."),
    Rule("prints", writes=("*.py",), text=r"^\s*print\(", say="{path} prints."),
    Rule("names", writes=("*.py",), text=r"def [a-z]+[A-Z]\w*", say="{path} names a function {match}."),
)


def edit(number: int, *paths: str, clock: ManualClock | None = None, **more: Any) -> Observation:
    at = clock.wall() if clock else 0.0
    return Observation(f"e{number}", at, tool="Bash", written=paths, **more)


def rules(*chosen: Rule) -> RulesJudge:
    return RulesJudge(chosen or RULES, Context())


def spoken(decisions: list[Decision]) -> list[str]:
    return [each.message for each in decisions if each.outcome == "injected" and each.line == each.id]


def test_all_that_one_action_does_is_one_line(make_observer: Make, journal: Journal) -> None:
    observer = make_observer(rules(), cooldown=30.0)
    found = observer.take(
        [edit(1, "private/a.py", "private/b.py", text="print(1)\ndef makeIt(): pass\ndef doIt(): pass")]
    )
    assert spoken(found) == [
        "[sidecar:scope] private/a.py was changed. Also: private/b.py. private/a.py prints. Also: private/b.py."
        " private/a.py names a function def makeIt. Also: def doIt, private/b.py, private/b.py (def doIt)."
    ]
    assert [(each.rule, each.outcome) for each in found] == [(rule.name, "injected") for rule in RULES]
    assert len({each.line for each in found}) == 1
    assert len(journal.decisions.injected("run-1")) == 1


def test_of_two_rules_that_say_something_of_one_file_the_first_counts(make_observer: Make) -> None:
    judge = rules(Rule("not", writes=("private/",), say="{path} no."), Rule("any", writes=("*",), say="{path} any."))
    found = make_observer(judge).take([edit(1, "private/a.py", "b.py")])
    assert spoken(found) == ["[sidecar:scope] private/a.py no. b.py any."]


def test_what_a_cooldown_held_back_is_one_line_with_its_age(make_observer: Make, clock: ManualClock) -> None:
    observer = make_observer(rules(), cooldown=30.0)
    assert spoken(observer.take([edit(0, "private/0.py", clock=clock)])) == [
        "[sidecar:scope] private/0.py was changed."
    ]
    for number in range(1, 18):
        clock.advance(1)
        assert spoken(observer.take([edit(number, f"private/{number}.py", clock=clock)])) == []
    clock.advance(13)
    said = observer.tick()
    assert spoken(said) == [
        "[sidecar:scope] private/1.py was changed. Also: private/2.py, private/3.py, private/4.py, private/5.py"
        " … and 12 more. (29 s ago)"
    ]
    assert said[0].age == 29.0
    assert {each.gate for each in said} == {"cooldown"}
    assert observer.due is None


def test_what_waits_when_a_turn_ends_is_one_line(make_observer: Make, clock: ManualClock) -> None:
    observer = make_observer(rules(), cooldown=30.0)
    for number in range(3):
        observer.take([edit(number, f"private/{number}.py", clock=clock)])
    assert spoken(observer.end_turn()) == ["[sidecar:scope] private/1.py was changed. Also: private/2.py."]
    assert observer.end_turn() == []
    assert observer.due is None


def test_what_waits_when_the_run_ends_is_recorded_as_unsaid(
    make_observer: Make, clock: ManualClock, journal: Journal
) -> None:
    observer = make_observer(rules(), cooldown=30.0)
    observer.take([edit(0, "private/0.py", clock=clock)])
    observer.take([edit(1, "private/1.py", clock=clock)])
    observer.finish()
    assert [(each.outcome, each.stage, each.gate, each.reason) for each in journal.decisions.of("run-1")] == [
        ("injected", "", "", "edited"),
        ("refused", "unsaid", "cooldown", "cooldown: 30 s left; unsaid: the run ended first"),
    ]
    (row,) = journal.decisions.costs("run")
    assert (row.injected, row.unsaid) == (1, 1)


def test_a_slow_judges_last_answer_is_recorded_and_what_it_was_not_asked_is_counted(
    make_observer: Make, clock: ManualClock, journal: Journal
) -> None:
    slow = SlowJudge([Verdict(True, "wrote: a.py", Confidence.HIGH, message="It is odd.", observation="e1")])
    observer = make_observer(slow, judge="model", batch=0.0, cooldown=30.0)
    observer.take([edit(1, "a.py", clock=clock)])
    observer.ask()
    observer.take([edit(2, "b.py", clock=clock), edit(3, "c.py", clock=clock)])
    observer.finish()
    (note,) = journal.history("run-1")
    assert note.kind == "sidecar-unjudged"
    assert note.data["reason"] == "2 actions were put to no judge before the run ended"
    assert [each.message for each in journal.decisions.of("run-1")] == ["[sidecar:scope] It is odd."]


def test_within_two_steps_no_age_is_told(make_observer: Make, clock: ManualClock) -> None:
    observer = make_observer(rules(), cooldown=30.0)
    observer.take([edit(0, "private/0.py", clock=clock)])
    observer.take([edit(1, "private/1.py", clock=clock)])
    observer.take([edit(2, "other", clock=clock)], passed=1)
    clock.advance(30)
    assert spoken(observer.tick()) == ["[sidecar:scope] private/1.py was changed."]


def test_a_step_that_is_not_looked_at_counts(make_observer: Make, clock: ManualClock) -> None:
    observer = make_observer(rules(), cooldown=30.0)
    observer.take([edit(0, "private/0.py", clock=clock)])
    observer.take([edit(1, "private/1.py", clock=clock)], passed=3)
    clock.advance(30)
    assert spoken(observer.tick()) == ["[sidecar:scope] private/1.py was changed. (30 s ago)"]


def test_only_the_cap_drops_and_its_last_line_says_where_the_rest_is(make_observer: Make, journal: Journal) -> None:
    observer = make_observer(rules(), cap=3)
    said = [spoken(observer.take([edit(number, f"private/{number}.py")])) for number in range(6)]
    assert [len(each) for each in said] == [1, 1, 1, 0, 0, 0]
    assert [line[0].endswith(FURTHER) for line in said[:3]] == [False, False, True]
    dropped = [each for each in journal.decisions.of("run-1") if each.gate == "cap"]
    assert [each.reason for each in dropped] == ["cap: 3 injections in this run"] * 3


def test_a_file_that_was_only_counted_is_named_when_it_is_touched_again(make_observer: Make) -> None:
    observer = make_observer(rules())
    files = [f"private/{number}.txt" for number in range(7)]
    observer.take([edit(1, *files)])
    assert spoken(observer.take([edit(2, *files[:5])])) == []
    assert spoken(observer.take([edit(3, *files)])) == [
        "[sidecar:scope] private/5.txt was changed. Also: private/6.txt."
    ]


def test_files_with_plain_names_are_different_files(make_observer: Make) -> None:
    observer = make_observer(rules(Rule("any", writes=("*",), say="{path} was changed, and nobody had asked for it.")))
    said = [spoken(observer.take([edit(n, name)])) for n, name in enumerate(["Makefile", "Dockerfile", "Makefile"])]
    assert [len(each) for each in said] == [1, 1, 0]


def test_once_holds_for_a_rule_with_a_comma_in_its_name(make_observer: Make) -> None:
    observer = make_observer(rules(Rule("tools, once", writes=("*",), once=True, say="{path} was changed.")))
    said = [observer.take([edit(number, f"{number}.py")])[0] for number in range(2)]
    assert [each.outcome for each in said] == ["injected", "refused"]
    assert said[1].reason == "once: rule tools, once has spoken in this run"


def test_a_subagents_action_is_told_as_its_own(make_observer: Make) -> None:
    found = make_observer(rules()).take([edit(1, "private/a.py", subagent="reviewer", subagent_id="a1")])
    assert spoken(found) == ["[sidecar:scope] By subagent reviewer: private/a.py was changed."]
    assert [each.about for each in found] == ["a1"]


def test_a_late_word_of_a_model_is_not_said_and_a_rules_is(make_observer: Make, clock: ManualClock) -> None:
    slow = SlowJudge([Verdict(True, "wrote: a.py", Confidence.HIGH, message="It is odd.", observation="e1")])
    observer = make_observer(slow, judge="model", batch=0.0, max_age=60.0)
    observer.take([edit(1, "a.py", clock=clock)])
    clock.advance(59)
    observer.take([])
    clock.advance(2)
    (late,) = observer.ask()
    assert (late.outcome, late.gate) == ("refused", "age")


def test_rules_speak_while_the_budget_of_models_is_spent(make_observer: Make, journal: Journal) -> None:
    observer = make_observer(rules(), judge="rules+model", settings=Settings(run_budget=0.0))
    assert spoken(observer.take([edit(1, "private/a.py")])) != []


# -- whatever happens -----------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("edit"), st.lists(st.integers(0, 40), min_size=1, max_size=9, unique=True)),
        st.tuples(st.just("wait"), st.integers(1, 40)),
        st.tuples(st.just("crash"), st.just(0)),
        st.tuples(st.just("turn"), st.just(0)),
        st.tuples(st.just("other"), st.just(0)),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(
    steps=STEPS, cooldown=st.sampled_from([0.0, 30.0]), gap=st.sampled_from([0.0, 5.0]), cap=st.sampled_from([2, 1000])
)
def test_whatever_happens_each_file_is_told_or_the_cap_is_reached(
    steps: list[tuple[str, Any]], cooldown: float, gap: float, cap: int
) -> None:
    clock = ManualClock()
    kind = SidecarType("scope", judge="rules", cooldown=cooldown, gap=gap, cap=cap, duplicate_window=1e9)
    mine = Assignment(
        GroupId("main", "toast", "run-1"), "scope", "scope", "", "", "", "", "/", "/", "", "", ProcessId(0, 0)
    )
    with Journal(Path(":memory:")) as journal:

        def pipeline(name: str) -> DecisionPipeline:
            assignment, own = replace(mine, name=name), replace(kind, name=name)
            gates = Gates(own, assignment, Settings(), journal, clock)
            return DecisionPipeline(
                own, assignment, judge=rules(), gates=gates, journal=journal, clock=clock, deliverer=None
            )

        observer, other = pipeline("scope"), pipeline("other")
        touched: set[str] = set()
        hurried = 0  # lines that did not wait, at the ends of turns
        for number, (what, given_) in enumerate(steps):
            if what == "edit":
                paths = [f"private/{each}" for each in given_]
                touched.update(paths)
                observer.take([edit(number, *paths, clock=clock)])
            elif what == "other":
                other.take([edit(number, f"private/other{number}", clock=clock)])
            elif what == "wait":
                clock.advance(given_)
            elif what == "turn":
                hurried += len(spoken(observer.end_turn()))
            else:
                observer = pipeline("scope")
            while observer.due == 0.0:
                observer.tick()
        for _ in range(10_000):
            if observer.due is None:
                break
            clock.advance(observer.due)
            observer.tick()
        assert observer.due is None
        decisions = journal.decisions.of("run-1", "scope")
        lines = [each for each in decisions if each.outcome == "injected" and each.line == each.id]
        times = sorted(each.spoken for each in lines)
        assert sum(later - earlier < cooldown for earlier, later in pairwise(times)) <= hurried
        assert len(lines) <= cap
        assert all(len(each.message) <= 600 for each in lines)
        assert not [each for each in decisions if each.stage == "held"]
        told = {subject.path for each in decisions if each.outcome == "injected" for subject in each.subjects}
        if len(lines) < cap:
            assert told == touched
        else:
            assert lines[-1].message.endswith(FURTHER)
            assert (
                told | {subject.path for each in decisions if each.gate == "cap" for subject in each.subjects}
                == touched
            )


def test_each_action_that_comes_in_one_look_has_its_own_line(make_observer: Make) -> None:
    observer = make_observer(rules(), cap=200)
    said = spoken(observer.take([edit(number, f"private/{number}.py") for number in range(30)]))
    assert said == [f"[sidecar:scope] private/{number}.py was changed." for number in range(30)]
