"""What a scripted Messages server is asked, and all that it may answer: blocks, whole messages, errors, silence."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, TypeAlias

Block: TypeAlias = dict[str, Any]
"""A block of a message's content, as the Messages API writes it."""

# About what the tokenizers of 2026 make of English and logs.
_BYTES_A_TOKEN = 3.5
_FAULTS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
# Which field of a block is sent in pieces, the name of the piece's type, and of its field.
_STREAMED = {
    "text": ("text", "text_delta", "text"),
    "thinking": ("thinking", "thinking_delta", "thinking"),
    "tool_use": ("input", "input_json_delta", "partial_json"),
}
_numbers = itertools.count(1)


@dataclass
class Request:
    """One request for a message.

    Args:
        number: its place in the order of arrival, from 1.
        body: its JSON.
        key: the API key that came with it, empty for none.
        arrived: monotonic seconds.
        kind: ``main``, and for a client also ``subagent``, ``judge`` or ``side``.
        answered: the blocks that it was given.
        sent: monotonic seconds at which the answer was out; 0 before that.
    """

    number: int
    body: dict[str, Any]
    key: str = ""
    arrived: float = 0.0
    kind: str = "main"
    answered: list[Block] = field(default_factory=list)
    sent: float = 0.0

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Its messages, oldest first."""
        return list(self.body.get("messages", []))

    @property
    def texts(self) -> list[str]:
        """Every text of its messages, tool results included."""
        return [text for message in self.messages for text in texts_of(message.get("content"))]

    @property
    def text(self) -> str:
        """All text of all messages."""
        return "\n".join(self.texts)

    @property
    def news(self) -> str:
        """All text since the model's own last message: prompts, tool results, reminders."""
        parts: list[str] = []
        for message in reversed(self.messages):
            if message.get("role") == "assistant":
                break
            parts[:0] = texts_of(message.get("content"))
        return "\n".join(parts)

    @property
    def tools(self) -> list[str]:
        """Names of the tools that it offers."""
        return [str(tool.get("name")) for tool in self.body.get("tools") or []]

    @property
    def forced_tool(self) -> str:
        """Name of the tool that it forces, empty for none."""
        return str((self.body.get("tool_choice") or {}).get("name", ""))

    @property
    def tokens(self) -> int:
        """About how many tokens its prompt, tools and history are."""
        return _tokens({key: self.body[key] for key in ("system", "tools", "messages") if key in self.body})


class Exchange:
    """A request whose answer is being written; for answers that no block can express.

    Attributes:
        request: what is answered.
    """

    def __init__(self, request: Request, handler: BaseHTTPRequestHandler) -> None:
        self.request, self._handler = request, handler

    def start(self, status: int = 200, content_type: str = "text/event-stream", **headers: str) -> None:
        """Send the head of the answer; of a header's name ``_`` stands for ``-``.

        Args:
            status: the HTTP status.
            content_type: of what follows.
            headers: further ones, as ``retry_after="2"``.
        """
        self._handler.send_response(status)
        named = {"content-type": content_type, "request-id": f"req_{self.request.number}", "connection": "close"}
        for name, value in (named | headers).items():
            self._handler.send_header(name.replace("_", "-"), value)
        self._handler.end_headers()

    def write(self, data: bytes) -> None:
        """Send bytes as they are.

        Args:
            data: the bytes.
        """
        self._handler.wfile.write(data)

    def event(self, data: dict[str, Any]) -> None:
        """Send one server-sent event.

        Args:
            data: its JSON; ``type`` names the event.
        """
        self.write(f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode())

    def hang_up(self) -> None:
        """Close the connection."""
        self._handler.close_connection = True
        self._handler.connection.close()


@dataclass(frozen=True)
class Answer:
    """An answer that is more than blocks; made by the functions of this module, or by hand.

    Args:
        write: writes it.
        blocks: the content, as far as it is any.
    """

    write: Callable[[Exchange], None]
    blocks: tuple[Block, ...] = ()


# -- blocks -------------------------------------------------------------------------------------------------------


def say(text: str) -> Block:
    """A block of text; as the only block it ends the turn.

    Args:
        text: the words.
    """
    return {"type": "text", "text": text}


def use(tool: str, /, **arguments: Any) -> Block:
    """A block that calls a tool.

    Args:
        tool: its name.
        arguments: its input.
    """
    return call(tool, arguments)


def call(tool: str, given: Any) -> Block:
    """A block that calls a tool with any input, also with one that is no object; text is sent as if it were JSON.

    Args:
        tool: its name.
        given: the input.
    """
    return {"type": "tool_use", "id": f"toolu_{next(_numbers):024d}", "name": tool, "input": given}


def think(text: str) -> Block:
    """A block of thinking.

    Args:
        text: the thoughts.
    """
    return {"type": "thinking", "thinking": text, "signature": ""}


# -- answers ------------------------------------------------------------------------------------------------------


