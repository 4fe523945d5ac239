from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sidecars.observer.inject.gate import Gates, same_thing
from sidecars.observer.judge.verdict import Verdict
from sidecars.observer.pipeline import DecisionPipeline
from sidecars.type_reader.sidecar_type import Confidence, SidecarType
from tests.sidecars.conftest import ScriptedJudge, SlowJudge
from witness.assignment import Assignment
from witness.clock import ManualClock
from witness.config.settings import Settings
from witness.journal import Decision, Journal, Usage
from witness.judging.observation import Observation

Make = Callable[..., DecisionPipeline]
SEEN = [Observation("e", tool="Bash", command="do something")]


def signal(message: str = "It was done.", confidence: Confidence = Confidence.HIGH) -> Verdict:
    return Verdict(True, evidence="do something", confidence=confidence, message=message)


class Teller:
    """One sidecar that says what it is told to."""

    def __init__(self, make: Make, **options: Any) -> None:
        self.judge = SlowJudge() if options.get("judge") == "model" else ScriptedJudge()
        self.observer = make(self.judge, **options)

    def say(self, verdict: Verdict) -> Decision:
        self.judge.answers.append([verdict])
        (decision,) = self.look()
        return decision

    def look(self) -> list[Decision]:
        return self.observer.take(SEEN) or self.observer.ask()


def test_a_signal_passes(make_observer: Make) -> None:
    decision = Teller(make_observer).say(signal())
    assert (decision.outcome, decision.message) == ("injected", "[sidecar:scope] It was done.")


def test_below_the_threshold(make_observer: Make) -> None:
    teller = Teller(make_observer, threshold=Confidence.HIGH)
    assert teller.say(signal(confidence=Confidence.MEDIUM)).reason == "threshold: medium is below high"
    assert teller.say(signal(confidence=Confidence.HIGH)).outcome == "injected"


def test_the_same_is_not_said_twice_within_the_window(make_observer: Make, clock: ManualClock) -> None:
    teller = Teller(make_observer)
    teller.say(signal("The file `a.py` was changed."))
    clock.advance(299)
    assert teller.say(signal("the  file `a.py` was CHANGED.")).reason == "duplicate: scope said it 299 s ago"
    clock.advance(2)
    assert teller.say(signal("The file `a.py` was changed.")).outcome == "injected"


def test_another_sidecar_does_not_repeat_it(make_observer: Make) -> None:
    Teller(make_observer, name="scope").say(signal("It was done."))
    assert Teller(make_observer, name="specs").say(signal("It was done.")).outcome == "refused"


def test_two_rules_say_two_things_in_like_words(make_observer: Make) -> None:
    teller = Teller(make_observer)
    opened = replace(signal("src/a.py was opened, and the issue lists it as out of scope."), rule="opened")
    changed = replace(signal("src/a.py was changed, and the issue lists it as out of scope."), rule="changed")
    assert [teller.say(each).outcome for each in (opened, changed, opened, changed)] == [
        "injected",
        "injected",
        "refused",
        "refused",
    ]


def test_what_was_never_delivered_may_be_said_again(make_observer: Make, journal: Journal) -> None:
    teller = Teller(make_observer)
    journal.decisions.stage(teller.say(signal()).id, "undelivered", "expired")
    assert teller.say(signal()).outcome == "injected"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("The spec says 404 for a missing user.", "For a missing user the spec says 404.", True),
        ("src/a.py was changed; it is out of scope.", "src/b.py was changed; it is out of scope.", False),
        ("The spec says 404 for a missing user.", "The spec says 409 for a missing user.", False),
        ("formatPrice exists already in money.", "parsePrice exists already in money.", False),
        ("Errors are wrapped here.", "Tests live beside the code.", False),
    ],
)
def test_what_counts_as_the_same(one: str, other: str, same: bool) -> None:
    assert same_thing(one, other) is same


