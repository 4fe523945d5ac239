"""Scripted servers for the other clients' model APIs, on loopback: OpenAI Responses, OpenAI chat, Gemini.

One server speaks all three; the path tells which. Each request for a turn that offers tools takes the next step of the
script: ``("tool", {arguments})`` for a tool call (``("tool", "text")`` for one that takes free text, as Codex's
``apply_patch``), a string for words that end the turn.
"""

from __future__ import annotations

import itertools
import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Step = tuple[str, dict[str, Any] | str] | str
_numbers = itertools.count(1)


class OtherModels:
    """The server; a context manager.

    Attributes:
        requests: the bodies of all turn requests, as JSON text, in order.
    """

    def __init__(self) -> None:
        self.requests: list[str] = []
        self._script: list[Step] = []
        self._changed = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.models = self
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

    def play(self, *steps: Step) -> None:
        """Add steps to the script."""
        with self._changed:
            self._script.extend(steps)

    def take(self, body: dict[str, Any]) -> Step:
        """Record a request and give it the step that is due."""
        with self._changed:
            if not body.get("tools"):
                return "A title"
            self.requests.append(json.dumps(body, ensure_ascii=False))
            self._changed.notify_all()
            return self._script.pop(0) if self._script else "Done."

    def wait_for(self, count: int, timeout: float = 40.0) -> str:
        """The ``count``-th request.

        Raises:
            TimeoutError: it did not come.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, timeout):
                raise TimeoutError(f"{len(self.requests)} of {count} requests came within {timeout} s")
            return self.requests[count - 1]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    models: OtherModels

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is ended hangs up."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._send(b'{"data":[],"models":[]}', "application/json")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {}
        if "/responses" in self.path:
            events = _responses(self.server.models.take(body))
        elif "/chat/completions" in self.path:
            events = _chat(self.server.models.take(body))
        elif "GenerateContent" in self.path:
            events = _gemini(self.server.models.take(body))
        elif "generateContent" in self.path:
            self._send(json.dumps(_gemini_turn(self.server.models.take(body))).encode(), "application/json")
            return
        else:
            self._send(b"{}", "application/json")
            return
        self._send("".join(events).encode(), "text/event-stream")

    def _send(self, data: bytes, kind: str) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)


def _responses(step: Step) -> list[str]:
    name = f"resp_{next(_numbers)}"
    if isinstance(step, str):
        item: dict[str, Any] = {
            "type": "message",
            "role": "assistant",
            "id": f"msg_{next(_numbers)}",
            "content": [{"type": "output_text", "text": step}],
        }
    elif isinstance(step[1], str):
        item = {
            "type": "custom_tool_call",
            "id": f"ctc_{next(_numbers)}",
            "call_id": f"call_{next(_numbers)}",
            "name": step[0],
            "input": step[1],
        }
    else:
        item = {
            "type": "function_call",
            "id": f"fc_{next(_numbers)}",
            "call_id": f"call_{next(_numbers)}",
            "name": step[0],
            "arguments": json.dumps(step[1]),
        }
    usage = {
        "input_tokens": 10,
        "input_tokens_details": None,
        "output_tokens": 1,
        "output_tokens_details": None,
        "total_tokens": 11,
    }
    events: list[dict[str, object]] = [
        {"type": "response.created", "response": {"id": name}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": name, "usage": usage}},
    ]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


def _chat(step: Step) -> list[str]:
    if isinstance(step, str):
        delta: dict[str, Any] = {"role": "assistant", "content": step}
    else:
        call = {"name": step[0], "arguments": json.dumps(step[1])}
        delta = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"index": 0, "id": f"call_{next(_numbers)}", "type": "function", "function": call}],
        }
    reason = "stop" if isinstance(step, str) else "tool_calls"
    base = {"id": f"chat_{next(_numbers)}", "object": "chat.completion.chunk", "created": 1, "model": "test"}
    chunks = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {
            **base,
            "choices": [{"index": 0, "delta": {}, "finish_reason": reason}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
        },
    ]
    return [*(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), "data: [DONE]\n\n"]


def _gemini_turn(step: Step) -> dict[str, Any]:
    part = {"text": step} if isinstance(step, str) else {"functionCall": {"name": step[0], "args": step[1]}}
    return {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 1, "totalTokenCount": 11},
        "modelVersion": "test",
    }


def _gemini(step: Step) -> list[str]:
    return [f"data: {json.dumps(_gemini_turn(step))}\n\n"]
