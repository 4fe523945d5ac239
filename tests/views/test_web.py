"""``gt web``: who is let in, what the page is told, and the whole of it behind a real server."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from click.testing import CliRunner

from tests.waiting import until
from witness.cli.web import web
from witness.errors import UsageError, WitnessError
from witness.journal import Journal

PAGE = Path(__file__).parents[2] / "witness" / "views" / "page"


class Browser:
    """A client of a running ``gt web``."""

    def __init__(self, link: str) -> None:
        self.link = urlsplit(link)
        self.cookie = ""
        self.connections = ExitStack()

    def ask(self, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.link.port, timeout=20)
        self.connections.callback(connection.close)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers={"Cookie": self.cookie} | given)
        answer = connection.getresponse()
        self.connections.callback(answer.close)
        return answer

    def enter(self) -> http.client.HTTPResponse:
        return self.ask(f"{self.link.path}?{self.link.query}")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    (tmp_path / ".runtime" / "witness").mkdir(parents=True)
    (tmp_path / "mayor").mkdir()
    (tmp_path / "mayor" / "town.json").write_text('{"type": "town", "version": 2, "name": "t"}')
    with Journal(tmp_path / ".runtime" / "witness" / "witness.db"):
        pass
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "witness.cli", "web", "--port", "0"], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "GT_TOWN_ROOT": str(tmp_path)}, cwd=tmp_path,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        found = Browser(process.stdout.readline().strip())

        def answers() -> bool:
            try:
                return found.ask("/").status == 403
            except OSError:
                return False

        until(answers)
        with found.connections:
            yield found
    finally:
        process.terminate()
        process.wait(20)
        if process.stdout:
            process.stdout.close()


def test_the_link_lets_one_browser_in_once(browser: Browser) -> None:
    assert browser.ask("/enter?key=wrong").status == 403
    entered = browser.enter()
    cookie = entered.headers["Set-Cookie"]
    assert entered.status == 303
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    assert browser.enter().status == 403
    for path in ("/", "/events", "/polecat?run=x", "/page/page.js"):
        assert browser.ask(path).status == 403
    browser.cookie = cookie.partition(";")[0]
    shown = browser.ask("/")
    assert shown.status == 200
    assert "default-src 'none'" in shown.headers["Content-Security-Policy"]
    assert browser.ask("/page/..%2fweb.py").status == 404
    assert browser.ask("/polecat?run=x").status == 404
    assert browser.ask("/", "POST").status == 405
    here = f"http://127.0.0.1:{browser.link.port}"
    assert browser.ask("/", Origin=here).status == 200
    assert browser.ask("/", Origin="http://evil.example").status == 403
    assert browser.ask("/", Sec_Fetch_Site="cross-site").status == 403
    assert browser.ask("/", Host="evil.example").status == 403
    stream = browser.ask("/events")
    told = json.loads(stream.readline().removeprefix(b"data: "))
    assert told == {"rows": [], "counts": "no polecats", "witness": "no Witness: gt witness start"}
    stream.close()


def test_the_page_is_small_and_loads_nothing_from_elsewhere() -> None:
    text = "".join(each.read_text() for each in PAGE.iterdir())
    assert len(text.encode()) <= 100_000
    assert "://" not in text
    assert "innerHTML" not in text


@pytest.mark.parametrize(
    "given",
    [["--host", "0.0.0.0"], ["--host", "box.example"], ["--tls-cert", __file__]],  # noqa: S104
)
def test_others_see_it_only_when_that_was_asked_for(given: list[str]) -> None:
    assert isinstance(CliRunner().invoke(web, given).exception, UsageError)


def test_without_the_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GT_TOWN_ROOT", str(tmp_path))
    (tmp_path / "mayor").mkdir()
    (tmp_path / "mayor" / "town.json").write_text('{"type": "town", "version": 2, "name": "t"}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    found = CliRunner().invoke(web, []).exception
    assert isinstance(found, WitnessError)
    assert "gt-witness[web]" in str(found)