def test_a_cooldown_delays_and_loses_nothing(make_observer: Make, clock: ManualClock) -> None:
    teller = Teller(make_observer, cooldown=30.0)
    teller.say(signal("One is done."))
    clock.advance(29)
    held = teller.say(signal("Two is different."))
    assert (held.outcome, held.stage, held.gate, held.reason) == ("refused", "held", "cooldown", "cooldown: 1 s left")
    assert teller.observer.due == 1.0
    clock.advance(1)
    (said,) = teller.observer.tick()
    assert (said.id, said.outcome, said.gate) == (held.id, "injected", "cooldown")
    assert said.message == "[sidecar:scope] Two is different."
    assert teller.observer.due is None


def test_the_cap_counts_the_run_whoever_lived_in_between(make_observer: Make) -> None:
    for word in ("One apple.", "Two pears."):
        assert Teller(make_observer, cap=2).say(signal(word)).outcome == "injected"
    assert Teller(make_observer, cap=2).say(signal("Three plums.")).reason == "cap: 2 injections in this run"


def test_the_gap_between_sidecars_delays_and_drops_nothing(make_observer: Make, clock: ManualClock) -> None:
    first, second, third = (Teller(make_observer, name=name, gap=5.0) for name in ("a", "b", "c"))
    assert first.say(signal("One apple.")).reason == ""
    clock.advance(1)
    assert second.say(signal("Two pears.")).reason == "gap: 4.0 s left, another sidecar has just spoken"
    clock.advance(1)
    assert third.say(signal("Three plums.")).gate == "gap"
    clock.advance(3)
    (late,) = second.observer.tick()
    assert (late.outcome, late.message) == ("injected", "[sidecar:b] Two pears.")
    (still,) = third.observer.tick()
    assert (still.outcome, still.stage, third.observer.due) == ("refused", "held", 5.0)
    clock.advance(5)
    assert [each.outcome for each in third.observer.tick()] == ["injected"]


def test_nobody_waits_for_ever_for_those_who_speak_all_the_time(make_observer: Make, clock: ManualClock) -> None:
    loud, quiet = Teller(make_observer, name="loud", gap=0.0, cap=1000), Teller(make_observer, name="quiet", gap=5.0)
    loud.say(signal("Fact 0 of all."))
    quiet.say(signal("One apple."))
    said = []
    for number in range(1, 40):
        clock.advance(2)
        loud.say(signal(f"Fact {number} of all."))
        said += [each.outcome for each in quiet.observer.tick()]
    assert said.count("injected") == 1


def test_a_sidecar_keeps_no_gap_to_itself(make_observer: Make) -> None:
    teller = Teller(make_observer, gap=5.0)
    teller.say(signal("One apple."))
    assert teller.say(signal("Two pears.")).reason == ""


@pytest.mark.parametrize("name", ["ESTOP", "ESTOP.main"])
def test_the_emergency_stop_silences_all(make_observer: Make, tmp_path: Path, name: str) -> None:
    teller = Teller(make_observer)
    (tmp_path / name).touch()
    assert teller.say(signal()).reason.startswith("estop:")
    (tmp_path / name).unlink()
    assert teller.say(signal()).outcome == "injected"


def test_another_rigs_emergency_stop_is_not_ours(make_observer: Make, tmp_path: Path) -> None:
    (tmp_path / "ESTOP.other").touch()
    assert Teller(make_observer).say(signal()).outcome == "injected"


def spend(journal: Journal, clock: ManualClock, run: str, dollars: float = 0.0, calls: int = 0) -> None:
    id = f"spent-{dollars}-{calls}-{clock.wall()}"
    journal.decisions.add(
        Decision(id, run, "x", clock.wall(), 0.0, "silent", usage=Usage(dollars=dollars, calls=calls))
    )


@pytest.mark.parametrize(
    ("spent", "reason"),
    [
        (("run-1", 0.5, 1), "budget: $0.5000 of $0.50 spent in this run"),
        (("other", 5.0, 1), "budget: $5.0000 of $5.00 spent in 24 hours"),
        (("run-1", 0.0, 500), "budget: 500 of 500 calls made in this run"),
        (("other", 0.0, 5000), "budget: 5000 of 5000 calls made in 24 hours"),
    ],
)
def test_a_spent_budget_silences_models_and_is_noted_once(
    make_observer: Make, journal: Journal, clock: ManualClock, spent: tuple[str, float, int], reason: str
) -> None:
    teller = Teller(make_observer, judge="model")
    spend(journal, clock, *spent)
    assert teller.look() == []
    assert teller.look() == []
    assert teller.judge.asked == []
    (note,) = journal.history()
    assert (note.kind, note.data["reason"]) == ("sidecar-silenced", reason)


