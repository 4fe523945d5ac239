from __future__ import annotations

from collections.abc import Sequence

from sidecars.definition.sidecar_type import Confidence, Rule
from sidecars.observer.context import Context
from sidecars.observer.inject.deliver import compose
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.judge.rules_then_model import CombinedJudge
from sidecars.observer.judge.verdict import Verdict
from sidecars.observer.observe.observation import Observation

RULES = [
    Rule("sure", text="forbidden", final=True, snippet="s"),
    Rule("maybe", writes=("*.py",), confidence=Confidence.LOW, snippet="p"),
]
SEEN = [
    Observation("1", tool="Edit", written=("a.py",), text="x"),
    Observation("2", tool="Edit", written=("b.md",), text="x"),
    Observation("3", tool="Edit", written=("c.py",), text="forbidden"),
]


class Model:
    def __init__(self, *answers: Verdict) -> None:
        self.answers, self.asked = list(answers), []  # type: ignore[var-annotated]

    def close(self) -> None:
        pass

    def judge(self, seen: Sequence[Observation], hint: str = "") -> list[Verdict]:
        self.asked.append(([each.id for each in seen], hint))
        return [self.answers.pop(0)]


def both(*answers: Verdict) -> tuple[CombinedJudge, Model]:
    model = Model(*answers)
    return CombinedJudge(RulesJudge(RULES, Context()), model), model


def test_only_what_a_rule_points_at_is_asked() -> None:
    judge, model = both(Verdict(True, "wrote: a.py", message="m"))
    now, later = judge.sift(SEEN)
    assert [(each.observation, each.signal) for each in now] == [("2", False), ("3", True)]
    assert [each.id for each in later] == ["1"]
    (verdict,) = judge.judge(later)
    assert (verdict.signal, verdict.rule) == (True, "maybe")
    assert model.asked == [(["1"], "maybe")]


def test_nothing_to_ask() -> None:
    judge, model = both()
    _, later = judge.sift(SEEN[1:2])
    assert later == []
    assert model.asked == []


def test_the_models_no_is_final() -> None:
    judge, _ = both(Verdict(False))
    _, later = judge.sift(SEEN[:1])
    assert [each.signal for each in judge.judge(later)] == [False]


def test_the_rules_values_fill_the_snippet_that_the_model_chose() -> None:
    judge, _ = both(Verdict(True, "wrote: a.py", snippet="p"))
    _, later = judge.sift(SEEN[:1])
    (verdict,) = judge.judge(later)
    assert compose(verdict, {"p": "{path} is odd."}) == "a.py is odd."


def test_a_failure_that_passes_keeps_the_hint_for_the_next_time() -> None:
    judge, model = both(Verdict(False, error="busy", passing=True), Verdict(False))
    _, later = judge.sift(SEEN[:1])
    judge.judge(later)
    judge.judge(later)
    assert [hint for _, hint in model.asked] == ["maybe", "maybe"]
