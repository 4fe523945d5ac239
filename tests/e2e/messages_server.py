"""A scripted Anthropic Messages server on loopback, enough to drive the real Claude Code without key or network.

Use::

    with MessagesServer() as server:
        server.play(use("Edit", file_path=…, old_string=…, new_string=…), use("Bash", command="ls"), say("Done."))
        … start the client with server.environment() …
        request = server.wait_for(lambda request: "[sidecar:scope]" in request.news)

Each request of the main agent takes the next step of the script; when it has run out, the agent is answered "Done."
and stops. A subagent's requests take the steps of ``play(…, subagent=True)``, those of a sidecar's model judge the
steps of ``play(…, judge=True)``. Side requests of the client (titles,
summaries, warm-ups: those that list no Bash tool) are answered with plain text and take no step.

A step is one block (``say``, ``use``) or a list of blocks for parallel tool calls, or a callable that is given the
request and returns one of these: it runs in the server's thread, so it may wait for whatever the test needs.

``server.requests`` holds every request in order of arrival. ``Request.news`` is all text that the model had not seen
before: what stands after its own last message.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Block = dict[str, Any]
Step = Block | list[Block] | Callable[["Request"], "Block | list[Block]"]

_numbers = itertools.count(1)


def say(text: str) -> Block:
    """A block of text; as the only block it ends the turn."""
    return {"type": "text", "text": text}


def use(tool: str, **arguments: Any) -> Block:
    """A tool call."""
    return {"type": "tool_use", "id": f"toolu_{next(_numbers):024d}", "name": tool, "input": arguments}


@dataclass
class Request:
    """One request for a message.

    Args:
        number: its place in the order of arrival.
        body: its JSON.
        arrived: monotonic seconds.
        kind: ``main``, ``subagent``, ``judge`` or ``side``.
        answered: the blocks it was given.
        sent: monotonic seconds at which the answer was on its way.
    """

    number: int
    body: dict[str, Any]
    arrived: float
    kind: str
    answered: list[Block] = field(default_factory=list)
    sent: float = 0.0

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("messages", []))

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
    def text(self) -> str:
        """All text of all messages."""
        return "\n".join(text for message in self.messages for text in texts_of(message.get("content")))


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


class MessagesServer:
    """The server; a context manager. See the module's own text."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._scripts: dict[str, list[Step]] = {"main": [], "subagent": [], "judge": []}
        self._subagent_prompts: set[str] = set()
        self._changed = threading.Condition(threading.RLock())
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.messages = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def environment(self) -> dict[str, str]:
        """The variables that make the client talk to this server and to nobody else."""
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "sk-test",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }

    def play(self, *steps: Step, subagent: bool = False, judge: bool = False) -> None:
        """Add steps to the end of the script."""
        with self._changed:
            self._scripts["judge" if judge else "subagent" if subagent else "main"].extend(steps)

    def of(self, kind: str = "main") -> list[Request]:
        """The requests of that kind so far."""
        with self._changed:
            return [request for request in self.requests if request.kind == kind]

    def wait_for(self, wanted: Callable[[Request], bool], timeout: float = 30.0) -> Request:
        """The first request that is wanted, waiting until it comes.

        Raises:
            TimeoutError: it did not come; the text shows what did.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                for request in self.requests:
                    if wanted(request):
                        return request
                if not self._changed.wait(deadline - time.monotonic()):
                    seen = "\n".join(f"{each.number} {each.kind}: {each.news[-300:]!r}" for each in self.requests)
                    raise TimeoutError(f"no such request within {timeout} s; these came:\n{seen}")

    def wait_for_count(self, count: int, kind: str = "main", timeout: float = 30.0) -> Request:
        """The ``count``-th request of a kind (1 is the first)."""

        def is_it(request: Request) -> bool:
            return [each for each in self.requests if each.kind == kind][count - 1 : count] == [request]

        return self.wait_for(is_it, timeout)

    # -- the server's side ------------------------------------------------------------------------------------------

    def take(self, body: dict[str, Any]) -> tuple[Request, Step]:
        """Record a request and give it the step that is due."""
        with self._changed:
            kind = self._kind(body)
            request = Request(len(self.requests) + 1, body, time.monotonic(), kind)
            self.requests.append(request)
            script = self._scripts.get(kind, [])
            step = script.pop(0) if script else say("Done.")
            self._changed.notify_all()
        return request, step

    def _kind(self, body: dict[str, Any]) -> str:
        tools = [tool.get("name") for tool in body.get("tools") or []]
        if "report_signal" in tools:
            return "judge"
        if "Bash" not in tools:
            return "side"
        # A subagent is told from the main agent by the prompt that the script itself gave it.
        first = texts_of((body.get("messages") or [{}])[0].get("content"))
        return "subagent" if self._subagent_prompts & {text.strip() for text in first} else "main"

    def answer(self, body: dict[str, Any]) -> Request:
        """The request, with the blocks that it is answered with."""
        request, step = self.take(body)
        blocks = step(request) if callable(step) else step
        request.answered = blocks if isinstance(blocks, list) else [blocks]
        with self._changed:
            self._subagent_prompts |= {
                str(block["input"]["prompt"]).strip()
                for block in request.answered
                if "prompt" in block.get("input", {})
            }
        return request


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    messages: MessagesServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client hangs up when it is ended: that is no fault of the test."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send(b"")

    def do_GET(self) -> None:
        self._send(b"{}")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {}
        if "count_tokens" in self.path:
            self._send(b'{"input_tokens":100}')
        elif "/v1/messages" not in self.path:
            self._send(b"{}")
        else:
            request = self.server.messages.answer(body)
            blocks = request.answered
            with suppress(BrokenPipeError, ConnectionResetError):
                if body.get("stream"):
                    self._send(b"".join(stream_of(_message(body, blocks))), "text/event-stream")
                else:
                    self._send(json.dumps(_message(body, blocks)).encode())
                request.sent = time.monotonic()

    def _send(self, data: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.send_header("request-id", f"req_{next(_numbers)}")
        self.end_headers()
        self.wfile.write(data)


def _message(body: dict[str, Any], blocks: list[Block]) -> dict[str, Any]:
    calls = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": f"msg_{next(_numbers):024d}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "claude-test"),
        "content": blocks,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }


def stream_of(message: dict[str, Any]) -> Iterator[bytes]:
    """The server-sent events of a whole message."""
    usage = {"output_tokens": message.get("usage", {}).get("output_tokens", 10)}
    yield _event("message_start", message={**message, "content": [], "stop_reason": None})
    for index, block in enumerate(message["content"]):
        key, kind = _STREAMED[block["type"]]
        start = {**block, key: {} if key == "input" else ""}
        text = json.dumps(block["input"]) if key == "input" else block[key]
        delta = {"type": kind, "partial_json" if key == "input" else key: text}
        yield _event("content_block_start", index=index, content_block=start)
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=ending, usage=usage)
    yield _event("message_stop")


_STREAMED = {
    "text": ("text", "text_delta"),
    "thinking": ("thinking", "thinking_delta"),
    "tool_use": ("input", "input_json_delta"),
}


def _event(name: str, **fields: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()
