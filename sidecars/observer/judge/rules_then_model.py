"""Rules propose, the model confirms: a model is asked only about actions that a rule has pointed at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.judge.verdict import Verdict
from sidecars.observer.observe.observation import Observation


class HintedJudge(Protocol):
    """A model, or what stands in for one."""

    def judge(self, seen: Sequence[Observation], hint: str = "") -> list[Verdict]: ...

    def close(self) -> None: ...


class CombinedJudge:
    """``rules+model``.

    Args:
        rules: what proposes; a rule marked ``final`` needs nobody's consent.
        model: what confirms.
    """

    def __init__(self, rules: RulesJudge, model: HintedJudge) -> None:
        self._rules, self._model = rules, model
        # Which rule has pointed at what waits for the model.
        self._proposed: dict[str, Verdict] = {}

    def close(self) -> None:
        self._model.close()

    def sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        verdicts = self._rules.judge(seen)
        proposed = {verdict.observation: verdict for verdict in verdicts if verdict.signal and not verdict.final}
        self._proposed.update(proposed)
        kept = [verdict for verdict in verdicts if verdict.observation not in proposed]
        return kept, [each for each in seen if each.id in proposed]

    def judge(self, seen: Sequence[Observation]) -> list[Verdict]:
        found = [verdict for each in seen if (verdict := self._proposed.get(each.id))]
        rules = ", ".join(dict.fromkeys(verdict.rule for verdict in found))
        verdicts = self._model.judge(seen, hint=rules)
        if not any(verdict.passing for verdict in verdicts):
            self._proposed.clear()
        # A snippet's placeholders are filled in by the rule that proposed it.
        values = {verdict.snippet: verdict.values for verdict in reversed(found)}
        return [replace(verdict, rule=rules, values=values.get(verdict.snippet, ())) for verdict in verdicts]
