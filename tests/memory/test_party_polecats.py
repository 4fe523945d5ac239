"""A party whose agents are polecats in tmux."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from sidecars.memory.store import MemoryStore
from sidecars.party.record import FOLDER
from witness.cli import main
from witness.config.town import Town
from witness.testing import make_town, supervised

pytestmark = pytest.mark.real

_GUEST = Path(__file__).with_name("guest.py")


def _run(town: Town, monkeypatch: pytest.MonkeyPatch, dies_after: int = 0) -> int:
    monkeypatch.chdir(town.root / "repo")
    command = shlex.join([sys.executable, str(_GUEST), str(dies_after)])
    arguments = ["--agents", "ada,bob,eve.x", "--topic", "one repository or many", "--mode", "debate", "--rounds", "1"]
    try:
        main(["party", "run", *arguments, "--polecats", "--agent", command, "--turn-limit", "40s", "--json"])
    except SystemExit as error:
        return int(error.code or 0)
    return 0


def test_a_debate_of_three_polecats_is_held_saved_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    town = make_town(tmp_path / "a town")
    store = MemoryStore(town.root / "repo")
    with supervised(town) as witness:
        assert _run(town, monkeypatch) == 0
        assert witness.polecats() == []
        prompts = [path.read_text() for path in (town.runtime / "runs").glob("*/prompt.xml")]
    out = json.loads(capsys.readouterr().out)
    assert out["decisions"] == ["DR-001"]
    written = json.loads((store.root / FOLDER / "DR-001.json").read_text())
    assert [(each["speaker"], each["content"]) for each in written["rounds"]] == [
        ("ada", "ada speaks in turn."),
        ("bob", "bob speaks in turn."),
        ("eve.x", "eve.x speaks in turn."),
        ("eve.x", "One repository. Simpler."),
    ]
    assert {m.content for m in store.read("bob").memories} == {"DR-001: One repository.", "bob was there"}
    assert len(prompts) == 3
    assert all("You are" in text and "gt party turn" in text for text in prompts)


def test_a_guest_that_dies_ends_the_party_and_what_was_said_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    town = make_town(tmp_path / "a town")
    with supervised(town) as witness:
        assert _run(town, monkeypatch, dies_after=1) == 1
        assert witness.polecats() == []
    error = capsys.readouterr().err.splitlines()[-1]
    assert "ended before it had answered" in error
    # As a person would paste it, from a folder with a space in its name.
    command = shlex.split(error.partition("until then: ")[2])
    main(command[1:])
    assert MemoryStore(town.root / "repo").read("ada").sessions_participated == 1
