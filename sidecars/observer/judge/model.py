"""The judge that asks a model, within one deadline for everything.

It fails silent: whatever goes wrong is a verdict without a signal that says why, and never "nothing to report".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from sidecars.llm.client import ModelClient
from sidecars.llm.client_model import ClientModel
from sidecars.llm.reply import ModelFault, Reply
from sidecars.observer.context import Context
from sidecars.observer.judge.model_prompt import question, request, system_prompt
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.judge.signal_tool import TOOL, find_reports, read_report
from sidecars.observer.judge.verdict import Verdict, quoted_from, stands_in
from sidecars.type_reader.sidecar_type import Confidence, SidecarType
from witness.journal.records import Usage
from witness.judging.observation import Observation

# What the server will refuse again: who asks, where, or how the question is made. Another 400 is about its text.
_LASTING = frozenset([401, 403, 404])
_FORM = re.compile(
    r"tool_choice|\btools?\b|schema|thinking|cache_control|max_tokens|\bmodel\b|credit|billing", re.IGNORECASE
)
_NO_ROOM = "no verdict: more was done at once than a question has room for"


class ModelJudge:
    """Asks a model about what was seen.

    Args:
        kind: the type, for its prompt, snippets and deadline.
        material: its context.
        client: puts its questions.
    """

    def __init__(self, kind: SidecarType, material: Context, client: ModelClient | ClientModel) -> None:
        self._kind = kind
        self._system = system_prompt(kind, material)
        self._documents = tuple(text for _, text in material.documents)
        self._client = client
        # The server has refused for good: it is told once, and not asked again.
        self._refused = False
        self._unforced = False

    def sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        return [], list(seen)

    def judge(
        self, seen: Sequence[Observation], said: Sequence[str] = (), hints: Mapping[str, str] | None = None
    ) -> list[Verdict]:
        """A verdict on each action that was seen; one for all of them where there is no answer.

        Args:
            seen: completed actions, oldest first.
            said: what has been said already.
            hints: by the action's id the name of a rule that has pointed at it.
        """
        if not seen or self._refused:
            return []
        self._client.usage = Usage(model=self._client.endpoint.model)
        text, left_out = question(seen, said, hints or {})
        arguments = request(self._kind, self._client.endpoint.model, self._system, text, len(seen) - left_out)
        try:
            found = _by_action(_reports(self._ask(arguments)), seen[left_out:])
        except ModelFault as error:
            self._refused = _is_lasting(error)
            reason = error.reason + (": a fault of the configuration; it is not asked again" if self._refused else "")
            found = [Verdict(False, error=reason, passing=error.retryable, pause=error.pause)]
        else:
            found = [self._checked(verdict) for verdict in found]
            found += [Verdict(False, observation=each.id, error=_NO_ROOM) for each in seen[:left_out]]
        return [replace(found[0], usage=self._client.usage), *found[1:]]

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
    _reports(reply)


def _reports(reply: Reply) -> list[Verdict]:
    if reply.stop == "max_tokens":
        raise ModelFault("max_tokens: the answer was longer than the type allows; raise max_tokens")
    given = [call["input"] for call in reply.calls if call["name"] == TOOL]
    return [read_report(each) for each in given] if given else find_reports(reply.text)


def _by_action(reports: Sequence[Verdict], seen: Sequence[Observation]) -> list[Verdict]:
    """The reports by the actions that they are about: each action has one at least.

    A quote is proven and a number is not: an action whose words were quoted is the one that is meant. A report that
    gives no number is about all that was asked.
    """
    ids = {str(number): each.id for number, each in enumerate(seen, 1)}
    about: dict[str, list[Verdict]] = {each.id: [] for each in seen}
    overall = [each for each in reports if not each.observation]
    for report in reports:
        meant = ids.get(report.observation, "")
        claimed = [each for each in seen if each.id == meant]
        if report.signal:
            meant = quoted_from(report.evidence, claimed) or quoted_from(report.evidence, seen) or meant or seen[-1].id
        if meant:
            about[meant].append(replace(report, observation=meant))
    answered = sum(map(bool, about.values()))
    unanswered = "" if overall else f"no verdict: the model has answered on {answered} of {len(seen)} actions"
    return [
        verdict
        for id, found in about.items()
        for verdict in _signals(found) or [Verdict(False, observation=id, error=unanswered)]
    ]


def _signals(found: list[Verdict]) -> list[Verdict]:
    """What there is to say of one action; where that is nothing, its one silent verdict."""
    return [each for each in found if each.signal] or found[:1]


# Rules first: what they are sure of is said at once; a model is asked about what they leave open.


class HintedJudge(Protocol):
    """A model, or what stands in for one."""

    def judge(
        self, seen: Sequence[Observation], said: Sequence[str] = (), hints: Mapping[str, str] | None = None
    ) -> list[Verdict]: ...

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

    def judge(self, seen: Sequence[Observation], said: Sequence[str] = ()) -> list[Verdict]:
        found = {each.id: proposal for each in seen if (proposal := self._proposed.get(each.id))}
        verdicts = self._model.judge(seen, said, {id: proposal.rule for id, proposal in found.items()})
        if not any(verdict.passing for verdict in verdicts):
            for observation in seen:
                self._proposed.pop(observation.id, None)
        return [_attributed(verdict, found.get(verdict.observation)) for verdict in verdicts]


def _attributed(verdict: Verdict, own: Verdict | None) -> Verdict:
    """A verdict of the model as one of the rule that pointed at the action, if one did."""
    if own is None or verdict.error:
        return verdict
    values = own.values if own.snippet == verdict.snippet else ()
    return replace(verdict, rule=verdict.rule or own.rule, once=own.once, values=values)
