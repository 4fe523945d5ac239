from __future__ import annotations

from collections.abc import Mapping, Sequence

from sidecars.observer.context import Context
from sidecars.observer.inject.deliver import compose
from sidecars.observer.judge.model import CombinedJudge
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.judge.verdict import Verdict
from sidecars.type_reader.sidecar_type import Confidence, Rule
from witness.judging.observation import Observation

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

    def judge(
        self, seen: Sequence[Observation], said: Sequence[str] = (), hints: Mapping[str, str] | None = None
    ) -> list[Verdict]:
        self.asked.append(([each.id for each in seen], dict(hints or {})))
        return [self.answers.pop(0)]


def both(*answers: Verdict) -> tuple[CombinedJudge, Model]:
    model = Model(*answers)
    return CombinedJudge(RulesJudge(RULES, Context()), model), model


def test_what_a_rule_is_sure_of_needs_no_consent_and_the_rest_is_asked() -> None:
    judge, model = both(Verdict(True, "wrote: a.py", message="m", observation="1"))
    now, later = judge.sift(SEEN)
    assert [(each.observation, each.rule) for each in now] == [("3", "sure")]
    assert [each.id for each in later] == ["1", "2"]
    (verdict,) = judge.judge(later)
    assert (verdict.signal, verdict.rule) == (True, "maybe")
    assert model.asked == [(["1", "2"], {"1": "maybe"})]


def test_a_rule_at_the_threshold_speaks_whatever_the_model_would_say() -> None:
    rules = [Rule("medium", writes=("*.py",), confidence=Confidence.MEDIUM, say="{path} is odd.")]
    for threshold, asked in ((Confidence.LOW, 1), (Confidence.MEDIUM, 1), (Confidence.HIGH, 3)):
        judge = CombinedJudge(RulesJudge(rules, Context()), Model(), threshold)
        now, later = judge.sift(SEEN)
        assert len(later) == asked
        assert [each.observation for each in now] == (["1", "3"] if asked == 1 else [])


def test_a_verdict_of_the_model_is_that_of_one_rule_and_keeps_its_once() -> None:
    rules = [
        Rule("a, b", writes=("a.py",), confidence=Confidence.LOW, once=True, say="x"),
        Rule("c", writes=("c.py",), confidence=Confidence.LOW, say="y"),
    ]
    model = Model(Verdict(True, "wrote: a.py", message="m", observation="1"), Verdict(True, "x", message="m"))
    judge = CombinedJudge(RulesJudge(rules, Context()), model)
    _, later = judge.sift(SEEN)
    (verdict,) = judge.judge(later)
    assert (verdict.rule, verdict.once) == ("a, b", True)
    _, later = judge.sift(SEEN)
    (verdict,) = judge.judge(later)  # which of the three it means, nobody knows
    assert (verdict.rule, verdict.once) == ("", False)


def test_the_models_no_is_final() -> None:
    judge, _ = both(Verdict(False))
    _, later = judge.sift(SEEN[:1])
    assert [each.signal for each in judge.judge(later)] == [False]


def test_the_rules_values_fill_the_snippet_that_the_model_chose() -> None:
    judge, _ = both(Verdict(True, "wrote: a.py", snippet="p", observation="1"))
    _, later = judge.sift(SEEN[:1])
    (verdict,) = judge.judge(later)
    assert compose(verdict, {"p": "{path} is odd."}) == "a.py is odd."


def test_a_failure_that_passes_keeps_the_hint_for_the_next_time() -> None:
    judge, model = both(Verdict(False, error="busy", passing=True), Verdict(False))
    _, later = judge.sift(SEEN[:1])
    judge.judge(later)
    judge.judge(later)
    assert [hints for _, hints in model.asked] == [{"1": "maybe"}] * 2
