"""The judge that asks a model, within one deadline for everything.

The only module that touches anthropic and tenacity for judging. It fails silent: whatever goes wrong is a verdict
without a signal that says why, and never "nothing to report".
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from sidecars.definition.sidecar_type import SidecarType
from sidecars.llm.prices import dollars
from sidecars.observer.context.context import Context
from sidecars.observer.judge.model_prompt import request, system_prompt
from sidecars.observer.judge.signal_tool import TOOL, find_report, read_report
from sidecars.observer.judge.verdict import Verdict
from sidecars.observer.observe.observation import Observation
from witness.clock import Clock, SystemClock
from witness.journal.records import Usage

# Kinds of errors that pass by themselves, wherever they come: as a status, or as an event inside a 200.
_PASSING = frozenset(["overloaded_error", "rate_limit_error", "api_error", "timeout_error"])
# Their names of token counts and ours, in the first and in the last report of an answer.
_FIRST_COUNTS = {
    "input_tokens": "input_tokens",
    "cache_read_input_tokens": "cached_tokens",
    "cache_creation_input_tokens": "cache_written_tokens",
}
_LAST_COUNTS = {"output_tokens": "output_tokens"}
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 1.5


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the model is.

    Args:
        key: the sidecars' own API key.
        model: the model's id.
        url: base address of an Anthropic-compatible server, empty for Anthropic's own.
        prices: the town's own prices.
    """

    key: str = field(repr=False)
    model: str
    url: str = ""
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


