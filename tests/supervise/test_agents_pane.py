"""The agent's own pane is meant, whatever a person has open beside it, on whichever server it is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.conftest import SETTINGS, Place
from tests.supervise.command import gt
from tests.waiting import until, until_shown
from witness.config.town import Town
from witness.tmux import Tmux

READS = 'while read -r line; do echo "$line" >> {log}; echo "{name} has $line"; done'


def reads(name: str, log: Path) -> list[str]:
    return ["sh", "-c", READS.format(name=name, log=log)]


@pytest.fixture
def beside(place: Place, tmp_path: Path) -> Tmux:
    """A polecat that writes down what it is told, and a person's own active pane in its session that does the same."""
    place.spawn("x", reads("agent", tmp_path / "agent.log"))
    tmux = Tmux(*place.town.tmux_place)
    tmux.run("split-window", "-t", "=gt-x:", *reads("person", tmp_path / "person.log"))
    tmux.run("new-window", "-t", "=gt-x:", *reads("person", tmp_path / "person.log"))
    return tmux


def test_text_goes_to_the_agents_pane_and_is_read_from_it(place: Place, beside: Tmux, tmp_path: Path) -> None:
    done = gt(place.work, "nudge", "x", "meant for the polecat", "--mode", "immediate")
    assert done.returncode == 0, done.stderr
    until((tmp_path / "agent.log").exists, "the agent heard nothing")
    assert "meant for the polecat" in (tmp_path / "agent.log").read_text()
    assert not (tmp_path / "person.log").exists()
    until(lambda: "agent has" in gt(place.work, "peek", "x").stdout, "peek shows another pane", every=0.1)
    assert "person has" not in gt(place.work, "peek", "x").stdout


def test_a_pane_that_is_moved_away_is_still_the_agents(place: Place, beside: Tmux, tmp_path: Path) -> None:
    pane = place.witness.find("x").pane
    assert pane.startswith("%")
    beside.run("break-pane", "-d", "-s", pane)
    assert gt(place.work, "nudge", "x", "hello", "--mode", "immediate").returncode == 0
    until((tmp_path / "agent.log").exists, "the agent heard nothing")
    assert not (tmp_path / "person.log").exists()


def test_what_a_person_does_beside_it_is_no_action_of_the_agent(make_place: Callable[..., Place]) -> None:
    place = make_place(settings=SETTINGS + "types: {scope: {poll: 100ms, pane: only}}\n")
    (place.work / "issue.md").write_text("---\nfiles: [src/**]\nnot: [billing/**, secret/**]\n---\n")
    os.mkfifo(place.work / "go")
    edit = "printf '● Edit({name})\\n  ⎿  Updated {name}\\n\\n● done\\n'"
    agent = f"read -r go < go; {edit.format(name='secret/a.py')}; exec sleep 60"
    place.spawn("x", ["sh", "-c", agent], sidecars="scope:issue.md", daemon=True)
    tmux = Tmux(*place.town.tmux_place)
    person = f"{edit.format(name='billing/b.py')}; exec sleep 60"
    tmux.run("split-window", "-t", "=gt-x:", "sh", "-c", person)
    until_shown(tmux, "gt-x", lambda: "billing" in tmux.capture("gt-x", 20), "the person's pane shows nothing")
    (place.work / "go").write_text("go\n")
    run = place.witness.find("x").id.run

    def decided() -> str:
        return " ".join(each.evidence for each in place.witness.journal.decisions.of(run))

    until(lambda: "secret/a.py" in decided(), f"the agent's own pane was not observed: {decided()}")
    assert "billing" not in decided()


def test_a_server_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TMUX_TMPDIR of the spawn holds for whoever asks later, from wherever."""
    folder = tmp_path / "t"
    folder.mkdir()
    place = Place(tmp_path / "town")
    monkeypatch.setenv("TMUX_TMPDIR", str(folder))
    place.witness.close()
    place = Place(tmp_path / "town")
    try:
        place.spawn("x", reads("agent", tmp_path / "agent.log"))
        monkeypatch.delenv("TMUX_TMPDIR")
        assert gt(place.work, "nudge", "x", "hello", "--mode", "immediate").returncode == 0
        until(lambda: "agent has" in gt(place.work, "peek", "x").stdout, "peek does not find it", every=0.1)
        assert "hello" in (tmp_path / "agent.log").read_text()
    finally:
        place.close()
        environment = {"PATH": os.environ["PATH"], "TMUX_TMPDIR": str(folder)}
        subprocess.run(
            ["tmux", "-L", Town.at(tmp_path / "town").socket, "kill-server"],
            capture_output=True, check=False, env=environment,
        )  # fmt: skip
