"""``gt web``: the state as a page, to look at from a browser; it changes nothing.

A browser is let in by a link that works once (``/enter?key=…``); what it then has is a cookie that scripts cannot read.
Every other request needs that cookie, a ``Host`` that cannot come from a rebound DNS name (this machine's names or a
literal address), and no sign that another site's page sent it. There is no request that changes anything: nothing but
GET is answered. The page's own files are all it may load (``Content-Security-Policy``), and it writes text, never
markup.

One thread follows the town and keeps the newest moment; each open page hears of it by server-sent events.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from witness.errors import WitnessError
from witness.views.feed import Seen, TownFeed
from witness.views.rows import counts, details, rows

_COOKIE = "gt_web"
_FILES = {"index.html": "text/html", "style.css": "text/css", "page.js": "text/javascript"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
# A line to a browser that has left is how its leaving is noticed.
_KEEP_ALIVE_SECONDS = 15.0


class Page:
    """The page of one town.

    Args:
        feed: what it shows.
        host: the name or address on which it listens.
        secure: whether it is served by TLS.
    """

    def __init__(self, feed: TownFeed, host: str = "127.0.0.1", secure: bool = False) -> None:
        self._feed, self._secure = feed, secure
        self._names = {"localhost", host.lower(), socket.gethostname().lower()}
        self._token = secrets.token_urlsafe(32)
        self.key = secrets.token_urlsafe(32)
        self._seen: Seen | None = None
        self._number = 0
        self._fault = ""

    def app(self) -> Starlette:
        """The application, for an ASGI server."""
        guarded = {
            "/": self._file, "/page/{name}": self._file, "/events": self._events, "/polecat": self._polecat,
        }  # fmt: skip
        routes = [Route(path, self._guarded(answer), methods=["GET"]) for path, answer in guarded.items()]
        return Starlette(routes=[Route("/enter", self._enter, methods=["GET"]), *routes])

    def follow(self) -> None:
        """Keep the newest moment, in a thread that ends with the program."""
        threading.Thread(target=self._follow, name="gt web", daemon=True).start()

    def _follow(self) -> None:
        try:
            for seen in self._feed.moments():
                self._seen, self._number = seen, self._number + 1
        except WitnessError as error:
            self._fault, self._number = str(error), self._number + 1

    def _refusal(self, request: Request) -> str:
        try:
            name = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
        except ValueError:
            name = ""
        if name not in self._names and not _is_address(name):
            return "this name is not this machine's"
        origin = request.headers.get("origin")
        here = f"{'https' if self._secure else 'http'}://{request.headers.get('host', '')}"
        if origin is not None and origin != here:
            return "another site's page may not ask this"
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "another site's page may not ask this"
        return ""

    async def _enter(self, request: Request) -> Response:
        refusal = self._refusal(request)
        given = request.query_params.get("key", "").encode()
        if refusal or not self.key or not hmac.compare_digest(given, self.key.encode()):
            return _refused(refusal or "this link has been used, or is none: start gt web again")
        self.key = ""
        answer = RedirectResponse("/", 303, _HEADERS)
        answer.set_cookie(_COOKIE, self._token, httponly=True, samesite="strict", secure=self._secure)
        return answer

    def _guarded(self, answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            refusal = self._refusal(request)
            if not hmac.compare_digest(request.cookies.get(_COOKIE, "").encode(), self._token.encode()):
                refusal = refusal or "open the link that gt web has printed"
            return _refused(refusal) if refusal else await answer(request)

        return guarded

    async def _file(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in _FILES:
            return PlainTextResponse("there is no such file", 404, _HEADERS)
        text = (resources.files("witness.views") / "page" / name).read_text("utf-8")
        return Response(text, 200, _HEADERS, _FILES[name])

    async def _events(self, request: Request) -> Response:
        return StreamingResponse(self._moments(), 200, _HEADERS, "text/event-stream")

    async def _moments(self) -> AsyncIterator[str]:
        told, quiet = 0, 0.0
        while True:
            if self._number != told and (self._seen or self._fault):
                told, quiet = self._number, 0.0
                yield f"data: {json.dumps(self._moment())}\n\n"
            elif quiet >= _KEEP_ALIVE_SECONDS:
                quiet = 0.0
                yield ": still here\n\n"
            await asyncio.sleep(0.1)
            quiet += 0.1

    def _moment(self) -> dict[str, Any]:
        if self._fault or self._seen is None:
            return {"rows": [], "counts": "", "witness": self._fault}
        found = self._seen.polecats
        shown = [{"run": row.run, "section": row.section, "name": row.name, "words": row.words} for row in rows(found)]
        running = self._seen.state["witness"]["running"]
        return {"rows": shown, "counts": counts(found), "witness": "" if running else "no Witness: gt witness start"}

    async def _polecat(self, request: Request) -> Response:
        run = request.query_params.get("run", "")
        state = next((each for each in (self._seen.polecats if self._seen else []) if each["run"] == run), None)
        if state is None:
            return PlainTextResponse("there is no such polecat today", 404, _HEADERS)
        try:
            screen = await run_in_threadpool(self._feed.screen, state["address"])
        except WitnessError as error:
            screen = [str(error)]
        told = {
            "name": state["address"], "details": details(state), "screen": screen,
            "log": await run_in_threadpool(self._feed.log, run),
        }  # fmt: skip
        return Response(json.dumps(told), 200, _HEADERS, "application/json")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _refused(why: str) -> Response:
    return PlainTextResponse(f"{why}\n", 403, _HEADERS)