def test_the_day_goes_by(make_observer: Make, journal: Journal, clock: ManualClock) -> None:
    teller = Teller(make_observer, judge="model")
    spend(journal, clock, "other", 9.0)
    assert teller.look() == []
    clock.advance(86_401)
    assert teller.say(signal()).outcome == "injected"
    assert [event.kind for event in journal.history()] == ["sidecar-silenced", "sidecar-speaks-again"]


def test_rules_cost_nothing_and_speak_on(make_observer: Make, journal: Journal, clock: ManualClock) -> None:
    spend(journal, clock, "run-1", 9.0)
    assert Teller(make_observer, judge="rules").say(signal()).outcome == "injected"


def test_the_holdout_is_recorded_and_not_said(make_observer: Make) -> None:
    teller = Teller(make_observer, holdout=1.0)
    held = teller.say(signal())
    assert (held.outcome, held.reason) == ("refused", "holdout: recorded, not said")
    assert held.message


def test_a_share_is_held_out(make_observer: Make, clock: ManualClock) -> None:
    teller = Teller(make_observer, holdout=0.3, cap=1000, duplicate_window=0.0)
    outcomes = [teller.say(signal()).outcome for _ in range(300)]
    assert 45 < outcomes.count("refused") < 135


def test_a_quote_that_nobody_saw_voids_the_verdict(make_observer: Make) -> None:
    decision = Teller(make_observer).say(replace(signal(), evidence="rm -rf /"))
    assert (decision.outcome, decision.reason) == ("refused", "evidence: it is not in what was seen")


def test_no_words_are_no_injection(make_observer: Make) -> None:
    assert Teller(make_observer).say(signal(" ")).outcome == "refused"


def test_a_failed_judge_is_silent_and_visible(make_observer: Make) -> None:
    decision = Teller(make_observer).say(Verdict(False, error="timeout"))
    assert (decision.outcome, decision.reason) == ("failed", "timeout")


def test_sidecars_that_decide_at_the_same_instant_keep_their_distance(assignment: Assignment, tmp_path: Path) -> None:
    """Six processes' worth of sidecars on one journal file, none of which knows of another."""
    path, clock, names = tmp_path / "shared.db", ManualClock(), [f"s{number}" for number in range(6)]
    Journal(path).close()
    start = threading.Barrier(len(names))

    def speak(name: str) -> Decision:
        with Journal(path) as journal:
            kind = SidecarType(name, judge="rules", gap=5.0, cooldown=0.0)
            mine = replace(assignment, name=name)
            gates = Gates(kind, mine, Settings(), journal, clock)
            judge = ScriptedJudge([signal(f"Fact of {name}{name}.")])
            observer = DecisionPipeline(
                kind, mine, judge=judge, gates=gates, journal=journal, clock=clock, deliverer=None
            )
            start.wait(20)
            (decision,) = observer.take(SEEN)
            return decision

    with ThreadPoolExecutor(len(names)) as pool:
        decisions = list(pool.map(speak, names))
    assert sorted(decision.outcome for decision in decisions) == ["injected"] + ["refused"] * 5
    assert [decision.stage for decision in decisions if decision.outcome == "refused"] == ["held"] * 5
    said: list[float] = []
    with Journal(path) as journal:
        successors = {
            name: DecisionPipeline(
                SidecarType(name, judge="rules", gap=5.0, cooldown=0.0),
                replace(assignment, name=name),
                judge=ScriptedJudge(),
                gates=Gates(
                    SidecarType(name, gap=5.0, cooldown=0.0), replace(assignment, name=name), Settings(), journal, clock
                ),
                journal=journal,
                clock=clock,
                deliverer=None,
            )
            for name in names
        }
        for _ in range(5):
            clock.advance(5)
            for successor in successors.values():
                said += [clock.monotonic() for each in successor.tick() if each.outcome == "injected"]
    assert said == [1_005.0, 1_010.0, 1_015.0, 1_020.0, 1_025.0]
