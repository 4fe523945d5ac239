"""A town that the real ``gt`` drives, with real panes: its polecats get sidecars and keep everything else."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.gas_town import end_town, make_gas_town
from tests.supervise.gas_town_polecats import AGENT, Polecats
from tests.waiting import until
from witness.api import Witness
from witness.clock import SystemClock
from witness.config.resources import hooks_dir
from witness.config.town import Town
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.events.spool_reader import SpoolReader
from witness.journal import Group, GroupState, MemberKind, MemberState
from witness.launch import town_witness
from witness.process import ProcessId
from witness.process.exits import wait_gone
from witness.process.table import command_line, is_alive, process_name
from witness.supervise.rebuild import rebuild
from witness.tmux import Tmux


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    town = make_gas_town(tmp_path / "gt")
    yield town
    end_town(town)


@pytest.fixture
def polecats(town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Polecats:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Polecats(town, folder)


@pytest.fixture
def witness(town: Town, polecats: Polecats) -> Iterator[Witness]:
    with Witness(town, environ={}) as witness:
        yield witness


def _living(witness: Witness) -> dict[str, Group]:
    return {group.id.address: group for group in witness.journal.groups.living()}


def _sidecars(witness: Witness, group: Group) -> dict[str, ProcessId | None]:
    members = witness.journal.members.of(group.id.run)
    return {member.name: member.process for member in members if member.kind is MemberKind.SIDECAR}


def _patrol(witness: Witness) -> list[str]:
    return witness.patrol().errors


def test_sidecars_are_spawned_from_slings_variables_and_ended_when_it_is_done(
    witness: Witness, polecats: Polecats
) -> None:
    agent = polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    assert _patrol(witness) == []
    group = _living(witness)["gastown/Toast"]
    assert group.session == "gt-Toast"
    assert group.state in (GroupState.RUNNING, GroupState.SPAWNING)
    (scope,) = _sidecars(witness, group).values()
    assert scope is not None
    assert is_alive(scope)
    polecats.tell("done", "gastown/polecats/Toast", bead="gt-1")
    assert _patrol(witness) == []
    assert not wait_gone({scope}, 10.0)
    assert is_alive(agent), "the agent is Gas Town's"
    assert polecats.tmux.has_session("gt-Toast")
    assert _living(witness) == {}
    # Its session stays, as persistent polecats' do; without new work it is left in peace.
    assert _patrol(witness) == []
    assert _living(witness) == {}
    polecats.tell("sling", "mayor", 4.0, bead="gt-2", target="gastown/polecats/Toast")
    assert _patrol(witness) == []
    assert "gastown/Toast" in _living(witness)


def test_done_and_new_work_between_two_looks(witness: Witness, polecats: Polecats) -> None:
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    _patrol(witness)
    first = _living(witness)["gastown/Toast"]
    polecats.tell("done", "gastown/polecats/Toast", 2.0, bead="gt-1")
    polecats.tell("sling", "mayor", 3.0, bead="gt-2", target="gastown/polecats/Toast")
    _patrol(witness)
    _patrol(witness)
    assert _living(witness)["gastown/Toast"].id.run != first.id.run


def test_the_attached_formula_declares_the_sidecars(town: Town, witness: Witness, polecats: Polecats) -> None:
    (town.root / ".beads" / "formulas" / "mol-x.formula.toml").write_text(
        'formula = "mol-x"\n[[steps]]\nid = "a"\n[vars]\nissue = ""\nsidecars = "scope:{{issue}}"\n'
    )
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", "attached_formula: mol-x", status="in_progress")
    _patrol(witness)
    group = _living(witness)["gastown/Toast"]
    assert group.molecule.endswith("mol-x.formula.toml")
    (member,) = [m for m in witness.journal.members.of(group.id.run) if m.kind is MemberKind.SIDECAR]
    assert (member.type, member.argument) == ("scope", "gt-1")


def test_gas_towns_default_formula_brings_no_sidecars_that_nobody_asked_for(
    town: Town, witness: Witness, polecats: Polecats
) -> None:
    # Our own molecule of that name declares some; Gas Town's is within its program.
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", "attached_formula: mol-polecat-work")
    assert _patrol(witness) == []
    assert _living(witness) == {}
    (town.root / ".beads" / "formulas" / "mol-mine.formula.toml").write_text(
        'formula = "mol-mine"\nextends = ["mol-polecat-work"]\n[vars.sidecars]\ndefault = "scope"\n'
    )
    polecats.start("gastown/Nux")
    polecats.hook("gastown/Nux", "attached_formula: mol-mine")
    assert _patrol(witness) == []
    assert set(_living(witness)) == {"gastown/Nux"}


def test_an_agent_below_a_shell_is_found(witness: Witness, polecats: Polecats, town: Town) -> None:
    (town.root / "gastown" / "polecats" / "Toast" / "gastown").mkdir(parents=True)
    shell = ["sh", "-c", f"{shlex.quote(sys.executable)} -c '{AGENT}'; true"]
    polecats.tmux.new_session("gt-Toast", "/", shell, {}, (80, 24))
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    for _ in range(100):  # the shell may not have started it yet
        _patrol(witness)
        if _living(witness):
            break
    group = _living(witness)["gastown/Toast"]
    (agent,) = [m.process for m in witness.journal.members.of(group.id.run) if m.kind is MemberKind.AGENT]
    (pane,) = polecats.tmux.panes()
    assert agent is not None
    assert agent.pid != pane.pid
    assert "signal.pause" in command_line(agent)


def test_no_process_of_ours_has_a_name_that_the_orphan_reaper_looks_for(
    town: Town, witness: Witness, polecats: Polecats
) -> None:
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    _patrol(witness)
    witness.start()
    (scope,) = _sidecars(witness, _living(witness)["gastown/Toast"]).values()
    names = {process_name(process) for process in (scope, town_witness.witness_process(town)) if process}
    assert len(names) >= 1
    assert not names & {"claude", "claude-code", "codex", "opencode", "cursor-agent", "agent", "copilot"}


def test_one_key_gives_sidecars_to_every_polecat_of_a_rig(town: Town, witness: Witness, polecats: Polecats) -> None:
    (town.root / "gastown" / "settings").mkdir()
    (town.root / "gastown" / "settings" / "witness.yaml").write_text("sidecars: scope\n")
    polecats.start("gastown/Toast")
    polecats.start("beads/Toast")
    _patrol(witness)
    assert set(_living(witness)) == {"gastown/Toast"}


@pytest.mark.parametrize("state", ["exiting", "idle"])
def test_heartbeats_end_the_observation(witness: Witness, polecats: Polecats, state: str) -> None:
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    polecats.heartbeat("gt-Toast", "working")
    _patrol(witness)
    assert "gastown/Toast" in _living(witness)
    polecats.heartbeat("gt-Toast", state)
    _patrol(witness)
    assert _living(witness) == {}
    # As any gt command of the polecat's does it, its own Stop hook too.
    polecats.heartbeat("gt-Toast", "working")
    for _ in range(3):
        assert _patrol(witness) == []
    assert _living(witness) == {}
    polecats.tell("hook", "gastown/polecats/Toast", bead="gt-1")
    _patrol(witness)
    assert "gastown/Toast" in _living(witness)


def test_other_work_on_the_hook_counts_without_a_word_of_it(witness: Witness, polecats: Polecats) -> None:
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    _patrol(witness)
    polecats.heartbeat("gt-Toast", "exiting")
    _patrol(witness)
    assert _living(witness) == {}
    polecats.heartbeat("gt-Toast", "working")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]', bead="gt-2")
    _patrol(witness)
    assert _living(witness)["gastown/Toast"].run_state.bead == "gt-2"


def test_what_gas_town_has_queued_outlives_our_run(town: Town, witness: Witness, polecats: Polecats) -> None:
    """Reply reminders and mail notices are for the agent, which lives on; only our own words are taken back."""
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    _patrol(witness)
    run = _living(witness)["gastown/Toast"].id.run
    queue = NudgeQueue(town.queue_dir("gt-Toast"), SystemClock())
    later = time.time() + 600
    for nudge in (
        Nudge("mayor", "answer the mail", kind="reply-reminder", thread_id="t", deliver_after=later),
        Nudge("sidecar:scope", "out of scope"),
        Nudge("human", "only for this work", run=run),
        Nudge("gastown/witness", "are you there?"),
    ):
        queue.enqueue(nudge)
    polecats.tell("done", "gastown/polecats/Toast", bead="gt-1")
    _patrol(witness)
    assert _living(witness) == {}
    assert [each.nudge.message for each in queue.pending()] == ["answer the mail", "are you there?"]


def test_no_sidecar_comes_back_to_work_that_is_over(witness: Witness, polecats: Polecats) -> None:
    agent = polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    _patrol(witness)
    (scope,) = _sidecars(witness, _living(witness)["gastown/Toast"]).values()
    assert scope is not None
    polecats.hook("gastown/Toast", "", status="closed")
    os.kill(scope.pid, 9)
    assert not wait_gone({scope}, 10.0)
    report = witness.patrol()
    assert (report.respawned, report.errors) == ([], [])
    assert _living(witness) == {}
    assert is_alive(agent)


def test_the_running_witness_brings_a_sidecar_back_after_it_has_asked(
    town: Town, witness: Witness, polecats: Polecats
) -> None:
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    _patrol(witness)
    witness.start()
    (scope,) = _sidecars(witness, _living(witness)["gastown/Toast"]).values()
    assert scope is not None
    until(lambda: town_witness.ask(town, {"op": "status"}, 20.0) is not None, "the Witness")
    os.kill(scope.pid, 9)

    def replaced() -> bool:
        (now,) = _sidecars(witness, _living(witness)["gastown/Toast"]).values()
        return now is not None and now != scope and is_alive(now)

    until(replaced, "the sidecar to come back")


def test_a_session_that_ends_takes_the_sidecars_with_it(witness: Witness, polecats: Polecats) -> None:
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    _patrol(witness)
    (scope,) = _sidecars(witness, _living(witness)["gastown/Toast"]).values()
    polecats.tmux.kill_session("gt-Toast")
    report = witness.patrol()
    assert report.zombies == [], "an ordinary end is no zombie"
    assert _living(witness) == {}
    assert scope is not None
    assert not wait_gone({scope}, 10.0)


def test_a_handoff_is_a_new_run(witness: Witness, polecats: Polecats) -> None:
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    _patrol(witness)
    first = _living(witness)["gastown/Toast"]
    polecats.tmux.run("respawn-pane", "-k", "-t", "=gt-Toast:", sys.executable, "-c", AGENT)
    _patrol(witness)
    _patrol(witness)
    assert _living(witness)["gastown/Toast"].id.run != first.id.run


def test_an_emergency_stop_ends_sidecars_and_its_end_brings_them_back(
    town: Town, witness: Witness, polecats: Polecats
) -> None:
    agent = polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    _patrol(witness)
    (town.root / "ESTOP").touch()
    _patrol(witness)
    assert _living(witness) == {}
    assert is_alive(agent)
    (town.root / "ESTOP").unlink()
    _patrol(witness)
    assert "gastown/Toast" in _living(witness)


def test_nuke_of_a_followed_polecat_ends_its_sidecars_only(witness: Witness, polecats: Polecats) -> None:
    agent = polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    _patrol(witness)
    (scope,) = _sidecars(witness, _living(witness)["gastown/Toast"]).values()
    (would,) = witness.nuke(["gastown/Toast"], dry_run=True)
    assert scope is not None
    assert would.processes == (scope.pid,)
    (nuked,) = witness.nuke(["gastown/Toast"])
    assert nuked.result is not None
    assert nuked.result.survivors == ()
    assert not is_alive(scope)
    assert is_alive(agent)
    assert polecats.tmux.has_session("gt-Toast")


def test_a_killed_sidecar_of_a_followed_polecat_comes_back(witness: Witness, polecats: Polecats) -> None:
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    _patrol(witness)
    group = _living(witness)["gastown/Toast"]
    (scope,) = _sidecars(witness, group).values()
    assert scope is not None
    os.kill(scope.pid, 9)
    assert not wait_gone({scope}, 10.0)
    report = witness.patrol()
    assert report.respawned == [{"polecat": "gastown/Toast", "sidecar": "scope"}]


def test_what_is_no_polecat_is_left_alone(town: Town, witness: Witness, polecats: Polecats) -> None:
    (town.root / "settings").mkdir()
    (town.root / "settings" / "witness.yaml").write_text("sidecars: scope\n")
    for session in ("gt-witness", "gt-crew-max", "hq-mayor", "dotfiles-main", "gt-NoWorktree", "bd-refinery"):
        polecats.tmux.new_session(session, "/", [sys.executable, "-c", AGENT], {}, (80, 24))
    _patrol(witness)
    assert _living(witness) == {}


def test_heartbeats_are_never_refreshed_and_bd_sees_nothing_of_a_polecat(
    town: Town, witness: Witness, polecats: Polecats, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GT_SESSION", "GT_ROLE", "GT_POLECAT", "TMUX", "CLAUDECODE"):
        monkeypatch.setenv(name, "x")
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    beat = polecats.heartbeat("gt-Toast", "working")
    before = beat.read_bytes(), beat.stat().st_mtime_ns
    _patrol(witness)
    group = _living(witness)["gastown/Toast"]
    (scope,) = _sidecars(witness, group).values()
    assert scope is not None
    args, environment = json.loads(polecats.bd_calls.read_text().splitlines()[0])
    assert args[0] == "list"
    environ_of_sidecar = Path(f"/proc/{scope.pid}/environ").read_bytes() if Path("/proc/self/environ").exists() else b""
    for name in ("GT_SESSION", "GT_ROLE", "GT_POLECAT", "TMUX", "CLAUDECODE"):
        assert name not in environment
        assert f"\0{name}=".encode() not in b"\0" + environ_of_sidecar
    assert (beat.read_bytes(), beat.stat().st_mtime_ns) == before
    # Our session list is Gas Town's alone: sidecars are no sessions.
    assert {pane.session for pane in polecats.tmux.panes()} == {"gt-Toast"}


def test_a_polecat_without_sidecars_is_asked_about_seldom(witness: Witness, polecats: Polecats) -> None:
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", "attached_formula: mol-within-gt")
    assert _patrol(witness) == []
    calls = polecats.bd_calls.read_text()
    assert _patrol(witness) == []
    assert polecats.bd_calls.read_text() == calls
    # News of new work makes it worth asking again.
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    polecats.tell("sling", "mayor", bead="gt-2", target="gastown/Toast")
    _patrol(witness)
    assert "gastown/Toast" in _living(witness)


def test_a_broken_declaration_is_told_with_its_place(witness: Witness, polecats: Polecats) -> None:
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope,nosuch"]')
    (error,) = _patrol(witness)
    assert "bead gt-1: attached_vars.sidecars: no sidecar type named 'nosuch'" in error


def test_hooks_of_a_followed_session_find_its_spool(town: Town, witness: Witness, polecats: Polecats) -> None:
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    _patrol(witness)
    group = _living(witness)["gastown/Toast"]

    def hook(session: str) -> subprocess.CompletedProcess[bytes]:
        environment = {"PATH": os.environ["PATH"], "GT_SESSION": session, "GT_TOWN_ROOT": str(town.root)}
        payload = b'{"hook_event_name":"PostToolUse","tool_name":"Read","tool_input":{"file_path":"/x"}}'
        argv = [sys.executable, "-S", "-I", str(hooks_dir() / "gt_hook.py"), "PostToolUse"]
        return subprocess.run(argv, env=environment, input=payload, capture_output=True, check=False)

    for session in ("gt-Toast", "gt-Nux", "../../x"):
        done = hook(session)
        assert (done.returncode, done.stderr) == (0, b"")
    spool = town.run_dir(group.id.run) / "spool"
    (event,) = SpoolReader(spool).read()
    assert event.payload["tool_name"] == "Read"
    witness.nuke(["gastown/Toast"])
    hook("gt-Toast")
    assert len(SpoolReader(spool).read()) == 1


def test_two_towns_with_the_same_names_do_not_mix(
    town: Town, witness: Witness, polecats: Polecats, tmp_path: Path
) -> None:
    twin = make_gas_town(tmp_path / "elsewhere" / "gt")
    (tmp_path / "twin").mkdir()
    others = Polecats(twin, tmp_path / "twin")
    try:
        agent, other = polecats.start("gastown/Toast"), others.start("gastown/Toast")
        polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
        _patrol(witness)
        with Witness(twin, environ={}) as second:
            assert second.patrol().checked == 0
            (group,) = _living(witness).values()
            agents = [m.process for m in witness.journal.members.of(group.id.run) if m.kind is MemberKind.AGENT]
            assert agents == [agent]
            polecats.tmux.kill_session("gt-Toast")
            _patrol(witness)
            assert is_alive(other)
            assert second.patrol().zombies == []
    finally:
        end_town(twin)


def test_the_running_witness_follows_too(town: Town, witness: Witness, polecats: Polecats) -> None:
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    witness.start()
    # Each request is a full look of the daemon; the tracker's answer comes between two of them.
    for _ in range(200):
        answer = town_witness.ask(town, {"op": "patrol"}, 20.0)
        assert answer is not None
        if _living(witness):
            break
    assert "gastown/Toast" in _living(witness)


def test_the_loss_of_the_journal_leaves_one_sidecar_of_each_kind(town: Town, polecats: Polecats) -> None:
    agent = polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    with Witness(town, environ={}) as witness:
        _patrol(witness)
        # A sidecar that is just being forked carries neither name nor marker yet; it is found once it observes.
        while not all(
            member.state is MemberState.RUNNING
            for member in witness.journal.members.of(_living(witness)["gastown/Toast"].id.run)
            if member.kind is MemberKind.SIDECAR
        ):
            _patrol(witness)
        (before,) = _sidecars(witness, _living(witness)["gastown/Toast"]).values()
    for name in ("witness.db", "witness.db-wal", "witness.db-shm"):
        (town.runtime / name).unlink(missing_ok=True)
    assert rebuild(town) == []
    with Witness(town, environ={}) as witness:
        _patrol(witness)
        _patrol(witness)
        (after,) = _sidecars(witness, _living(witness)["gastown/Toast"]).values()
        assert before is not None
        assert after is not None
        assert not wait_gone({before}, 10.0)
        assert is_alive(after)
        assert is_alive(agent)


def test_sidecars_end_when_everything_of_ours_is_removed(town: Town, polecats: Polecats) -> None:
    agent = polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    with Witness(town, environ={}) as witness:
        _patrol(witness)
        (scope,) = _sidecars(witness, _living(witness)["gastown/Toast"]).values()
    while town.runtime.exists():  # a sidecar that is just coming up makes its folders anew
        shutil.rmtree(town.runtime, ignore_errors=True)
    assert scope is not None
    assert not wait_gone({scope}, 30.0)
    assert is_alive(agent)


def test_a_rig_that_is_added_while_the_witness_runs(town: Town, witness: Witness, polecats: Polecats) -> None:
    assert _patrol(witness) == []
    path = town.root / "mayor" / "rigs.json"
    whole = path.read_text()
    path.write_text(whole[:20])
    (error,) = _patrol(witness)
    assert "rigs.json" in error
    rigs = json.loads(whole)
    rigs["rigs"]["later"] = {"beads": {"prefix": "lt"}}
    path.write_text(json.dumps(rigs))
    polecats.town = Town.at(town.root)
    polecats.start("later/Toast")
    polecats.hook("later/Toast", 'attached_vars: ["sidecars=scope"]')
    assert _patrol(witness) == []
    assert set(_living(witness)) == {"later/Toast"}


def test_cron_finds_a_followed_polecat_in_a_tmux_that_lies_elsewhere(
    town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    polecats = Polecats(town, tmp_path / "bin")
    polecats.tmux = Tmux(town.socket, str(tmp_path))
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_vars: ["sidecars=scope"]')
    try:
        with Witness(town, environ={}) as witness:
            assert _patrol(witness) == []
            run = _living(witness)["gastown/Toast"].id.run
        monkeypatch.delenv("TMUX_TMPDIR")
        with Witness(town, environ={}) as witness:
            assert _patrol(witness) == []
            assert _living(witness)["gastown/Toast"].id.run == run
    finally:
        polecats.tmux.kill_session("gt-Toast")


def test_a_formula_that_is_refused_takes_no_sidecars_from_who_names_them(
    town: Town, witness: Witness, polecats: Polecats
) -> None:
    (town.root / ".beads" / "formulas" / "mol-x.formula.toml").write_text("[[steps]\n")
    polecats.start("gastown/Toast")
    polecats.hook("gastown/Toast", 'attached_formula: mol-x\nattached_vars: ["sidecars=scope"]')
    assert _patrol(witness) == []
    assert "gastown/Toast" in _living(witness)