def message(*blocks: Block, stop: str = "", usage: dict[str, int] | None = None, events: int | None = None) -> Answer:
    """A whole message.

    Args:
        blocks: its content.
        stop: the stop reason; ``tool_use`` or ``end_turn`` by its content when empty.
        usage: its counts, in place of those that are counted.
        events: of a stream, how many events are sent before the connection is cut; all when None.
    """

    def write(exchange: Exchange) -> None:
        whole = _message(exchange.request, blocks, stop, usage or {})
        if not exchange.request.body.get("stream"):
            data = json.dumps(whole).encode()
            exchange.start(200, "application/json", content_length=str(len(data)))
            exchange.write(data)
            return
        exchange.start()
        for event in itertools.islice(_events(whole), events):
            exchange.event(event)

    return Answer(write, blocks)


def fail(status: int, kind: str = "", text: str = "as the script says", **headers: str) -> Answer:
    """An error.

    Args:
        status: the HTTP status.
        kind: the error's type; the one that goes with the status when empty.
        text: its message.
        headers: further headers, as ``retry_after="2"``.
    """
    data = json.dumps(_error(kind or _FAULTS.get(status, "api_error"), text)).encode()

    def write(exchange: Exchange) -> None:
        exchange.start(status, "application/json", content_length=str(len(data)), **headers)
        exchange.write(data)

    return Answer(write)


def fail_inside(kind: str, text: str = "as the script says") -> Answer:
    """A stream with status 200 that begins and then holds an error.

    Args:
        kind: the error's type, as ``overloaded_error``.
        text: its message.
    """

    def write(exchange: Exchange) -> None:
        message(events=1).write(exchange)
        exchange.event(_error(kind, text))

    return Answer(write)


def raw(body: bytes, content_type: str = "text/event-stream") -> Answer:
    """Any bytes with status 200.

    Args:
        body: the bytes.
        content_type: what they claim to be.
    """

    def write(exchange: Exchange) -> None:
        exchange.start(200, content_type)
        exchange.write(body)

    return Answer(write)


def hang_up() -> Answer:
    """The connection is closed before a byte."""
    return Answer(Exchange.hang_up)


def hold(gate: threading.Event, seconds: float = 30.0) -> Answer:
    """Not a byte until the gate is opened, or ``seconds`` have passed; then the connection is closed.

    Args:
        gate: opened by the test.
        seconds: how long at most.
    """

    def write(exchange: Exchange) -> None:
        gate.wait(seconds)
        exchange.hang_up()

    return Answer(write)


def drip(gate: threading.Event, seconds: float = 0.02) -> Answer:
    """A stream that is alive and gets nowhere: a ping every so many seconds until the gate is opened.

    Args:
        gate: opened by the test.
        seconds: between two pings.
    """

    def write(exchange: Exchange) -> None:
        exchange.start()
        while not gate.wait(seconds):
            exchange.event({"type": "ping"})

    return Answer(write)


Given: TypeAlias = Block | list[Block] | Answer
Step: TypeAlias = Given | Callable[[Request], Given]
"""One step of a script: a block, several (calls in parallel), an ``Answer``, or a function of the request.

A function returns one of the others. It is run in the server's thread, so it may wait for whatever the test needs.
"""


def fill_form(given: Any) -> Step:
    """The tool that the request forces, else the first that it offers, is called with this input.

    Args:
        given: the input.
    """
    return lambda request: call(request.forced_tool or request.tools[0], given)


def answer_of(step: Step, request: Request) -> Answer:
    """What a step comes to for a request."""
    given = step(request) if callable(step) else step
    return given if isinstance(given, Answer) else message(*(given if isinstance(given, list) else [given]))


def texts_of(content: Any) -> list[str]:
    """Every text in a message's content, tool results included."""
    if isinstance(content, str):
        return [content]
    texts: list[str] = []
    for block in content or []:
        if block.get("type") == "text":
            texts.append(str(block["text"]))
        elif block.get("type") == "tool_result":
            texts += texts_of(block.get("content"))
    return texts


def _tokens(content: Any) -> int:
    return round(len(json.dumps(content, ensure_ascii=False).encode()) / _BYTES_A_TOKEN)


def _error(kind: str, text: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": text}}


def _message(request: Request, blocks: Iterable[Block], stop: str, usage: dict[str, int]) -> dict[str, Any]:
    content = list(blocks)
    calls = any(block["type"] == "tool_use" for block in content)
    return {
        "id": f"msg_{next(_numbers):024d}",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model", "claude-test"),
        "content": content,
        "stop_reason": stop or ("tool_use" if calls else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": request.tokens, "output_tokens": _tokens(content), **usage},
    }


def _events(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The server-sent events of a message: each block's content in two pieces, the counts in two steps."""
    usage, count = whole["usage"], whole["usage"]["output_tokens"]
    yield {
        "type": "message_start",
        "message": {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": min(count, 1)}},
    }
    for index, block in enumerate(whole["content"]):
        key, kind, piece = _STREAMED[block["type"]]
        given = block[key]
        text = given if isinstance(given, str) else json.dumps(given)
        start = {**block, key: "" if piece == key else {}}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        half = len(text) // 2
        for part in (text[:half], text[half:]):
            yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, piece: part}}
        yield {"type": "content_block_stop", "index": index}
    ending = {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None}}
    yield {**ending, "usage": {"output_tokens": min(count, count // 2 + 1)}}
    yield {**ending, "usage": {"output_tokens": count}}
    yield {"type": "message_stop"}
