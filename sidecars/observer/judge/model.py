"""The judge that asks a model, within one deadline for everything.

It fails silent: whatever goes wrong is a verdict without a signal that says why, and never "nothing to report".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from sidecars.llm.client import Endpoint, ModelClient
from sidecars.llm.reply import ModelFault, Reply
from sidecars.observer.context.context import Context
from sidecars.observer.judge.model_prompt import request, system_prompt
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.judge.signal_tool import TOOL, find_report, read_report
from sidecars.observer.judge.verdict import Verdict, stands_in
from sidecars.observer.observe.observation import Observation
from sidecars.type_reader.sidecar_type import Confidence, SidecarType
from witness.clock import Clock
from witness.journal.records import Usage

# What the server will refuse again: who asks, where, or how the question is made. Another 400 is about its text.
_LASTING = frozenset([401, 403, 404])
_FORM = re.compile(
    r"tool_choice|\btools?\b|schema|thinking|cache_control|max_tokens|\bmodel\b|credit|billing", re.IGNORECASE
)


class ModelJudge:
    """Asks a model about what was seen.

    Args:
        kind: the type, for its prompt, snippets and deadline.
        material: its context.
        endpoint: where the model is.
        clock: where the time comes from.
    """

    def __init__(self, kind: SidecarType, material: Context, endpoint: Endpoint, clock: Clock | None = None) -> None:
        self._kind = kind
        self._system = system_prompt(kind, material)
        self._documents = tuple(text for _, text in material.documents)
        self._client = ModelClient(endpoint, clock)
        # The server has refused for good: it is told once, and not asked again.
        self._refused = False
        self._unforced = False

    def sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        return [], list(seen)

    def judge(self, seen: Sequence[Observation], hint: str = "") -> list[Verdict]:
        """One verdict on all that was seen.

        Args:
            seen: completed actions, oldest first.
            hint: what a rule found, for the model to confirm.
        """
        if not seen or self._refused:
            return []
        self._client.usage = Usage(model=self._client.endpoint.model)
        arguments = request(self._kind, self._client.endpoint.model, self._system, seen, hint)
        try:
            verdict = self._checked(_verdict(self._ask(arguments)))
        except ModelFault as error:
            self._refused = _is_lasting(error)
            reason = error.reason + (": a fault of the configuration; it is not asked again" if self._refused else "")
            verdict = Verdict(False, error=reason, passing=error.retryable, pause=error.pause)
        return [replace(verdict, usage=self._client.usage)]

    def _ask(self, arguments: Mapping[str, Any]) -> Reply:
        """Ask, once without the tool forced where the server refuses that; an answer is checked all the same."""
        unforced = {**arguments, "tool_choice": {"type": "auto"}}
        if self._unforced:
            return self._client.ask(unforced, self._kind.timeout, accept=_check)
        try:
            return self._client.ask(arguments, self._kind.timeout, accept=_check)
        except ModelFault as error:
            if error.status != 400 or not _FORM.search(error.reason):
                raise
        reply = self._client.ask(unforced, self._kind.timeout, accept=_check)
        self._unforced = True
        return reply

    def _checked(self, verdict: Verdict) -> Verdict:
        """A signal holds only with a sentence that stands in a document, where there are documents."""
        if verdict.signal and self._documents and not stands_in(verdict.source_quote, self._documents):
            return replace(verdict, signal=False, rule="source_quote: it stands in no document")
        return verdict

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()


def _is_lasting(error: ModelFault) -> bool:
    return error.status in _LASTING or (error.status == 400 and _FORM.search(error.reason) is not None)


def _check(reply: Reply) -> None:
    """A reply that is no report is asked for again.

    Raises:
        ValueError: it is none.
    """
    _verdict(reply)


def _verdict(reply: Reply) -> Verdict:
    if reply.stop == "max_tokens":
        raise ModelFault("max_tokens: the answer was longer than the type allows; raise max_tokens")
    given = reply.called(TOOL)
    return find_report(reply.text) if given is None else read_report(given)


# Rules first: what they are sure of is said at once; a model is asked about what they leave open.


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