class _TryAgain(Exception):
    """A failure that passes by itself."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        self.reason, self.after = reason, after
        super().__init__(reason)


class _GiveUp(Exception):
    """A failure that another try would repeat."""


class ModelJudge:
    """Asks a model about what was seen.

    Args:
        kind: the type, for its prompt, snippets and deadline.
        material: its context.
        endpoint: where the model is.
        clock: where the time comes from.
    """

    def __init__(self, kind: SidecarType, material: Context, endpoint: Endpoint, clock: Clock | None = None) -> None:
        self._kind, self._endpoint, self._clock = kind, endpoint, clock or SystemClock()
        self._system = system_prompt(kind, material)
        self._client: Any = None
        self._runner: asyncio.Runner | None = None

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
        self._open()
        assert self._runner is not None  # noqa: S101
        call = _Call(self._client, self._endpoint.model, self._clock)
        began = self._clock.monotonic()
        verdict = self._runner.run(self._answer(call, seen, hint))
        usage = replace(call.usage, seconds=self._clock.monotonic() - began)
        return [replace(verdict, usage=replace(usage, dollars=dollars(usage, self._endpoint.prices)))]

    def close(self) -> None:
        """Let go of the connection."""
        if self._runner is not None:
            self._runner.run(self._client.close())
            self._runner.close()
            self._runner = None

    def _open(self) -> None:
        # The client's import takes longer than a verdict may: it is not part of the deadline, and paid once.
        if self._runner is None:
            from anthropic import AsyncAnthropic

            self._runner = asyncio.Runner()
            self._client = AsyncAnthropic(
                api_key=self._endpoint.key,
                base_url=self._endpoint.url or os.environ.get("ANTHROPIC_BASE_URL") or None,
                max_retries=0,
                timeout=self._kind.timeout,
            )

    async def _answer(self, call: _Call, seen: Sequence[Observation], hint: str) -> Verdict:
        from tenacity import AsyncRetrying, retry_if_exception_type, stop_before_delay

        arguments = request(self._kind, self._endpoint.model, self._system, seen, hint)
        last = "no answer"
        try:
            async with asyncio.timeout(self._kind.timeout):
                tries = AsyncRetrying(
                    # A server that asks for more time than there is gets it: nobody waits for an answer too late.
                    stop=stop_before_delay(self._kind.timeout),
                    wait=_pause,
                    retry=retry_if_exception_type(_TryAgain),
                    reraise=True,
                )
                async for attempt in tries:
                    with attempt:
                        try:
                            return await call.once(arguments)
                        except _TryAgain as error:
                            last = error.reason
                            raise
        except TimeoutError:
            return Verdict(False, error=f"timeout: no verdict within {self._kind.timeout:g} s ({last})", passing=True)
        except _TryAgain as error:
            return Verdict(False, error=error.reason, passing=True, pause=error.after)
        except _GiveUp as error:
            return Verdict(False, error=str(error))
        raise AssertionError("tenacity ended without an answer")


def _pause(state: Any) -> float:
    """The wait before the next try: what the server asked for, else doubling with jitter."""
    import random

    error = state.outcome.exception()
    if error.after:
        return float(error.after)
    ceiling = min(_LONGEST_WAIT, _FIRST_WAIT * 2**state.attempt_number)
    return random.uniform(ceiling / 2, ceiling)  # noqa: S311 - jitter, no secret


class _Call:
    """One question, with all its tries; it adds up what they cost."""

    def __init__(self, client: Any, model: str, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self.usage = Usage(model=model)

    async def once(self, arguments: Any) -> Verdict:
        import anthropic
        import httpx2

        self.usage = replace(self.usage, calls=self.usage.calls + 1)
        try:
            answer = await self._receive(arguments)
        except anthropic.APIStatusError as error:
            raise _classified(error, self._clock.wall()) from error
        except (anthropic.APIConnectionError, httpx2.TransportError) as error:
            raise _TryAgain(f"connection: {type(error).__name__}") from error
        except (anthropic.APIError, ValueError) as error:
            raise _TryAgain(f"garbage: {' '.join(str(error).split())[:200]}") from error
        return answer.verdict()

    async def _receive(self, arguments: Any) -> _Answer:
        answer = _Answer()
        stream = await self._client.messages.create(**arguments, stream=True)
        try:
            async with stream:
                async for event in stream:
                    answer.take(event)
        finally:
            self.usage = replace(
                self.usage,
                **{name: getattr(self.usage, name) + count for name, count in answer.tokens.items()},
            )
        return answer


class _Answer:
    """What has come of a streamed answer."""

    def __init__(self) -> None:
        self._kinds: dict[int, str] = {}
        self._parts: dict[int, list[str]] = {}
        self._stop = ""
        self._whole = False
        #: Tokens as the server counts them; its later reports hold the output so far, not what is new.
        self.tokens: dict[str, int] = {}

    def take(self, event: Any) -> None:
        kind = getattr(event, "type", "")
        if kind == "message_start":
            self._count(event.message.usage, _FIRST_COUNTS)
        elif kind == "content_block_start":
            block = event.content_block
            name = getattr(block, "name", "")
            self._kinds[event.index] = f"tool:{name}" if block.type == "tool_use" else block.type
            given = getattr(block, "input", None)
            # Some compatible servers send the whole input at once.
            self._parts[event.index] = [json.dumps(given)] if given else []
        elif kind == "content_block_delta":
            delta = event.delta
            text = getattr(delta, "partial_json", None) or getattr(delta, "text", None) or ""
            self._parts.setdefault(event.index, []).append(text)
        elif kind == "message_delta":
            self._stop = event.delta.stop_reason or self._stop
            self._count(event.usage, _LAST_COUNTS)
        elif kind == "message_stop":
            self._whole = True

    def _count(self, tokens: Any, names: Mapping[str, str]) -> None:
        for theirs, ours in names.items():
            number = getattr(tokens, theirs, 0)
            if isinstance(number, int):
                self.tokens[ours] = number

    def verdict(self) -> Verdict:
        """Read the report out of the blocks, by their types: the first may be thinking."""
        if not self._whole:
            raise _TryAgain("the stream was cut off" if self._kinds else "garbage: no message in the answer")
        if self._stop == "refusal":
            raise _GiveUp("refusal: the model declined to answer")
        if self._stop == "max_tokens":
            raise _GiveUp("max_tokens: the answer was longer than the type allows; raise max_tokens")
        texts = {index: "".join(parts) for index, parts in self._parts.items()}
        try:
            for index, kind in self._kinds.items():
                if kind == f"tool:{TOOL}":
                    return read_report(json.loads(texts[index] or "null"))
            return find_report("\n".join(texts[index] for index, kind in self._kinds.items() if kind == "text"))
        except ValueError as error:
            raise _TryAgain(f"garbage: {error}") from error


def _classified(error: Any, now: float) -> _TryAgain | _GiveUp:
    kind = error.type or ""
    status = error.status_code
    reason = f"{kind or 'status'} {status}"
    # An overload may come inside a 200, or as an api_error that only says so in words.
    if kind in _PASSING or status in (408, 409, 429) or status >= 500 or "overloaded" in str(error.message).lower():
        return _TryAgain(reason, _retry_after(error.response.headers, now))
    return _GiveUp(f"{reason}: {' '.join((error.api_message or '').split())[:200]}")


def _retry_after(headers: Any, now: float) -> float:
    """Seconds that the server asks for, as a number or a date; 0 when it asks for none."""
    from email.utils import parsedate_to_datetime

    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "")
        try:
            return max(0.0, float(text) * unit)
        except ValueError:
            pass
        with suppress(TypeError, ValueError):
            return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    return 0.0
