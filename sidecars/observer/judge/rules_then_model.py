"""Rules first: what they are sure of is said at once; a model is asked about what they leave open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.judge.verdict import Verdict
from sidecars.observer.observe.observation import Observation
from sidecars.type_reader.sidecar_type import Confidence


class HintedJudge(Protocol):
    """A model, or what stands in for one."""

    def judge(self, seen: Sequence[Observation], hint: str = "") -> list[Verdict]: ...

    def close(self) -> None: ...


class CombinedJudge:
    """``rules+model``.

    A rule at or above the threshold needs nobody's consent, so no model can mute it, however it fails. The model is
    asked about actions that a rule has only pointed at, and about those of which no rule has anything to say.

    Args:
        rules: the rules.
        model: the model.
        threshold: the type's; a rule marked ``final`` is never put to the model, whatever its confidence.
    """

    def __init__(self, rules: RulesJudge, model: HintedJudge, threshold: Confidence = Confidence.MEDIUM) -> None:
        self._rules, self._model, self._threshold = rules, model, threshold
        # Which rule has pointed at what waits for the model.
        self._proposed: dict[str, Verdict] = {}

    def close(self) -> None:
        self._model.close()

    def sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        now: list[Verdict] = []
        later: list[Observation] = []
        for observation in seen:
            verdicts = self._rules.judge([observation])
            sure = [each for each in verdicts if each.signal and (each.final or each.confidence >= self._threshold)]
            if sure:
                now += sure
                continue
            later.append(observation)
            if verdicts[0].signal:
                self._proposed[observation.id] = verdicts[0]
        return now, later

    def judge(self, seen: Sequence[Observation]) -> list[Verdict]:
        found = {each.id: proposal for each in seen if (proposal := self._proposed.get(each.id))}
        hint = ", ".join(dict.fromkeys(proposal.rule for proposal in found.values()))
        verdicts = self._model.judge(seen, hint=hint)
        if not any(verdict.passing for verdict in verdicts):
            for observation in seen:
                self._proposed.pop(observation.id, None)
        return [self._attributed(verdict, found) for verdict in verdicts]

    def _attributed(self, verdict: Verdict, found: dict[str, Verdict]) -> Verdict:
        """A verdict of the model as one of the rule that pointed at the action, if one did."""
        proposals = list(found.values())
        own = found.get(verdict.observation)
        if own is None and verdict.snippet:
            own = next((each for each in proposals if each.snippet == verdict.snippet), None)
        if own is None and len({each.rule for each in proposals}) == 1:
            own = proposals[0]
        if own is None:
            return verdict
        values = own.values if own.snippet == verdict.snippet else ()
        return replace(verdict, rule=own.rule, once=own.once, values=values)
