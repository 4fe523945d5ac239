"""A scripted Messages server on loopback: it answers by the script, enforces the API's rules and counts tokens."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.e2e.messages_server import stream_of

Block = dict[str, Any]
Reply = list[Block] | int | dict[str, Any]
Step = Reply | Callable[[dict[str, Any]], Reply]

_numbers = itertools.count(1)

# About what the tokenizers of 2026 make of English and logs.
BYTES_A_TOKEN = 3.5


def say(text: str) -> list[Block]:
    return [{"type": "text", "text": text}]


def use(tool: str, **given: Any) -> list[Block]:
    return [{"type": "tool_use", "id": f"toolu_{next(_numbers):024d}", "name": tool, "input": given}]


def texts(body: dict[str, Any]) -> list[str]:
    """Every text of the messages of a request, tool results included."""
    found = []
    for message in body["messages"]:
        content = message["content"]
        for block in [{"text": content}] if isinstance(content, str) else content:
            if block.get("type", "text") in ("text", "tool_result"):
                found.append(block.get("text") or block.get("content") or "")
    return [each for each in found if isinstance(each, str)]


class ModelServer:
    """The server; a context manager. ``play`` adds steps: blocks, an error status, a whole message, or a callable."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.steps: list[Step] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.scripted = self  # type: ignore[attr-defined]
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

    @property
    def tokens_sent(self) -> int:
        """About how many tokens all requests held together: prompts, tools and histories."""
        return round(sum(_size(body) for body in self.requests) / BYTES_A_TOKEN)

    def play(self, *steps: Step) -> None:
        self.steps += steps


def _size(body: dict[str, Any]) -> int:
    sent = {key: body[key] for key in ("system", "tools", "messages") if key in body}
    return len(json.dumps(sent, ensure_ascii=False).encode())


def _fault(body: dict[str, Any]) -> str:
    """Which of the API's rules a request breaks."""
    if body.get("temperature", 1) != 1 or "top_k" in body or body.get("top_p", 0.99) != 0.99:
        return "sampling parameters are not supported"
    if body.get("thinking", {}).get("type") == "enabled":
        return "thinking.budget_tokens is not supported"
    roles = [message["role"] for message in body["messages"]]
    if roles[-1] == "assistant":
        return "prefill is not supported"
    if any(first == second for first, second in itertools.pairwise(roles)) or roles[0] != "user":
        return "roles must alternate"
    if json.dumps(body).count("cache_control") > 4:
        return "at most 4 blocks may be cached"
    return _fault_of_calls(body) or ("text must not be empty" if any(not text.strip() for text in texts(body)) else "")


def _fault_of_calls(body: dict[str, Any]) -> str:
    for asked, answered in itertools.pairwise(body["messages"]):
        calls = [block["id"] for block in asked["content"] if block.get("type") == "tool_use"]
        results = [block["tool_use_id"] for block in answered["content"] if block.get("type") == "tool_result"]
        if calls and calls != results:
            return "each tool_use must have its tool_result in the next message"
    return ""


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        scripted: ModelServer = self.server.scripted  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        scripted.requests.append(body)
        scripted.keys.append(self.headers.get("x-api-key") or self.headers.get("authorization") or "")
        if fault := _fault(body):
            return self._send(400, _error("invalid_request_error", fault))
        if not scripted.steps:
            return self._send(400, _error("invalid_request_error", "the script has run out"))
        step = scripted.steps.pop(0)
        reply = step(body) if callable(step) else step
        if isinstance(reply, int):
            kind = {401: "authentication_error", 404: "not_found_error", 529: "overloaded_error"}
            return self._send(reply, _error(kind.get(reply, "api_error"), "as the script says"))
        if isinstance(reply, list):
            reply = {"content": reply}
        calls = any(block["type"] == "tool_use" for block in reply["content"])
        message = {
            "id": f"msg_{next(_numbers):024d}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": round(_size(body) / BYTES_A_TOKEN),
                "output_tokens": round(len(json.dumps(reply["content"])) / BYTES_A_TOKEN),
            },
            **reply,
        }
        if body.get("stream"):
            return self._send(200, b"".join(stream_of(message)))
        return self._send(200, message)

    def _send(self, status: int, body: dict[str, Any] | bytes) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "text/event-stream" if isinstance(body, bytes) else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}
