"""The backend that asks a model through the Messages API and lets it look for itself.

The SDK has a tool runner of its own. It is not used because it turns whatever a tool raises into a result, our
deadline included, looks at no money, and ends with the first answer, so that it can neither forbid tools at the last
step nor ask again for an answer that cannot be parsed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sidecars.distill.answer import Claim, Draft, Spending
from sidecars.distill.errors import (
    BudgetError,
    NoBackendError,
    TimeoutSpentError,
    UnparsableError,
)
from sidecars.distill.model_messages import instructions, opening, read_reply
from sidecars.distill.request import Inquiry
from sidecars.distill.text import shown
from sidecars.distill.tools import ToolFault, Tools, definitions
from sidecars.llm.client import Endpoint, ModelClient
from sidecars.llm.reply import ModelFault, Reply
from witness.prices import price

_MOST_TOKENS = 2000
# Bytes of JSON that make a token, at the least; for what has not been sent yet.
_BYTES_A_TOKEN = 3

_LAST_STEP = "No more calls. Answer now with the JSON object, from what you have seen; name in gaps what is missing."
_POOR = "--budget-usd allowed no further look"
_AGAIN = "That was not the JSON object that was asked for. Send it now, alone: answer, evidence, gaps, followups."


class ModelLoop:
    """One question on its way to a model and back, step by step.

    Args:
        inquiry: the question.
        endpoint: where the model is.
    """

    def __init__(self, inquiry: Inquiry, endpoint: Endpoint) -> None:
        self._inquiry = inquiry
        self._client = ModelClient(replace(endpoint, model=inquiry.limits.model))
        self._tools = Tools(inquiry.shelf)
        self._messages: list[dict[str, Any]] = []
        self._asked_again = False
        self.spending = Spending("model", inquiry.limits.model)
        self.passages: tuple[Claim, ...] = ()

    def run(self) -> Draft:
        """Ask until there is an answer.

        Raises:
            NoBackendError: the service refuses, or cannot be reached.
            BudgetError, TimeoutSpentError, UnparsableError: a limit came before the answer.
        """
        text, self.passages = opening(self._inquiry, self._tools)
        self._messages = [{"role": "user", "content": [{"type": "text", "text": text}]}]
        try:
            while (draft := self._step()) is None:
                pass
            return draft
        finally:
            self._client.close()

    def _step(self) -> Draft | None:
        """One request. None when the model wants to go on."""
        poor = self._afford()
        last = poor or self.spending.steps + 1 >= self._inquiry.limits.max_steps
        if last:
            self._say(_LAST_STEP)
        self._inquiry.progress(f"step {self.spending.steps + 1} of at most {self._inquiry.limits.max_steps}")
        reply = self._send(last)
        text = reply.text
        if reply.calls and not last:
            self._messages.append({"role": "assistant", "content": list(reply.blocks)})
            self._messages.append({"role": "user", "content": [self._result(call) for call in reply.calls]})
            return None
        if draft := read_reply(text):
            return replace(draft, gaps=(*draft.gaps, _POOR)) if poor else draft
        if self._asked_again or last:
            raise UnparsableError(f"the model's reply holds no answer: {shown(text.encode())[:120]!r}")
        self._asked_again = True
        if text.strip():
            self._messages.append({"role": "assistant", "content": [{"type": "text", "text": text}]})
        self._say(_AGAIN)
        return None

    def _send(self, last: bool) -> Reply:
        deadline = self._inquiry.shelf.deadline
        try:
            return self._client.ask(self._arguments(last), max(0.0, deadline.left))
        except ModelFault as error:
            if error.timeout or deadline.passed:
                raise TimeoutSpentError(deadline.seconds) from error
            if error.reason.startswith("refusal"):
                raise UnparsableError("the model declined to answer") from error
            name = self._inquiry.limits.model
            if error.status:
                raise NoBackendError(f"the model {name} answers {error.status}: {error.reason}") from error
            raise NoBackendError(f"the model cannot be reached: {error.reason}") from error
        finally:
            self._count()

    def _arguments(self, last: bool) -> dict[str, Any]:
        # No sampling parameters, no prefill: current models refuse them. Tools are named to the end, because the
        # results in the history need them and because a changed list would be cached anew.
        mark = {"cache_control": {"type": "ephemeral"}}
        newest = self._messages[-1]
        blocks = [*newest["content"][:-1], {**newest["content"][-1], **mark}]
        return {
            "max_tokens": _MOST_TOKENS,
            "system": [{"type": "text", "text": instructions("Read, Grep and Glob"), **mark}],
            "thinking": {"type": "disabled"},
            "tools": definitions(),
            "tool_choice": {"type": "none"} if last else {"type": "auto"},
            "messages": [*self._messages[:-1], {**newest, "content": blocks}],
        }

    def _say(self, text: str) -> None:
        block = {"type": "text", "text": text}
        if self._messages[-1]["role"] == "user":
            self._messages[-1]["content"].append(block)
        else:
            self._messages.append({"role": "user", "content": [block]})

    def _result(self, call: Mapping[str, Any]) -> dict[str, Any]:
        given = call["input"] if isinstance(call["input"], dict) else {}
        self._inquiry.progress(f"{call['name']} {' '.join(f'{key}={value}' for key, value in given.items())}"[:100])
        result = {"type": "tool_result", "tool_use_id": call["id"]}
        try:
            return {**result, "content": self._tools.call(call["name"], given)}
        except ToolFault as error:
            return {**result, "content": str(error), "is_error": True}

    # -- money --------------------------------------------------------------------------------------------------

    def _afford(self) -> bool:
        """Whether the next request is the last that can be paid.

        Raises:
            BudgetError: not even that can.
        """
        limits = self._inquiry.limits
        each = price(limits.model, self._client.endpoint.prices)
        size = len(json.dumps(self._arguments(False), ensure_ascii=False).encode("utf-8", "replace"))
        # At the dearest: nothing cached, everything written.
        dearest = max(each.input, each.written) * size / _BYTES_A_TOKEN / 1e6 + each.output * _MOST_TOKENS / 1e6
        if self.spending.dollars + dearest > limits.budget_usd:
            raise BudgetError(
                f"${self.spending.dollars:.4f} are spent and the next step may cost ${dearest:.4f}: "
                f"more than --budget-usd {limits.budget_usd:g}"
            )
        return self.spending.dollars + 2 * dearest > limits.budget_usd

    def _count(self) -> None:
        used, spent = self._client.usage, self.spending
        spent.steps = used.calls
        spent.input_tokens = used.input_tokens + used.cached_tokens + used.cache_written_tokens
        spent.cached_tokens, spent.output_tokens, spent.dollars = used.cached_tokens, used.output_tokens, used.dollars
