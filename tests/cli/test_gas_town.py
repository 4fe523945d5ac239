"""``gt polecat nuke`` and ``gt done`` where the real ``gt`` has its say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.gas_town import end_town, make_gas_town
from tests.cli.stand_in import StandIn
from witness.api import Witness
from witness.config.town import Town
from witness.errors import DeclarationError
from witness.process import ProcessId
from witness.process.exits import wait_gone
from witness.process.table import is_alive, process_name
from witness.supervise.spawn import SpawnResult
from witness.tmux import Tmux


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    town = make_gas_town(tmp_path / "gt", "gastown/Toast", "gastown/Nux")
    yield town
    end_town(town)


def _spawn(town: Town, name: str) -> SpawnResult:
    with Witness(town, environ={}) as witness:
        place = town.worktree("gastown", name) or town.root
        return witness.spawn(name, rig="gastown", workdir=place, agent="sleep 600", witness=False)


def _gt(town: Town, *args: str, real: StandIn | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    path = [*([str(real.folder)] if real else []), *os.environ["PATH"].split(":")]
    environment = {"PATH": ":".join(path), "HOME": str(town.root), **more}
    return subprocess.run(
        [sys.executable, "-m", "witness.cli", *args],
        env=environment, cwd=town.root, capture_output=True, text=True, check=False,
    )  # fmt: skip


def _alive(spawned: SpawnResult) -> bool:
    return is_alive(spawned.agent)


def test_the_real_nuke_goes_first_and_then_the_group_ends(town: Town, tmp_path: Path) -> None:
    toast = _spawn(town, "Toast")
    real = StandIn(tmp_path / "real", f"os.kill({toast.agent.pid}, 0)\nprint('its own words')")
    done = _gt(town, "polecat", "nuke", "gastown/Toast", "--json", real=real)
    assert done.returncode == 0, done.stderr
    assert [call["args"] for call in real.calls] == [["polecat", "nuke", "gastown/Toast"]]
    (row,) = json.loads(done.stdout)
    assert row["polecat"] == "gastown/Toast"
    assert row["survivors"] == []
    assert "its own words" in done.stderr
    assert not _alive(toast)


def test_what_the_real_one_refuses_is_kept_whole_and_the_others_end(town: Town, tmp_path: Path) -> None:
    toast, nux = _spawn(town, "Toast"), _spawn(town, "Nux")
    real = StandIn(tmp_path / "real", "sys.exit(1 if 'gastown/Toast' in sys.argv else 0)")
    done = _gt(town, "polecat", "nuke", "Toast", "Nux", real=real)
    assert done.returncode == 1
    assert "gt: gastown/Toast: the real gt refused to nuke it; nothing of it was ended" in done.stderr
    assert _alive(toast)
    assert not _alive(nux)
    forced = StandIn(tmp_path / "forced")
    assert _gt(town, "polecat", "nuke", "Toast", "--force", real=forced).returncode == 0
    assert forced.calls[0]["args"] == ["polecat", "nuke", "gastown/Toast", "--force"]
    assert not _alive(toast)


def test_a_polecat_of_ours_alone_is_no_business_of_the_real_one(town: Town, tmp_path: Path) -> None:
    own = _spawn(town, "Own")
    real = StandIn(tmp_path / "real", "sys.exit(1)")
    assert _gt(town, "polecat", "nuke", "Own", real=real).returncode == 0
    assert real.calls == []
    assert not _alive(own)


def test_the_name_of_a_polecat_of_gas_towns_is_taken(town: Town) -> None:
    with Witness(town, environ={}) as witness, pytest.raises(DeclarationError, match="choose another name"):
        witness.spawn("Toast", rig="gastown", workdir=town.root, agent="sleep 600", witness=False)


def test_what_gas_towns_other_agents_are_told_is_handed_over(town: Town, tmp_path: Path) -> None:
    real = StandIn(tmp_path / "real", "sys.exit(8)")
    for args in (["nudge", "mayor", "hello"], ["peek", "gastown/crew/max"], ["peek", "gastown/Slit", "50"],
                 ["nudge", "gastown/Slit", "hello", "--if-fresh"], ["polecat", "list", "gastown"],
                 ["witness", "status", "gastown"], ["polecat", "git-state", "gastown/Slit"], ["hooks", "sync"],
                 ["init", "gastown"]):  # fmt: skip
        assert _gt(town, *args, real=real).returncode == 8, args
        assert real.calls[-1]["args"] == args


def test_gas_towns_form_for_a_whole_rig(town: Town, tmp_path: Path) -> None:
    toast = _spawn(town, "Toast")
    real = StandIn(tmp_path / "real", "sys.exit(int(os.environ.get('REFUSE', '0')))")
    assert _gt(town, "polecat", "nuke", "beads", "--all", real=real).returncode == 0
    assert _alive(toast)
    assert _gt(town, "polecat", "nuke", "gastown", "--all", "--dry-run", real=real).returncode == 0
    assert _alive(toast)
    assert _gt(town, "polecat", "nuke", "gastown", "--all", real=real, REFUSE="3").returncode == 3
    assert _alive(toast), "what the real one has kept is whole"
    assert _gt(town, "polecat", "nuke", "gastown", "--all", "-f", real=real).returncode == 0
    assert not _alive(toast)
    assert [call["args"][2:] for call in real.calls] == [
        ["beads", "--all"], ["gastown", "--all", "--dry-run"], ["gastown", "--all"], ["gastown", "--all", "--force"]
    ]  # fmt: skip


@pytest.mark.parametrize("harm", ["journal", "rigs"])
def test_gas_towns_polecats_are_served_whatever_state_we_are_in(town: Town, tmp_path: Path, harm: str) -> None:
    real = StandIn(tmp_path / "real", "sys.exit(6)")
    town.make_runtime()
    if harm == "journal":
        town.journal_path.write_bytes(b"no database at all" * 100)
    else:
        (town.root / "mayor" / "rigs.json").write_text("{")
    for args in (["polecat", "nuke", "gastown/Toast"], ["polecat", "nuke", "gastown", "--all"], ["done"],
                 ["nudge", "gastown/Toast", "x"], ["peek", "gastown/Toast"],
                 ["polecat", "status", "gastown/Toast"]):  # fmt: skip
        done = _gt(town, *args, real=real)
        assert (done.returncode, real.calls[-1]["args"]) == (6, args)
        assert "handed to Gas Town's own" in done.stderr
    alone = _gt(town, "polecat", "nuke", "gastown/Toast")
    assert alone.returncode in (1, 2), alone.stderr


def test_a_polecat_that_only_gas_town_knows_is_handed_over(town: Town, tmp_path: Path) -> None:
    real = StandIn(tmp_path / "real", "sys.exit(6)")
    assert _gt(town, "polecat", "nuke", "gastown/Slit", real=real).returncode == 6
    assert real.calls[0]["args"] == ["polecat", "nuke", "gastown/Slit"]


def test_the_real_done_goes_first_with_all_its_flags(town: Town, tmp_path: Path) -> None:
    toast = _spawn(town, "Toast")
    marker = {"GT_WITNESS_GROUP": toast.group.marker}
    args = ["done", "--pre-verified", "--target", "main", "--status", "completed", "--issue", "gt-1"]
    failing = StandIn(tmp_path / "failing", "sys.exit(4)")
    assert _gt(town, *args, real=failing, **marker).returncode == 4
    assert _alive(toast)
    real = StandIn(tmp_path / "real")
    done = _gt(town, *args, real=real, **marker)
    assert done.returncode == 0, done.stderr
    assert real.calls[0]["args"] == args
    assert not wait_gone({toast.agent}, 20.0)


def test_done_of_a_polecat_of_ours_alone(town: Town, tmp_path: Path) -> None:
    own = _spawn(town, "Own")
    real = StandIn(tmp_path / "real", "sys.exit(4)")
    wrong = _gt(town, "done", "--nosuch", GT_WITNESS_GROUP=own.group.marker)
    assert wrong.returncode == 2
    assert "no such option: --nosuch" in wrong.stderr
    assert _gt(town, "done", real=real, GT_WITNESS_GROUP=own.group.marker).returncode == 0
    assert real.calls == []
    assert not wait_gone({own.agent}, 20.0)


def test_done_in_a_session_that_is_none_of_ours(town: Town, tmp_path: Path) -> None:
    real = StandIn(tmp_path / "real", "sys.exit(5)")
    assert _gt(town, "done", "--status", "DEFERRED", real=real, GT_SESSION="gt-Slit").returncode == 5
    assert real.calls[0]["args"] == ["done", "--status", "DEFERRED"]
    alone = _gt(town, "done")
    assert alone.returncode == 2
    assert "gt done is for polecats" in alone.stderr


def test_gas_towns_doctor_finds_the_agent_of_our_own_polecat(town: Town) -> None:
    """It ends a session in which no process runs that the session's own environment names."""
    own = _spawn(town, "Own")
    tmux = Tmux(town.socket)
    assert tmux.variable("gt-Own", "GT_AGENT") == "sleep"
    names = tmux.variable("gt-Own", "GT_PROCESS_NAMES").split(",")
    pane = next(pane for pane in tmux.panes() if pane.session == "gt-Own")
    assert {process_name(ProcessId(pane.pid, 0)), "sleep"} <= set(names)
    assert _alive(own)
