"""The real Claude Code in tmux, offline: a scripted server, a seeded home, a socket of its own."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.clients import claude_program, claude_version, versions
from tests.waiting import until
from witness.agents.hook_settings import session_settings
from witness.testing import MessagesServer
from witness.tmux import Tmux

CLAUDE = claude_program()
PERMITTED = ("--permission-mode", "acceptEdits", "--allowedTools", "Bash", "Read", "Edit", "Write", "Agent")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def claude() -> Path:
    """The client's program, at the version of ``CLAUDE_VERSION``, else the pinned one; ``make e2e`` installs it."""
    if not CLAUDE.exists():
        pytest.skip(f"Claude Code {claude_version()} is not installed: .ci/need-claude {claude_version()}")
    return CLAUDE


@pytest.fixture(params=["CLAUDE", "CLAUDE_NEWEST"])
def either_claude(request: pytest.FixtureRequest) -> Path:
    """The client at the pinned version, which knows only hooks, and at the newest tried one, which runs our mod."""
    version = versions()[request.param]
    if not claude_program(version).exists():
        pytest.skip(f"not installed: .ci/need-claude {version}")
    return claude_program(version)


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with MessagesServer(client=True) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, server: MessagesServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory in which the client asks nothing, and an environment in which it talks to the server only."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    return home


@pytest.fixture
def trust(home: Path) -> Callable[[Path], Path]:
    """Tell the client that a folder is trusted, as its own dialog would."""

    def trusted(folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = home / ".claude.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        known |= {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": ["sk-test"], "rejected": []},
        }
        places = {str(folder), str(folder.resolve())}
        known.setdefault("projects", {}).update(
            {place: {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True} for place in places}
        )
        path.write_text(json.dumps(known))
        return folder

    return trusted


@pytest.fixture
def work(tmp_path: Path, trust: Callable[[Path], Path]) -> Path:
    """A trusted working directory with one small program in it."""
    folder = trust(tmp_path / "work")
    (folder / "app.py").write_text("def add(a, b):\n    return a - b\n")
    return folder


@pytest.fixture
def tmux() -> Iterator[Tmux]:
    """A tmux server of the test's own, ended with it."""
    tmux = Tmux(f"gtw-e2e-{os.getpid()}-{secrets.token_hex(3)}")
    yield tmux
    panes = tmux.panes()
    if panes:
        # Not every client ends with its terminal.
        rows = [psutil.Process(pane.pid) for pane in panes if psutil.pid_exists(pane.pid)]
        clients = [*rows, *(child for row in rows for child in row.children(recursive=True))]
        tmux.run("kill-server")
        for process in psutil.wait_procs(clients, timeout=5)[1]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        wait_until(lambda: not psutil.pid_exists(panes[0].server), "the tmux server to end")


def wait_until(fact: Callable[[], object], what: str, timeout: float = 30.0) -> None:
    """Wait for a fact that a foreign client tells nobody of."""
    until(fact, what, timeout, every=0.05)


class Session:
    """A client of the test's own making, without any Witness: for the hooks alone.

    Args:
        folder: where its run's files go (``spool/``, ``queue/``, ``settings.json``).
    """

    def __init__(self, claude: Path, work: Path, folder: Path, tmux: Tmux) -> None:
        self.claude, self.work, self.tmux, self.name = claude, work, tmux, "gt-toast"
        self.spool, self.queue = folder / "run" / "spool", folder / "queue"
        self.spool.mkdir(parents=True)
        self.queue.mkdir()
        self.settings = folder / "run" / "settings.json"
        self.settings.write_text(json.dumps(session_settings()))
        self.environment = {
            **os.environ,
            "GT_WITNESS_GROUP": f"main/toast/{secrets.token_hex(4)}",
            "GT_WITNESS_SPOOL": str(self.spool),
            "GT_WITNESS_QUEUE": str(self.queue),
            "GT_WITNESS_HOOK_WAIT": "100",
        }

    def command(self, *arguments: str) -> list[str]:
        return [str(self.claude), "--settings", str(self.settings), *PERMITTED, *arguments]

    def headless(self, prompt: str = "do the work", timeout: float = 30.0) -> subprocess.CompletedProcess[str]:
        """Run one prompt to its end without a terminal."""
        return subprocess.run(
            [str(self.claude), "-p", prompt, "--settings", str(self.settings), *PERMITTED],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.environment, cwd=self.work,
            timeout=timeout, check=True,
        )  # fmt: skip

    def start(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        """Start it in a pane and wait for its prompt."""
        variables = self.environment if environment is None else dict(environment)
        self.tmux.new_session(self.name, str(self.work), self.command(*arguments), variables, (120, 50))
        wait_until(self.idle, "the client's prompt", 40)

    def screen(self) -> str:
        return self.tmux.capture(self.name, 50)

    def idle(self) -> bool:
        """At its empty prompt: nothing runs."""
        screen = self.screen()
        return "esc to interrupt" not in screen and any(line.strip(" \u00a0") == "❯" for line in screen.splitlines())

    def type(self, text: str) -> None:
        """Submit a prompt as a person would."""
        self.tmux.paste(self.name, text)
        wait_until(lambda: text.splitlines()[-1] in self.screen(), "the typed text")
        self.tmux.press(self.name, "Enter")


@pytest.fixture
def session(claude: Path, work: Path, tmp_path: Path, tmux: Tmux) -> Session:
    """A client that is not started yet."""
    return Session(claude, work, tmp_path, tmux)
