"""A spawn is all or nothing: whatever is wrong, one line says so and nothing is left."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.conftest import SETTINGS, Place
from tests.supervise.command import GT, gt
from tests.waiting import until
from witness import Town, Witness
from witness.errors import DeclarationError, SpawnError, UsageError
from witness.journal import GroupState
from witness.launch import town_witness
from witness.process.exits import wait_gone
from witness.process.table import identify, is_alive
from witness.tmux import Tmux

AGENT = ["sleep", "60"]


def _nothing_left(place: Place) -> None:
    assert place.sessions() == []
    assert place.marked() == set()
    assert place.witness.polecats() == []


def _molecule(place: Place, name: str, text: str) -> str:
    path = place.work / name
    path.write_text(text)
    return str(path)


# Each gives the arguments after `spawn`, and a piece of the one line.
BAD: dict[str, Callable[[Place], tuple[list[str], str]]] = {
    "unknown type": lambda p: (["x", "--sidecars", "nonsense"], "nonsense"),
    "missing spec": lambda p: (["x", "--sidecars", "specs:docs/none.md"], "docs/none.md"),
    "duplicate": lambda p: (["x", "--sidecars", "scope:issue.md,scope:issue.md"], "scope"),
    "no TOML": lambda p: (["x", "--molecule", _molecule(p, "bad.toml", "a = = b")], "bad.toml:1"),
    "array": lambda p: (
        [
            "x",
            "--molecule",
            _molecule(
                p,
                "array.toml",
                'formula = "f"\n[[steps]]\nid = "a"\ntitle = "b"\n[vars.sidecars]\ndefault = ["scope"]\n',
            ),
        ],
        "vars.sidecars.default",
    ),
    "slash": lambda p: (["a/b"], "a/b"),
    "dot": lambda p: (["a.b"], "a.b"),
    "colon": lambda p: (["a:b"], "a:b"),
    "no workdir": lambda p: (["x", "--workdir", "nowhere"], "nowhere"),
    "no agent": lambda p: (["x", "--agent", "no-such-agent-here"], "no-such-agent-here"),
    "empty agent": lambda p: (["x", "--agent", " "], "empty"),
    "open quote": lambda p: (["x", "--agent", "sh -c 'oops"], "oops"),
    "bad settings": lambda p: (
        ["x" for _ in [(p.town.root / "settings" / "witness.yaml").write_text("stop_grace: soon\n")]],
        "witness.yaml:1: stop_grace",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_exit_2_and_nothing_started(case: str, place: Place) -> None:
    (place.work / "issue.md").write_text("only `a/**`\n")
    arguments, piece = BAD[case](place)
    agent = [] if "--agent" in arguments else ["--agent", shlex.join(AGENT)]
    done = gt(place.work, "polecat", "spawn", *arguments, *agent)
    assert done.returncode == 2, done.stderr
    assert piece in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    (place.town.root / "settings" / "witness.yaml").unlink()
    _nothing_left(place)
    assert not list((place.town.runtime / "runs").glob("*"))


@pytest.mark.parametrize(("version", "piece"), [("", "tmux is not installed"), ("tmux 3.1c", "tmux 3.1c")])
def test_tmux_missing_or_too_old(place: Place, tmp_path: Path, version: str, piece: str) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sleep", "sh"):
        (programs / name).symlink_to(shutil.which(name) or "")
    if version:
        (programs / "tmux").write_text(f"#!/bin/sh\necho '{version}'\n")
        (programs / "tmux").chmod(0o755)
    environment = {"PATH": str(programs), "HOME": str(tmp_path)}
    done = gt(place.work, "polecat", "spawn", "x", "--agent", "sleep 60", environment=environment)
    assert done.returncode == 2
    assert piece in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    _nothing_left(place)


def test_all_that_is_wrong_is_told_at_once(place: Place) -> None:
    with pytest.raises(DeclarationError) as told:
        place.witness.spawn("a.b", workdir=place.work / "nowhere", agent="no-such-agent-here", sidecars="nonsense")
    text = str(told.value)
    assert all(piece in text for piece in ("a.b", "nowhere", "no-such-agent-here"))


@pytest.mark.parametrize(
    ("script", "pieces"),
    [
        ("exit 3", ["exit code 3"]),
        ("echo my last words; exit 1", ["exit code 1", "my last words"]),
        ("kill -9 $$", ["signal 9"]),
        ("exit 0", ["exit code 0"]),
    ],
)
@pytest.mark.parametrize("sidecars", ["", "scope:issue.md"])
def test_an_agent_that_exits_at_once(place: Place, script: str, pieces: list[str], sidecars: str) -> None:
    (place.work / "issue.md").write_text("only `a/**`\n")
    with pytest.raises(SpawnError) as told:
        place.spawn("x", ["sh", "-c", script], sidecars=sidecars)
    assert told.value.exit_code == 1
    assert told.value.survivors == ()
    assert "main/x" in str(told.value)
    assert "\n" not in str(told.value)
    assert all(piece in str(told.value) for piece in pieces), str(told.value)
    _nothing_left(place)


def test_an_agent_that_leaves_a_daemon_and_exits_leaves_nothing(place: Place) -> None:
    with pytest.raises(SpawnError):
        place.spawn("x", ["sh", "-c", "setsid sleep 61 & (setsid env -i sleep 62 &) ; exit 1"])
    _nothing_left(place)


def test_a_name_that_runs_already(place: Place) -> None:
    first = place.spawn("x", AGENT)
    with pytest.raises(UsageError, match="already running") as told:
        place.spawn("x", AGENT)
    assert told.value.exit_code == 2
    assert is_alive(first.agent)
    assert len(place.witness.polecats()) == 1
    place.witness.nuke(["x"])
    again = place.spawn("x", AGENT)
    assert again.group.run != first.group.run


def test_a_foreign_session_of_that_name_is_neither_used_nor_killed(place: Place) -> None:
    tmux = Tmux(place.town.socket)
    pane = tmux.new_session("gt-x", "/", ["sleep", "60"], {}, (80, 24))
    with pytest.raises(UsageError, match="gt-x stands already and is not ours"):
        place.spawn("x", AGENT)
    assert place.sessions() == ["gt-x"]
    assert identify(pane.pid)
    assert place.witness.polecats() == []


def test_a_session_that_another_made_meanwhile_outlives_the_nuke(place: Place) -> None:
    """Ours carries the group's marker; a session that only has the name is somebody else's."""
    spawned = place.spawn("x", AGENT)
    tmux = Tmux(place.town.socket)
    tmux.run("rename-session", "-t", "=gt-x", "moved")
    tmux.new_session("gt-x", "/", ["sleep", "60"], {}, (80, 24))
    [nuked] = place.witness.nuke(["x"])
    assert nuked.result
    assert not nuked.result.survivors
    assert not is_alive(spawned.agent)
    assert place.sessions() == ["gt-x"]


def test_the_town_is_full(make_place: Callable[..., Place]) -> None:
    place = make_place(settings=SETTINGS + "member_limit: 5\n")
    place.spawn("x", AGENT)
    with pytest.raises(UsageError, match="member_limit"):
        place.spawn("y", AGENT)
    assert [group.id.polecat for group, _ in place.witness.polecats()] == ["x"]


def test_a_sidecar_with_a_bad_configuration_does_not_undo_the_polecat(place: Place) -> None:
    """Its file is there and wrong: the polecat works on, the sidecar is FAILED and says why."""
    (place.work / "scope.yaml").write_text("")
    spawned = place.spawn("x", AGENT)
    assert is_alive(spawned.agent)


def test_the_sidecars_observe_when_the_spawn_returns(place: Place) -> None:
    (place.work / "issue.md").write_text("only `a/**`\n")
    spawned = place.spawn("x", AGENT, sidecars="scope:issue.md")
    (scope,) = spawned.sidecars
    assert scope.state == "RUNNING"
    assert scope.process
    assert is_alive(scope.process)
    group = place.witness.find("x")
    assert group.state is GroupState.RUNNING
    assert (place.town.run_dir(group.id.run) / "beats" / "scope").exists()
    assert not (place.town.run_dir(group.id.run) / "launch.json").exists()


def test_a_sidecar_ends_with_its_polecat_though_no_witness_runs(place: Place) -> None:
    (place.work / "issue.md").write_text("only `a/**`\n")
    spawned = place.spawn("x", AGENT, sidecars="scope:issue.md")
    (scope,) = spawned.sidecars
    assert town_witness.witness_process(place.town) is None
    place.kill(spawned.agent)
    assert scope.process
    assert not wait_gone([scope.process], 10)


def test_two_spawns_of_one_name_at_once(place: Place) -> None:
    argv = [*GT, "polecat", "spawn", "x", "--no-witness", "--sidecars", "", "--agent", "sleep 60"]
    both = [subprocess.Popen(argv, cwd=place.work, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [each.communicate(timeout=50)[1] for each in both]
    assert sorted(each.returncode for each in both) == [0, 2, 2], said
    assert len(place.witness.polecats()) == 1
    assert place.sessions() == ["gt-x"]
    agents = {member.process for member in place.members("x").values()}
    assert all(process and is_alive(process) for process in agents)


def test_the_caller_is_interrupted_and_nothing_is_left(place: Place) -> None:
    """Ctrl-C while the agent settles."""
    (place.town.root / "settings" / "witness.yaml").write_text("spawn_settle: 30s\nstop_grace: 1s\n")
    argv = [
        *GT,
        "polecat",
        "spawn",
        "x",
        "--no-witness",
        "--sidecars",
        "",
        "--agent",
        "sh -c 'echo $$ > up; exec sleep 60'",
    ]
    child = subprocess.Popen(argv, cwd=place.work, stderr=subprocess.PIPE, text=True)
    until(lambda: (place.work / "up").exists() or child.poll() is not None, "it is not up", processes=[child.pid])
    child.send_signal(2)
    _, said = child.communicate(timeout=30)
    assert child.returncode == 130, said
    assert "Traceback" not in said
    _nothing_left(place)


def test_a_town_whose_path_is_odd(tmp_path: Path, make_place: Callable[..., Place]) -> None:
    place = make_place("a town, with 'quotes' & ünïcode/" + "deep/" * 30 + "town")
    (place.work / "issue.md").write_text("only `a/**`\n")
    spawned = place.spawn(
        "x", [sys.executable, "-c", "import time; time.sleep(60)"], sidecars="scope:issue.md", daemon=True
    )
    assert [each.state for each in spawned.sidecars] == ["RUNNING"]
    [nuked] = place.witness.nuke(["x"])
    assert nuked.result
    assert not nuked.result.survivors


def test_a_folder_that_is_not_text_is_one_line(tmp_path: Path) -> None:
    """The system allows any bytes in a name; neither a town nor a working directory can be recorded by such a one."""
    strange = tmp_path / os.fsdecode(b"caf\xe9")
    strange.mkdir()
    town = Town.init(tmp_path / "town")
    with pytest.raises(UsageError, match="not UTF-8"):
        Witness(town).spawn("toast", workdir=strange, agent="sleep 60")
    with pytest.raises(UsageError, match="not UTF-8"):
        Town.init(strange / "town")
    assert list(strange.iterdir()) == []


def test_a_client_that_runs_mods_is_given_ours_and_keeps_the_callers_folders(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its environment alone: nobody's settings are written, and what was chosen is recorded."""
    package = tmp_path / "claude-code"
    (package / "bin").mkdir(parents=True)
    (package / "package.json").write_text('{"name": "@anthropic-ai/claude-code", "version": "2.1.332"}')
    found = tmp_path / "environment"
    program = package / "bin" / "claude"
    program.write_text(f"#!/bin/sh\nenv >{found}.part && mv {found}.part {found}\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("CLAUDE_CODE_PLUGIN_DIRS", f"{tmp_path}/theirs")
    spawned = place.witness.spawn("toast", workdir=place.work, agent=str(program))
    until(found.exists, "the client's environment")
    mod = place.witness.town.run_dir(spawned.group.run) / "mod"
    assert f"CLAUDE_CODE_PLUGIN_DIRS={mod}:{tmp_path}/theirs" in found.read_text().splitlines()
    assert (mod / ".claude-plugin" / "plugin.json").exists()
    state = place.witness.find("toast").run_state
    assert (state.channel, state.client_version, state.channel_reason) == ("mod", "2.1.332", "")
    assert spawned.as_json()["channel"] == "mod"
