"""The judge that asks a model, within one deadline for everything.

It fails silent: whatever goes wrong is a verdict without a signal that says why, and never "nothing to report".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sidecars.definition.sidecar_type import SidecarType
from sidecars.llm.client import Endpoint, ModelClient
from sidecars.llm.reply import ModelFault, Reply
from sidecars.observer.context.context import Context
from sidecars.observer.judge.model_prompt import request, system_prompt
from sidecars.observer.judge.signal_tool import TOOL, find_report, read_report
from sidecars.observer.judge.verdict import Verdict
from sidecars.observer.observe.observation import Observation
from witness.clock import Clock
from witness.journal.records import Usage


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
        self._client = ModelClient(endpoint, clock)

    def sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        return [], list(seen)

    def judge(self, seen: Sequence[Observation], hint: str = "") -> list[Verdict]:
        """One verdict on all that was seen.

        Args:
            seen: completed actions, oldest first.
            hint: what a rule found, for the model to confirm.
        """
        if not seen:
            return []
        self._client.usage = Usage(model=self._client.endpoint.model)
        arguments = request(self._kind, self._client.endpoint.model, self._system, seen, hint)
        try:
            verdict = _verdict(self._client.ask(arguments, self._kind.timeout, accept=_check))
        except ModelFault as error:
            verdict = Verdict(False, error=error.reason, passing=error.retryable, pause=error.pause)
        return [replace(verdict, usage=self._client.usage)]

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()


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
