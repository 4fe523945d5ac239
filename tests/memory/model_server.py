"""A Messages server on loopback that answers each forced tool as a script says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.e2e.messages_server import stream_of

Script = Callable[[dict[str, Any]], Any]


class ModelServer:
    """Serves until it is left.

    Args:
        script: from a request's JSON to the input of the tool that it forces; an int is an HTTP error of that status, a
            str is answered as plain text.

    Attributes:
        requests: what was asked, in order.
        keys: the API keys that came with them.
    """

    def __init__(self, script: Script) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append(request)
                given = self.headers.get("x-api-key") or self.headers.get("authorization") or ""
                outer.keys.append(given.removeprefix("Bearer "))
                answer = script(request)
                status = answer if isinstance(answer, int) else 200
                if status != 200:
                    body, kind = json.dumps(_error()).encode(), "application/json"
                else:
                    body, kind = b"".join(stream_of(_message(request, answer))), "text/event-stream"
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.send_header("x-should-retry", "false")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _error() -> dict[str, Any]:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}


def _message(request: dict[str, Any], answer: Any) -> dict[str, Any]:
    if isinstance(answer, str):
        content: list[dict[str, Any]] = [{"type": "text", "text": answer}]
    else:
        # Thoughts first, as current models do.
        content = [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "tool_use", "id": "toolu_1", "name": request["tool_choice"]["name"], "input": answer},
        ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
