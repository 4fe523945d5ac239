"""The judge that asks a model, within one deadline for everything.

It fails silent: whatever goes wrong is a verdict without a signal that says why, and never "nothing to report".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sidecars.llm.client import Endpoint, ModelClient
from sidecars.llm.reply import ModelFault, Reply
from sidecars.observer.context.context import Context
from sidecars.observer.judge.model_prompt import request, system_prompt
from sidecars.observer.judge.signal_tool import TOOL, find_report, read_report
from sidecars.observer.judge.verdict import Verdict, stands_in
from sidecars.observer.observe.observation import Observation
from sidecars.type_reader.sidecar_type import SidecarType
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
