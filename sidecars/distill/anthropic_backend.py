"""The backend that asks a model through the Messages API and lets it look for itself.

The SDK has a tool runner of its own. It is not used because it turns whatever a tool raises into a result, our
deadline included, looks at no money, and ends with the first answer, so that it can neither forbid tools at the last
step nor ask again for an answer that cannot be parsed.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from typing import Any

from sidecars.distill.answer import Claim, Draft, Spending
from sidecars.distill.endpoint import Endpoint
from sidecars.distill.errors import (
    BudgetError,
    NoBackendError,
    TimeoutSpentError,
    UnparsableError,
)
from sidecars.distill.first_message import instructions, opening
from sidecars.distill.reply import read_reply
from sidecars.distill.request import Inquiry
from sidecars.distill.text import shown
from sidecars.distill.tools import ToolFault, Tools, definitions
from sidecars.llm.prices import dollars, price
from witness.journal.records import Usage

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
        self._endpoint = endpoint
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
        deadline = self._inquiry.shelf.deadline
        try:
            return asyncio.run(self._run_until(deadline.left))
        except TimeoutError as error:
            raise TimeoutSpentError(deadline.seconds) from error

    async def _run_until(self, seconds: float) -> Draft:
        from anthropic import AsyncAnthropic

        async with (
            # The client's own time limits count between two bytes; a server that trickles would never meet them.
            asyncio.timeout(seconds),
            AsyncAnthropic(
                api_key=self._endpoint.key,
                base_url=self._endpoint.url or os.environ.get("ANTHROPIC_BASE_URL") or None,
                max_retries=2,
                timeout=max(1.0, seconds),
            ) as client,
        ):
            while (draft := await self._step(client)) is None:
                pass
            return draft

    async def _step(self, client: Any) -> Draft | None:
        """One request. None when the model wants to go on."""
        poor = self._afford()
        last = poor or self.spending.steps + 1 >= self._inquiry.limits.max_steps
        if last:
            self._say(_LAST_STEP)
        self._inquiry.progress(f"step {self.spending.steps + 1} of at most {self._inquiry.limits.max_steps}")
        message = await self._send(client, last)
        self._count(message)
        calls = [block for block in message.content if block.type == "tool_use"]
        text = "\n".join(block.text for block in message.content if block.type == "text")
        if calls and not last:
            self._messages.append(_echo(message))
            self._messages.append({"role": "user", "content": [self._result(call) for call in calls]})
            return None
        if draft := read_reply(text):
            return replace(draft, gaps=(*draft.gaps, _POOR)) if poor else draft
        if message.stop_reason == "refusal":
            raise UnparsableError("the model declined to answer")
        if self._asked_again or last:
            raise UnparsableError(f"the model's reply holds no answer: {shown(text.encode())[:120]!r}")
        self._asked_again = True
        if text.strip():
            self._messages.append({"role": "assistant", "content": [{"type": "text", "text": text}]})
        self._say(_AGAIN)
        return None

    async def _send(self, client: Any, last: bool) -> Any:
        import anthropic

        try:
            return await client.messages.create(**self._arguments(last))
        except (anthropic.APITimeoutError, TimeoutError) as error:
            raise TimeoutSpentError(self._inquiry.shelf.deadline.seconds) from error
        except anthropic.APIStatusError as error:
            text = " ".join(str(error.message).split())[:200]
            raise NoBackendError(
                f"the model {self._inquiry.limits.model} answers {error.status_code}: {text}"
            ) from error
        except anthropic.APIError as error:
            raise NoBackendError(f"the model cannot be reached: {' '.join(str(error).split())[:200]}") from error

    def _arguments(self, last: bool) -> dict[str, Any]:
        # No sampling parameters, no prefill: current models refuse them. Tools are named to the end, because the
        # results in the history need them and because a changed list would be cached anew.
        mark = {"cache_control": {"type": "ephemeral"}}
        newest = self._messages[-1]
        blocks = [*newest["content"][:-1], {**newest["content"][-1], **mark}]
        return {
            "model": self._inquiry.limits.model,
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

    def _result(self, call: Any) -> dict[str, Any]:
        given = call.input if isinstance(call.input, dict) else {}
        self._inquiry.progress(f"{call.name} {' '.join(f'{key}={value}' for key, value in given.items())}"[:100])
        result = {"type": "tool_result", "tool_use_id": call.id}
        try:
            return {**result, "content": self._tools.call(call.name, given)}
        except ToolFault as error:
            return {**result, "content": str(error), "is_error": True}

    # -- money --------------------------------------------------------------------------------------------------

    def _afford(self) -> bool:
        """Whether the next request is the last that can be paid.

        Raises:
            BudgetError: not even that can.
        """
        limits = self._inquiry.limits
        each = price(limits.model)
        size = len(json.dumps(self._arguments(False), ensure_ascii=False).encode("utf-8", "replace"))
        # At the dearest: nothing cached, everything written.
        dearest = max(each.input, each.written) * size / _BYTES_A_TOKEN / 1e6 + each.output * _MOST_TOKENS / 1e6
        if self.spending.dollars + dearest > limits.budget_usd:
            raise BudgetError(
                f"${self.spending.dollars:.4f} are spent and the next step may cost ${dearest:.4f}: "
                f"more than --budget-usd {limits.budget_usd:g}"
            )
        return self.spending.dollars + 2 * dearest > limits.budget_usd

    def _count(self, message: Any) -> None:
        used = message.usage
        cached, written = used.cache_read_input_tokens or 0, used.cache_creation_input_tokens or 0
        usage = Usage(
            model=self._inquiry.limits.model,
            input_tokens=used.input_tokens,
            cached_tokens=cached,
            cache_written_tokens=written,
            output_tokens=used.output_tokens,
            calls=1,
        )
        self.spending.steps += 1
        self.spending.input_tokens += used.input_tokens + cached + written
        self.spending.cached_tokens += cached
        self.spending.output_tokens += used.output_tokens
        self.spending.dollars += dollars(usage)


def _echo(message: Any) -> dict[str, Any]:
    """The model's own message, to be sent back unchanged."""
    return {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]}
