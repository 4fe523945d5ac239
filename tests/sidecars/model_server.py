"""A Messages server on loopback that answers by a script, faults included, and enforces Haiku 5.5's request rules."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# An answer writes itself to the handler.
Answer = Callable[["Handler"], None]

USAGE = {"input_tokens": 40, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 200, "output_tokens": 1}


def report(**fields: Any) -> dict[str, Any]:
    """The input of ``report_signal``."""
    return {"signal": False, "evidence": "", "confidence": "low", "snippet": None, "message": ""} | fields


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append(body)
        fault = broken_rule(body)
        if fault:
            status(400, "invalid_request_error", fault)(self)
            return
        answer = self.server.answers.pop(0) if self.server.answers else status(500, "api_error", "script is over")
        answer(self)

    def start(self, code: int, kind: str, **headers: str) -> None:
        self.send_response(code)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def event(self, data: dict[str, Any]) -> None:
        self.wfile.write(f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    requests: list[dict[str, Any]]
    answers: list[Answer]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_: Any) -> None:
        pass  # the client hung up: that is what the tests make it do


def broken_rule(body: dict[str, Any]) -> str:
    """Which of the model family's rules a request breaks, empty when none."""
    if body.get("temperature", 1) != 1 or "top_k" in body or body.get("top_p", 0.99) != 0.99:
        return "sampling parameters are not supported"
    if body.get("thinking", {}).get("type") == "enabled":
        return "thinking.budget_tokens is not supported"
    if body["messages"][-1]["role"] == "assistant":
        return "prefill is not supported"
    if body.get("tool_choice", {}).get("type") == "tool" and body.get("thinking", {}).get("type") != "disabled":
        return "a forced tool does not go with thinking"
    return ""


# -- answers --------------------------------------------------------------------------------------------------------


def blocks(*content: dict[str, Any], stop: str = "tool_use", events: int | None = None) -> Answer:
    """A streamed message of content blocks.

    Args:
        content: text, thinking or tool_use blocks.
        stop: the stop reason.
        events: how many events are sent before the stream is cut; all when None.
    """
    message: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [],
                               "stop_reason": None, "stop_sequence": None, "usage": USAGE}  # fmt: skip
    sent: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, block in enumerate(content):
        if block["type"] == "tool_use":
            start: dict[str, Any] = {**block, "input": {}}
            text = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
            half = len(text) // 2
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in (text[:half], text[half:])]
        elif block["type"] == "thinking":
            start, deltas = {**block, "thinking": ""}, [{"type": "thinking_delta", "thinking": block["thinking"]}]
        else:
            start, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        sent.append({"type": "content_block_start", "index": index, "content_block": start})
        sent += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        sent.append({"type": "content_block_stop", "index": index})
    ending = {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}}
    sent += [{**ending, "usage": {"output_tokens": count}} for count in (20, 60)]
    sent.append({"type": "message_stop"})

    def answer(handler: Handler) -> None:
        handler.start(200, "text/event-stream")
        for event in sent[:events]:
            handler.event(event)

    return answer


def tool(given: Any) -> Answer:
    """The forced tool, called."""
    return blocks(tool_block(given))


def tool_block(given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t", "name": "report_signal", "input": given}


def text(words: str) -> Answer:
    """Plain text in place of the tool."""
    return blocks({"type": "text", "text": words}, stop="end_turn")


def status(code: int, kind: str, message: str = "no", **headers: str) -> Answer:
    """An error with a status."""

    def answer(handler: Handler) -> None:
        handler.start(code, "application/json", **headers)
        handler.wfile.write(json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode())

    return answer


def error_inside(kind: str, message: str = "no") -> Answer:
    """A 200 whose stream holds an error."""

    def answer(handler: Handler) -> None:
        blocks(events=1)(handler)
        handler.event({"type": "error", "error": {"type": kind, "message": message}})

    return answer


def garbage(body: bytes, kind: str = "text/event-stream") -> Answer:
    """A 200 with anything."""

    def answer(handler: Handler) -> None:
        handler.start(200, kind)
        handler.wfile.write(body)

    return answer


def reset(handler: Handler) -> None:
    """The connection is closed before a byte."""
    handler.close_connection = True
    handler.connection.close()


def held(gate: threading.Event) -> Answer:
    """Nothing, until the test opens the gate."""

    def answer(handler: Handler) -> None:
        gate.wait(30)
        handler.close_connection = True

    return answer


def drip(gate: threading.Event) -> Answer:
    """A stream that is alive and gets nowhere: a ping now and then, for ever."""

    def answer(handler: Handler) -> None:
        handler.start(200, "text/event-stream")
        while not gate.wait(0.02):
            handler.event({"type": "ping"})

    return answer


def knowing(signs: dict[str, str], count: int = 1000, quote: str = "") -> list[Answer]:
    """A model that knows the right answers: of a question that holds one of the signs it says the sign's words.

    Args:
        signs: words by sign.
        count: of answers.
        quote: the document's sentence that it always holds against it.
    """

    def answer(handler: Handler) -> None:
        question = handler.server.requests[-1]["messages"][-1]["content"]
        sign = next((sign for sign in signs if sign in question), None)
        given = report()
        if sign:
            given |= {"signal": True, "evidence": sign, "confidence": "high", "message": signs[sign]}
            given |= {"source_quote": quote}
        tool(given)(handler)

    return [answer] * count


@contextmanager
def serving(*answers: Answer) -> Iterator[Server]:
    """A running server; ``requests`` keeps what it was asked."""
    server = Server(("127.0.0.1", 0), Handler)
    server.requests, server.answers = [], list(answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
