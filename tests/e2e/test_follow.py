"""Sessions that a person starts, with our plugin installed as a person does it: followed, told, never ended by us."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.gas_town import end_town
from tests.e2e.conftest import PERMITTED, wait_until
from witness.agents.client_extensions import clear_plugin, plugin_installed
from witness.api import Witness
from witness.config.resources import hooks_dir
from witness.config.town import Town
from witness.journal import Group
from witness.process.table import is_alive
from witness.testing import MessagesServer, say, use
from witness.tmux import Tmux

ISSUE = "---\nnot: [billing/**]\n---\nFix the orders.\n"


@pytest.fixture
def town(work: Path) -> Iterator[Town]:
    town = Town.init(work)
    (work / "billing").mkdir()
    (work / "issue.md").write_text(ISSUE)
    yield town
    end_town(town)


@pytest.fixture
def plugged(either_claude: Path, server: MessagesServer, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A client in which our plugin was installed by the client's own commands."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    for words in (["marketplace", "add", str(hooks_dir())], ["install", "gt-witness@gt-witness"]):
        subprocess.run(
            [either_claude, "plugin", *words], check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
        )
    return either_claude


class Terminal:
    """A person's own terminal with the client in it."""

    def __init__(self, claude: Path, work: Path, tmux: Tmux) -> None:
        self.tmux, self.name = tmux, "mine"
        tmux.new_session(self.name, str(work), [str(claude), *PERMITTED], dict(os.environ), (120, 50))
        wait_until(lambda: any(line.strip(" \u00a0") == "❯" for line in self.screen().splitlines()), "the prompt", 40)

    def screen(self) -> str:
        return self.tmux.capture(self.name, 50)

    def type(self, text: str) -> None:
        self.tmux.paste(self.name, text)
        wait_until(lambda: text in self.screen(), "the typed text")
        self.tmux.press(self.name, "Enter")


@pytest.fixture
def terminal(plugged: Path, work: Path, town: Town, tmux: Tmux) -> Terminal:
    return Terminal(plugged, work, tmux)


def only(witness: Witness) -> Group:
    ((group, _),) = witness.polecats()
    return group


def test_a_session_started_by_hand_gets_its_remarks_its_nudges_and_its_peace(
    server: MessagesServer, terminal: Terminal, town: Town, work: Path
) -> None:
    server.play(
        use("Bash", command="gt-witness follow --sidecars scope:issue.md --name mine"),
        use("Write", file_path=str(work / "billing" / "totals.py"), content="TOTAL = 0\n"),
        use("Bash", command="echo next"),
        say("Done."),
    )
    terminal.type("fix the orders")
    wait_until(lambda: len(server.of("main")) >= 4, "the turn")
    told = [request.news.count("out of scope (billing") for request in server.of("main")]
    assert told[:4] == [0, 0, 1, 0], "\n----\n".join(request.news[-900:] for request in server.of("main"))
    with Witness(town, environ={}) as witness:
        group = only(witness)
        (agent,) = [each.process for each in witness.journal.members.of(group.id.run) if each.name == "agent"]
        assert agent is not None
        assert group.id.polecat == "mine"
        witness.nudge("mine", "look at the log", sender="human")
        server.play(say("Seen."))
        server.wait_for(lambda request: "look at the log" in request.news)
        witness.end([group])
        assert witness.polecats() == []
        assert is_alive(agent), "the session is the person's, and lives on"
    server.play(use("Bash", command="echo on"), say("On."))
    terminal.type("go on")
    wait_until(lambda: "go on" in server.of("main")[-1].text, "the next turn")


def test_the_sessions_of_a_project_whose_settings_say_so_are_followed_from_their_start(
    plugged: Path, server: MessagesServer, town: Town, work: Path, tmux: Tmux
) -> None:
    (work / "settings").mkdir()
    (work / "settings" / "witness.yaml").write_text("follow: {sidecars: 'scope:issue.md'}\n")
    terminal = Terminal(plugged, work, tmux)
    with Witness(town, environ={}) as witness:
        wait_until(witness.polecats, "the session to be followed")
        run = only(witness).id.run
        wait_until(lambda: str(getattr(witness.journal.groups.get(run), "state", "")) == "RUNNING", "its sidecars")
        server.play(use("Write", file_path=str(work / "billing" / "totals.py"), content="TOTAL = 0\n"), say("Done."))
        terminal.type("fix the orders")
        server.wait_for(lambda request: "out of scope (billing" in request.news)
        terminal.tmux.run("kill-session", "-t", terminal.name)
        wait_until(lambda: not witness.polecats(), "its sidecars to end with it")
        history = [event.data.get("reason") for event in witness.journal.history(run, 50) if event.kind == "nuked"]
    assert history == ["session-end"]


def test_a_session_that_nobody_follows_runs_nothing_of_ours(
    server: MessagesServer, terminal: Terminal, town: Town, work: Path, home: Path
) -> None:
    server.play(use("Bash", command="echo one"), use("Bash", command="gt-witness follow --stop; true"), say("Done."))
    terminal.type("fix the orders")
    wait_until(lambda: len(server.of("main")) >= 3, "the turn")
    assert "nobody follows it" in server.of("main")[2].news
    assert not (home / ".local" / "state" / "gt-witness" / "followed").exists()
    assert not list(town.runtime.glob("runs/*"))


def test_both_versions_find_the_plugin_valid(either_claude: Path, home: Path) -> None:
    for folder in (hooks_dir() / "mod", hooks_dir(), hooks_dir().parent):
        subprocess.run([either_claude, "plugin", "validate", folder], check=True, capture_output=True, timeout=60)


def test_the_marketplaces_name_one_plugin(trust: Callable[[Path], Path]) -> None:
    inner, outer = (
        json.loads((folder / ".claude-plugin" / "marketplace.json").read_text())
        for folder in (hooks_dir(), hooks_dir().parent)
    )
    outer["plugins"][0]["source"] = outer["plugins"][0]["source"].replace("./hooks/", "./")
    assert inner == outer


def test_what_the_clients_uninstall_leaves_is_cleared(plugged: Path, home: Path) -> None:
    own = home / ".claude"
    assert plugin_installed(own)
    assert clear_plugin(own) == []
    subprocess.run(
        [plugged, "plugin", "uninstall", "gt-witness@gt-witness"], check=True, capture_output=True, timeout=60
    )
    subprocess.run(
        [plugged, "plugin", "marketplace", "remove", "gt-witness"], check=True, capture_output=True, timeout=60
    )
    assert clear_plugin(own)[0].endswith("plugins/cache/gt-witness")
    assert not (own / "plugins" / "cache" / "gt-witness").exists()
    assert json.loads((own / "settings.json").read_text()) == {}
    assert clear_plugin(own) == []
