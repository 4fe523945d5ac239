"""The one client of the Messages API: endpoint, deadline, retries, errors, usage and prices.

Judges, the distiller, memory and the party ask through it, so a fault of the service means the same to all of them.
The module imports anthropic, httpx2 and tenacity only when the first question is asked.

How a question goes. ``ask`` has one deadline for everything, retries and waits included. Each try streams its answer,
because only a stream tells what an answer that was cut off has cost. What passes by itself (an overload, a rate limit,
a broken connection, an answer that is no message) is tried again after the pause that the server names, or after a
doubling one with jitter; everything else is told at once. A compressed or endless body is refused.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from sidecars.llm.reply import COUNTS, ModelFault, Reply, StreamedAnswer, one_line
from witness.clock import Clock, SystemClock
from witness.journal.records import Usage
from witness.prices import Prices, dollars

# Bytes of all responses to one question, retries included; the events around each piece of an answer make it many times
# longer.
_LONGEST_BODY = 16 << 20
# Kinds of errors that pass by themselves, wherever they come: as a status, or as an event inside a 200.
_RETRYABLE = frozenset(["overloaded_error", "rate_limit_error", "api_error", "timeout_error"])
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 1.5
_MOST_TRIES = 6


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the model is.

    Args:
        key: the API key.
        model: the model's id.
        url: base address of an Anthropic-compatible server; empty for ``ANTHROPIC_BASE_URL``, else Anthropic's own.
        prices: the town's own prices, see ``prices.price``.
    """

    key: str = field(repr=False)
    model: str = ""
    url: str = ""
    prices: Prices = field(default_factory=dict)


class ModelClient:
    """Asks one endpoint, and adds up what it costs.

    Args:
        endpoint: where the model is.
        clock: where the time comes from.

    Attributes:
        usage: what all its questions cost so far, failed tries included.
    """

    def __init__(self, endpoint: Endpoint, clock: Clock | None = None) -> None:
        self.endpoint, self._clock = endpoint, clock or SystemClock()
        self.usage = Usage(model=endpoint.model)
        self._room = _Room()
        self._client: Any = None
        self._runner: asyncio.Runner | None = None

    def open(self) -> None:
        """Import the SDK and make the connection pool: slower than a verdict may be, so paid before its deadline."""
        if self._runner is not None:
            return
        from anthropic import AsyncAnthropic

        self._runner = asyncio.Runner()
        self._client = AsyncAnthropic(
            api_key=self.endpoint.key,
            base_url=self.endpoint.url or os.environ.get("ANTHROPIC_BASE_URL") or None,
            max_retries=0,
            default_headers={"accept-encoding": "identity"},
            http_client=_bounded_http(self._room),
        )

    def close(self) -> None:
        """Let go of the connection."""
        if self._runner is not None:
            self._runner.run(self._client.close())
            self._runner.close()
            self._runner = None

    def ask(
        self, arguments: Mapping[str, Any], seconds: float, accept: Callable[[Reply], object] = lambda reply: None
    ) -> Reply:
        """Put one question.

        Args:
            arguments: of ``messages.create``, without the model's id.
            seconds: for everything, retries included.
            accept: looks at an answer; one for which it raises ``ValueError`` is asked for again.

        Raises:
            ModelFault: there is no answer.
        """
        self.open()
        self._room.left = _LONGEST_BODY
        assert self._runner is not None  # noqa: S101
        began = self._clock.monotonic()
        before = self.usage
        try:
            return self._runner.run(self._within(dict(arguments), seconds, accept))
        finally:
            spent = self._clock.monotonic() - began
            each = replace(
                self.usage,
                **{name: getattr(self.usage, name) - getattr(before, name) for name in (*COUNTS, "calls")},
            )
            self.usage = replace(
                self.usage,
                seconds=before.seconds + spent,
                dollars=before.dollars + dollars(each, self.endpoint.prices),
            )

    async def _within(self, arguments: dict[str, Any], seconds: float, accept: Callable[[Reply], object]) -> Reply:
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, stop_before_delay

        last: ModelFault | None = None
        try:
            async with asyncio.timeout(seconds):
                tries = AsyncRetrying(
                    # A server that asks for more time than there is gets it: an answer too late helps nobody.
                    stop=stop_before_delay(seconds) | stop_after_attempt(_MOST_TRIES),
                    wait=_pause,
                    retry=retry_if_exception(lambda error: isinstance(error, ModelFault) and error.retryable),
                    reraise=True,
                )
                async for attempt in tries:
                    with attempt:
                        try:
                            return await self._once(arguments, accept)
                        except ModelFault as error:
                            last = error
                            raise
        except TimeoutError:
            reason = last.reason if last else "no answer"
            raise ModelFault(
                f"timeout: no answer within {seconds:g} s ({reason})", retryable=True, timeout=True
            ) from None
        raise AssertionError("tenacity ended without an answer")

    async def _once(self, arguments: dict[str, Any], accept: Callable[[Reply], object]) -> Reply:
        import anthropic
        import httpx2

        self.usage = replace(self.usage, calls=self.usage.calls + 1)
        try:
            reply = (await self._receive(arguments)).reply()
            accept(reply)
            return reply
        except anthropic.APIStatusError as error:
            raise _classified(error, self._clock.wall()) from error
        except (anthropic.APIConnectionError, httpx2.TransportError) as error:
            raise ModelFault(f"connection: {type(error).__name__}", retryable=self._room.left >= 0) from error
        except (anthropic.APIError, ValueError, RecursionError, TypeError, AttributeError) as error:
            raise ModelFault(f"garbage: {one_line(str(error))}", retryable=True) from error

    async def _receive(self, arguments: dict[str, Any]) -> StreamedAnswer:
        answer = StreamedAnswer()
        stream = await self._client.messages.create(**arguments, model=self.endpoint.model, stream=True)
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


