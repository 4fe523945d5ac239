"""The real client in a town of the real ``gt``: started without us, followed, told in time, left alone after."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.gas_town import end_town, make_gas_town
from tests.e2e.conftest import PERMITTED, wait_until
from tests.supervise.gas_town_polecats import Polecats
from witness.agents import hook_settings
from witness.api import Witness
from witness.config.town import Town
from witness.process.table import is_alive
from witness.testing import MessagesServer, say, use


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    town = make_gas_town(tmp_path / "gt", "gastown/Toast")
    yield town
    end_town(town)


def test_a_followed_polecat_is_told_at_its_next_request(
    claude: Path,
    server: MessagesServer,
    home: Path,
    trust: Callable[[Path], Path],
    town: Town,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "bin").mkdir()
    polecats = Polecats(town, tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    worktree = trust(town.root / "gastown" / "polecats" / "Toast" / "gastown")
    (worktree / "billing").mkdir()
    # As `gt hooks install` does it, once and for the whole user; the session itself knows nothing of us.
    hook_settings.install(home / ".claude" / "settings.json")
    polecats.hook("gastown/Toast", '---\nnot: [billing/**]\n---\nFix the orders.\nattached_vars: ["sidecars=scope"]\n')
    environment = {
        **os.environ,
        "GT_SESSION": "gt-Toast",
        "GT_ROLE": "gastown/polecats/Toast",
        "GT_POLECAT": "Toast",
        "GT_TOWN_ROOT": str(town.root),
    }
    server.play(
        use("Write", file_path=str(worktree / "billing" / "totals.py"), content="TOTAL = 0\n"),
        say("Done."),
    )
    tmux = polecats.tmux
    tmux.new_session("gt-Toast", str(worktree), [str(claude), *PERMITTED], environment, (120, 50))
    with Witness(town, environ={}) as witness:
        wait_until(lambda: "❯" in tmux.capture("gt-Toast", 50), "the client's prompt", 40)
        wait_until(lambda: witness.patrol().errors == [] and witness.polecats(), "the polecat to be adopted", 40)
        group = witness.find("gastown/Toast")
        tmux.paste("gt-Toast", "fix the orders")
        wait_until(lambda: "fix the orders" in tmux.capture("gt-Toast", 50), "the typed text")
        tmux.press("gt-Toast", "Enter")
        server.wait_for(lambda request: "out of scope" in request.news)
        assert ["[sidecar:scope]" in request.news for request in server.of("main")[:2]] == [False, True]
        (agent,) = [m.process for m in witness.journal.members.of(group.id.run) if m.name == "agent"]
        polecats.tell("done", "gastown/polecats/Toast", bead="gt-1")
        witness.patrol()
        assert witness.polecats() == []
        assert agent is not None
        assert is_alive(agent), "the client is Gas Town's, and lives on"
        assert json.loads((home / ".claude" / "settings.json").read_text())["hooks"]
