"""A scripted Anthropic Messages server on loopback: for whatever talks to a model, without key or network."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from witness.testing.answers import Answer, Exchange, Request, Step, answer_of, fail, say, texts_of


class MessagesServer:
    """The server; a context manager.

    Each request takes the next step of its script: a block, several, an ``Answer``, or a function of the request that
    returns one of these. Streams and whole messages are answered alike, ``count_tokens`` too.

    Args:
        steps: the beginning of the script, as for ``play``.
        client: an agent's client talks to it. Requests that offer no Bash tool (titles, warm-ups) are of the kind
            ``side`` and take no step; a subagent's are of the kind ``subagent``, those of a sidecar's model of the
            kind ``judge``, with a script each.
        strict: a request that breaks one of the API's rules is answered with 400; so it is when not said, but for a
            client.
        otherwise: the step of a request for which no step is left: status 400 when None, ``Done.`` for a client.
        on_request: called with each request before its step is looked for, in the server's thread.

    Attributes:
        requests: every request so far, in the order in which they came.

    Examples:
        >>> from urllib.request import Request as Post, urlopen
        >>> with MessagesServer(say("Good morning.")) as server:
        ...     body = b'{"max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}'
        ...     answer = urlopen(Post(f"{server.url}/v1/messages", body)).read()
        >>> b"Good morning." in answer, server.requests[0].text
        (True, 'Hello')
    """

    def __init__(
        self,
        *steps: Step,
        client: bool = False,
        strict: bool | None = None,
        otherwise: Step | None = None,
        on_request: Callable[[Request], None] | None = None,
    ) -> None:
        self.requests: list[Request] = []
        self._scripts: dict[str, list[Step]] = {"main": list(steps), "subagent": [], "judge": []}
        self._client, self._strict = client, not client if strict is None else strict
        self._otherwise = otherwise or (say("Done.") if client else fail(400, text="the script has run out"))
        self._on_request = on_request
        self._subagent_prompts: set[str] = set()
        self._changed = threading.Condition(threading.RLock())
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.messages = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Its address, as for ``ANTHROPIC_BASE_URL`` and ``model_url``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The JSON of every request so far."""
        return [request.body for request in self.requests]

    def environment(self) -> dict[str, str]:
        """The variables that make an agent's client talk to this server and to nobody else."""
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "sk-test",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }

    def play(self, *steps: Step, kind: str = "main") -> None:
        """Add steps to the end of the script of one kind of request.

        Args:
            steps: what is answered, in order.
            kind: ``main``, ``subagent`` or ``judge``.
        """
        with self._changed:
            self._scripts[kind].extend(steps)

    def of(self, kind: str = "main") -> list[Request]:
        """The requests of that kind so far.

        Args:
            kind: ``main``, ``subagent``, ``judge`` or ``side``.
        """
        with self._changed:
            return [request for request in self.requests if request.kind == kind]

    def wait_for(self, wanted: Callable[[Request], bool], timeout: float = 30.0) -> Request:
        """The first request that is wanted, waiting until it comes.

        Args:
            wanted: tells it.
            timeout: seconds.

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
                    raise TimeoutError(f"no such request within {timeout:g} s; these came:\n{seen}")

    def wait_for_count(self, count: int, kind: str = "main", timeout: float = 30.0) -> Request:
        """The ``count``-th request of a kind (1 is the first), as ``wait_for``.

        Args:
            count: which of them.
            kind: as for ``of``.
            timeout: seconds.

        Raises:
            TimeoutError: it did not come.
        """

        def is_it(request: Request) -> bool:
            return [each for each in self.requests if each.kind == kind][count - 1 : count] == [request]

        return self.wait_for(is_it, timeout)

    # -- the server's side ----------------------------------------------------------------------------------------

    def _answer(self, body: dict[str, Any], key: str) -> tuple[Request, Answer]:
        with self._changed:
            request = Request(len(self.requests) + 1, body, key, time.monotonic())
            request.kind = self._kind(request)
            if self._on_request:
                self._on_request(request)
            self.requests.append(request)
            self._changed.notify_all()
            if self._strict and (fault := _broken_rule(request)):
                return request, fail(400, text=fault)
            script = self._scripts.get(request.kind)
            step = script.pop(0) if script else self._otherwise
        answer = answer_of(step, request)
        request.answered = list(answer.blocks)
        with self._changed:
            self._subagent_prompts |= {
                str(block["input"]["prompt"]).strip()
                for block in answer.blocks
                if isinstance(block.get("input"), dict) and "prompt" in block["input"]
            }
        return request, answer

    def _kind(self, request: Request) -> str:
        if not self._client:
            return "main"
        if "report_signal" in request.tools:
            return "judge"
        if "Bash" not in request.tools:
            # A client that asks for a sidecar has no tool for the answer.
            return "judge" if "call of report_signal" in request.text else "side"
        # A subagent is told from the main agent by the prompt that the script itself gave it.
        first = texts_of((request.messages or [{}])[0].get("content"))
        return "subagent" if self._subagent_prompts & {text.strip() for text in first} else "main"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    messages: MessagesServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client hangs up when it is ended: that is no fault of the test."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send({})

    def do_GET(self) -> None:
        self._send({})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            body = json.loads(data or b"{}")
        except ValueError:
            body = {}
        if "count_tokens" in self.path:
            self._send({"input_tokens": Request(0, body).tokens})
        elif "/v1/messages" not in self.path:
            self._send({})
        else:
            key = self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")
            request, answer = self.server.messages._answer(body, key)
            with suppress(BrokenPipeError, ConnectionResetError):
                answer.write(Exchange(request, self))
                request.sent = time.monotonic()

    def _send(self, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _broken_rule(request: Request) -> str:
    """Which of the API's rules a request breaks, empty when none."""
    body, messages = request.body, request.messages
    thinking, forced = body.get("thinking", {}).get("type"), body.get("tool_choice", {}).get("type") == "tool"
    roles = [each["role"] for each in messages]
    broken = {
        "sampling parameters are not supported": body.get("temperature", 1) != 1
        or "top_k" in body
        or body.get("top_p", 0.99) != 0.99,
        "thinking.budget_tokens is not supported": thinking == "enabled",
        "prefill is not supported": roles[-1:] != ["user"],
        "roles must alternate": roles[:1] != ["user"] or any(one == two for one, two in itertools.pairwise(roles)),
        "a forced tool does not go with thinking": forced and thinking != "disabled",
        "at most 4 blocks may be cached": json.dumps(body).count('"cache_control"') > 4,
        "each tool_use must have its tool_result in the next message": any(
            calls != _ids(two, "tool_result", "tool_use_id")
            for one, two in itertools.pairwise(messages)
            if (calls := _ids(one, "tool_use", "id"))
        ),
        "text must not be empty": any(not text.strip() for text in request.texts),
    }
    return next((rule for rule, is_broken in broken.items() if is_broken), "")


def _ids(each: dict[str, Any], kind: str, key: str) -> list[str]:
    content = each["content"]
    return [] if isinstance(content, str) else [block[key] for block in content if block.get("type") == kind]