@dataclass
class _Room:
    """What the responses to the present question may still hold.

    Args:
        left: bytes.
    """

    left: int = _LONGEST_BODY


def _bounded_http(room: _Room) -> Any:
    """An HTTP client whose answers end: plain ones only, because a small compressed body may unfold without end."""
    import httpx2
    from anthropic import DefaultAsyncHttpxClient

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in self._stream:
                room.left -= len(chunk)
                if room.left < 0:
                    raise httpx2.ReadError(f"the answers are longer than {_LONGEST_BODY} bytes")
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    class Transport(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: Any) -> Any:
            response = await super().handle_async_request(request)
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                await response.aclose()
                raise httpx2.ReadError("the body is compressed, and none was asked for")
            response.stream = Bounded(response.stream)
            return response

    return DefaultAsyncHttpxClient(transport=Transport())


def _pause(state: Any) -> float:
    """The wait before the next try: what the server asked for, else doubling with jitter."""
    error = state.outcome.exception()
    if error.pause:
        return float(error.pause)
    ceiling = min(_LONGEST_WAIT, _FIRST_WAIT * 2**state.attempt_number)
    return random.uniform(ceiling / 2, ceiling)  # noqa: S311 - jitter, no secret


def _classified(error: Any, now: float) -> ModelFault:
    kind = error.type or ""
    status = error.status_code
    reason = f"{kind or 'status'} {status}"
    # An overload may come inside a 200, or as an api_error that only says so in words.
    passes = status in (408, 409, 429) or status >= 500
    inside = status < 400 and (kind in _RETRYABLE or "overloaded" in str(error.message).lower())
    if (passes or inside) and error.response.headers.get("x-should-retry") != "false":
        return ModelFault(reason, status=status, retryable=True, pause=_retry_after(error.response.headers, now))
    return ModelFault(f"{reason}: {one_line(error.api_message or '')}", status=status)


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
