"""A party of real clients in tmux: each fetches its turns, answers, and says when it is done."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecars.memory.store import MemoryStore
from tests.e2e.conftest import PERMITTED
from witness.cli import main
from witness.testing import Block, MessagesServer, Request, make_town, say, supervised, use

_GT = shlex.join([sys.executable, "-m", "witness.cli"])


def _as_told(request: Request) -> Block:
    """What an agent does that follows its prompt and what the commands print."""
    news = request.news
    if "The party is over" in news:
        return use("Bash", command=f"{_GT} done")
    if "the Witness ends this group" in news:
        return say("Done.")
    if "gt party answer <<" in news:
        taking_home = "memories:" in news.rpartition("Keys:")[2]
        answer: dict[str, object] = (
            {"memories": [], "used": []} if taking_home else {"content": "Tabs, since they scale."}
        )
        return use("Bash", command=f"{_GT} party answer <<'ANSWER'\n{json.dumps(answer)}\nANSWER")
    return use("Bash", command=f"{_GT} party turn")


def test_two_real_clients_discuss_and_both_remember_it(
    claude: Path,
    server: MessagesServer,
    home: Path,
    trust: Callable[[Path], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    town = make_town(tmp_path / "a town")
    repo = trust(town.root / "repo")
    store = MemoryStore(repo)
    store.change("ada", "add", "before", {"content": "the formatter wants tabs"})
    server.play(*[_as_told] * 60)
    monkeypatch.chdir(repo)
    command = shlex.join([str(claude), *PERMITTED])
    with supervised(town) as witness:
        asked = ["--agents", "ada,bob", "--topic", "tabs or spaces", "--rounds", "1"]
        main(["party", "run", *asked, "--polecats", "--agent", command, "--turn-limit", "40s"])
        assert witness.polecats() == []
    out = capsys.readouterr().out
    assert "[1 reaction] ada: Tabs, since they scale.\n[1 reaction] bob: Tabs, since they scale.\n" in out
    first = {
        agent: next(r for r in server.of("main") if f"You are {agent}, in a discussion" in r.text)
        for agent in ("ada", "bob")
    }
    assert '"the formatter wants tabs"' in first["ada"].text
    assert "persistent memory" not in first["bob"].text
    assert [store.read(agent).sessions_participated for agent in ("ada", "bob")] == [1, 1]
