"""Done, nuke, patrol and the daemon, in towns with real tmux."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.programs import alive
from tests.real.conftest import SETTINGS, Place
from tests.supervise.command import GT, bare_environment, gt, gt_json
from tests.waiting import pass_time, until
from witness.config.town import Town
from witness.errors import RunEndedError, TownLockedError
from witness.files import locked
from witness.journal import GroupState, Intent, MemberState
from witness.launch import town_witness
from witness.launch.sidecar_pool import SidecarPool
from witness.names import GroupId
from witness.process import ProcessId
from witness.process.exits import wait_gone
from witness.process.table import command_line, identify, is_alive, processor_seconds, read_table, send
from witness.supervise.spawn import SpawnResult
from witness.testing import living_of
from witness.tmux import Tmux

AGENT = ["sleep", "60"]
DONE = shlex.join([*GT, "done"])
# For an agent that is a small shell program: it writes how a command ended, and stays.
INSIDE = "{command} > out 2>&1; echo $? > code; exec sleep 60"


@pytest.fixture
def scoped(place: Place) -> Place:
    """A town with an issue to observe."""
    (place.work / "issue.md").write_text("only `a/**`\n")
    return place


def processes(place: Place, name: str = "x") -> list[ProcessId]:
    return [each.process for each in place.members(name).values() if each.process]


def state(place: Place, name: str = "x") -> GroupState:
    return place.witness.find(name, ended=True).state


# -- done -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("daemon", [True, False])
def test_done_inside_the_polecat_ends_the_group_from_outside(scoped: Place, daemon: bool) -> None:
    script = f"read go < go; {INSIDE.format(command=DONE + ' --status escalated')}"
    os.mkfifo(scoped.work / "go")
    scoped.spawn("x", ["sh", "-c", script], daemon=daemon, sidecars="scope:issue.md")
    everybody = processes(scoped)
    assert len(everybody) == 4
    (scoped.work / "go").write_text("go\n")
    until(lambda: state(scoped) is GroupState.NUKED, "the group was not ended")
    assert (scoped.work / "code").read_text() == "0\n", (scoped.work / "out").read_text()
    assert "ESCALATED" in (scoped.work / "out").read_text()
    assert not [each for each in everybody if alive((each.pid, each.started))]
    assert scoped.sessions() == []
    assert not scoped.marked()
    kinds = [event.kind for event in scoped.witness.journal.history(scoped.witness.find("x", ended=True).id.run)]
    assert "zombie" not in kinds


def test_a_late_done_of_an_earlier_run_is_dropped(place: Place) -> None:
    first = place.spawn("x", AGENT)
    place.witness.nuke(["x"])
    second = place.spawn("x", AGENT)
    with pytest.raises(RunEndedError, match="dropped"):
        place.witness.done(first.group)
    assert state(place) is GroupState.RUNNING
    assert place.witness.find("x").intent is Intent.RUN
    assert is_alive(second.agent)
    assert [event.kind for event in place.witness.journal.history(first.group.run)][-1] == "late-done"


def test_done_of_a_run_that_never_was(place: Place) -> None:
    with pytest.raises(RunEndedError):
        place.witness.done(GroupId("main", "x", "never"))


def test_done_outside_of_a_polecat_is_bad_usage(place: Place) -> None:
    done = gt(place.work, "done")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_done_that_nobody_carried_out_is_done_stuck(scoped: Place) -> None:
    """The Witness was down; a patrol finds it by its class and ends it."""
    (scoped.town.root / "settings" / "witness.yaml").write_text("done_grace: 0.2s\ndone_settle: 10ms\nstop_grace: 1s\n")
    spawned = scoped.spawn("x", AGENT, sidecars="scope:issue.md")
    scoped.witness.journal.groups.set_intent(spawned.group.run, Intent.DONE, time.monotonic() - 1, "COMPLETED")
    report = scoped.witness.patrol()
    assert report.zombies == [{"polecat": "main/x", "class": "done-stuck", "action": "nuked"}]
    assert report.nuked == ["main/x"]
    assert not scoped.marked()


# -- nuke -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("daemon", [True, False])
def test_nuke_from_inside_the_polecats_own_pane(scoped: Place, daemon: bool) -> None:
    os.mkfifo(scoped.work / "go")
    script = f"read go < go; {INSIDE.format(command=shlex.join([*GT, 'polecat', 'nuke', 'x']))}"
    scoped.spawn("x", ["sh", "-c", script], daemon=daemon, sidecars="scope:issue.md")
    everybody = processes(scoped)
    (scoped.work / "go").write_text("go\n")
    until(lambda: state(scoped) is GroupState.NUKED, "the group was not ended")
    assert not [each for each in everybody if alive((each.pid, each.started))]
    assert not scoped.marked()
    assert scoped.sessions() == []


def test_nuke_ends_only_who_is_named(scoped: Place) -> None:
    scoped.spawn("x", AGENT, sidecars="scope:issue.md")
    other = scoped.spawn("x2", AGENT, sidecars="scope:issue.md")
    rows = gt_json(scoped.work, "polecat", "nuke", "x")
    assert [(row["polecat"], row["survivors"]) for row in rows] == [("main/x", [])]
    assert rows[0]["ended"] >= 4  # a judge may be starting git just then
    assert all(is_alive(process) for process in [other.agent, *processes(scoped, "x2")])
    assert scoped.sessions() == ["gt-x2"]


def test_two_nukes_at_once(place: Place) -> None:
    place.spawn("x", ["sh", "-c", "trap '' TERM HUP; while :; do sleep 60; done"])
    argv = [*GT, "polecat", "nuke", "x"]
    both = [subprocess.Popen(argv, cwd=place.work, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [each.communicate(timeout=50)[1] for each in both]
    assert 0 in [each.returncode for each in both], said
    assert not [line for line in said if "Traceback" in line]
    assert state(place) is GroupState.NUKED
    assert not place.marked()


def test_nuke_that_is_killed_half_way_is_finished_by_a_patrol(place: Place) -> None:
    place.spawn("x", ["sh", "-c", "trap '' TERM HUP; while :; do sleep 60; done"])
    (place.town.root / "settings" / "witness.yaml").write_text("stop_grace: 30s\n")
    nuke = subprocess.Popen([*GT, "polecat", "nuke", "x"], cwd=place.work)
    until(lambda: state(place) is GroupState.NUKING, "the nuke did not begin")
    assert place.witness.patrol().nuked == []  # somebody is at it
    nuke.kill()
    nuke.wait()
    (place.town.root / "settings" / "witness.yaml").write_text("stop_grace: 1s\n")
    assert place.witness.patrol().nuked == ["main/x"]
    assert not place.marked()


def test_dry_run_names_and_touches_nobody(scoped: Place) -> None:
    scoped.spawn("x", AGENT, sidecars="scope:issue.md")
    everybody = processes(scoped)
    done = gt(scoped.work, "polecat", "nuke", "x", "--dry-run")
    assert done.returncode == 0
    assert all(str(process.pid) in done.stdout for process in everybody)
    assert all(is_alive(process) for process in everybody)


# -- zombies, through the real tools --------------------------------------------------------------------------------


def test_agent_dead(scoped: Place) -> None:
    spawned = scoped.spawn("x", AGENT, sidecars="scope:issue.md")
    scoped.kill(spawned.agent)
    report = scoped.witness.patrol()
    assert report.zombies == [{"polecat": "main/x", "class": "agent-dead", "action": "nuked"}]
    assert scoped.witness.patrol().zombies == []


def test_session_gone(scoped: Place) -> None:
    spawned = scoped.spawn("x", AGENT, sidecars="scope:issue.md")
    Tmux(scoped.town.socket).kill_session("gt-x")
    assert not wait_gone([spawned.agent], 10)
    report = scoped.witness.patrol()
    assert report.zombies == [{"polecat": "main/x", "class": "session-gone", "action": "nuked"}]


def test_session_gone_under_an_agent_that_does_not_care(place: Place) -> None:
    """It ignores the hang-up and works on without a terminal; that must be seen twice."""
    place.spawn("keep", AGENT)
    spawned = place.spawn("x", ["sh", "-c", "trap '' HUP; exec sleep 60"])
    Tmux(place.town.socket).kill_session("gt-x")
    assert place.witness.patrol().zombies == []
    assert is_alive(spawned.agent)
    assert place.witness.patrol().zombies == [{"polecat": "main/x", "class": "session-gone", "action": "nuked"}]
    assert not is_alive(spawned.agent)
    assert place.sessions() == ["gt-keep"]


def test_orphans_of_a_run_that_is_over(place: Place) -> None:
    spawned = place.spawn("x", AGENT)
    place.witness.nuke(["x"])
    pane = place.witness.find("x", ended=True).pane
    marker = {**os.environ, "GT_WITNESS_GROUP": spawned.group.marker, "TMUX_PANE": pane}
    child = subprocess.Popen(["sleep", "60"], env=marker)
    other = subprocess.Popen(["sleep", "60"], env={**os.environ, "GT_WITNESS_GROUP": "main/x/unknown-run"})
    try:
        report = place.witness.patrol()
        assert report.zombies == [{"polecat": "main/x", "class": "orphans", "action": "ended 1"}]
        assert child.wait(10) < 0
        assert other.poll() is None  # another town's, for all we know
    finally:
        other.kill()
        other.wait()
        child.wait()


def test_hung_is_reported_once_and_not_ended(place: Place) -> None:
    (place.town.root / "settings" / "witness.yaml").write_text("hung_after: 50ms\nstop_grace: 1s\n")
    spawned = place.spawn("x", AGENT)
    assert place.witness.patrol().zombies == []
    pass_time(0.06)
    assert place.witness.patrol().zombies == [{"polecat": "main/x", "class": "hung", "action": "reported"}]
    assert place.witness.patrol().zombies == []
    assert is_alive(spawned.agent)


def test_a_silent_build_is_not_hung_and_its_child_counts(place: Place) -> None:
    limits = "hung_after: 300ms\nnuke_hung: true\nstop_grace: 1s\n"
    (place.town.root / "settings" / "witness.yaml").write_text(limits)
    spawned = place.spawn("x", ["sh", "-c", "trap '' TERM; (while :; do :; done) & wait"])
    group = place.witness.find("x")
    first = processor_seconds(living_of(place.witness, group))
    assert place.witness.patrol().zombies == []
    while processor_seconds(living_of(place.witness, group)) < first + 0.5:
        assert place.witness.patrol().zombies == []
    assert place.witness.patrol().zombies == []
    assert is_alive(spawned.agent)


def test_a_renamed_session_is_no_missing_one(place: Place) -> None:
    spawned = place.spawn("x", AGENT)
    Tmux(place.town.socket).run("rename-session", "-t", "=gt-x", "my-favourite")
    for _ in range(3):
        assert place.witness.patrol().zombies == []
    assert is_alive(spawned.agent)


def test_a_socket_that_was_cleaned_away_is_no_missing_session(place: Place) -> None:
    spawned = place.spawn("x", AGENT)
    server = Tmux(place.town.socket).panes()[0].server
    socket = Path(f"/tmp/tmux-{os.getuid()}") / place.town.socket
    aside = socket.with_name(f"{socket.name}.aside")
    socket.rename(aside)
    try:
        for _ in range(3):
            assert place.witness.patrol().zombies == []
        assert is_alive(spawned.agent)
    finally:
        aside.rename(socket)
    assert Tmux(place.town.socket).panes()[0].server == server


def test_a_tmux_that_hangs_proves_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    spawned = place.spawn("x", AGENT)
    server = identify(Tmux(place.town.socket).panes()[0].server)
    assert server
    run = Tmux.run
    monkeypatch.setattr(Tmux, "run", lambda *given, **options: run(*given, **{**options, "timeout": 0.2}))
    send(server, signal.SIGSTOP)
    try:
        for _ in range(2):
            assert place.witness.patrol().zombies == []
    finally:
        send(server, signal.SIGCONT)
    assert is_alive(spawned.agent)


# -- only ours ------------------------------------------------------------------------------------------------------


def test_a_users_own_agents_are_left_alone(place: Place, tmp_path: Path) -> None:
    """A `claude` in another tmux and one without a terminal, while a real zombie is ended."""
    claude = tmp_path / "claude"
    claude.symlink_to("/bin/sleep")
    own = Tmux(f"own-{os.getpid()}")
    pane = own.new_session("mine", "/", [str(claude), "60"], {}, (80, 24))
    lone = subprocess.Popen([str(claude), "60"], start_new_session=True)
    try:
        spawned = place.spawn("x", AGENT)
        place.kill(spawned.agent)
        assert place.witness.patrol().nuked == ["main/x"]
        assert identify(pane.pid)
        assert lone.poll() is None
    finally:
        lone.kill()
        lone.wait()
        own.run("kill-server")


def test_another_town_with_the_same_polecat_name(make_place: Callable[..., Place]) -> None:
    here, there = make_place("here"), make_place("there")
    ours, theirs = here.spawn("x", AGENT), there.spawn("x", AGENT)
    here.kill(ours.agent)
    assert here.witness.patrol().nuked == ["main/x"]
    assert is_alive(theirs.agent)
    assert there.witness.patrol().zombies == []


def test_the_tmux_server_outlives_its_last_polecats_nuke_by_nothing_of_ours(place: Place) -> None:
    Tmux(place.town.socket).new_session("mine", "/", ["sleep", "60"], {}, (80, 24))
    place.spawn("x", AGENT)
    server = identify(Tmux(place.town.socket).panes()[0].server)
    place.witness.nuke(["x"])
    assert server
    assert is_alive(server)
    assert place.sessions() == ["mine"]


# -- sidecars -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("daemon", [True, False])
def test_a_killed_sidecar_is_replaced(scoped: Place, daemon: bool) -> None:
    spawned = scoped.spawn("x", AGENT, daemon=daemon, sidecars="scope:issue.md")
    (before,) = spawned.sidecars
    scoped.kill(before.process)
    if not daemon:
        report = scoped.witness.patrol()
        assert report.respawned == [{"polecat": "main/x", "sidecar": "scope"}]

    def replaced() -> bool:
        if not daemon:
            scoped.witness.patrol()
        now = scoped.members("x")["scope"]
        return now.state is MemberState.RUNNING and now.process != before.process

    until(replaced, "no replacement observes")
    assert scoped.members("x")["scope"].restarts == 1
    assert is_alive(spawned.agent)
    until(lambda: state(scoped) is GroupState.RUNNING, "the group is not whole again")


def test_a_killed_fork_server_takes_nobody_with_it(scoped: Place) -> None:
    spawned = scoped.spawn("x", AGENT, daemon=True, sidecars="scope:issue.md")
    (before,) = spawned.sidecars
    fork_server = scoped.fork_server()
    scoped.kill(fork_server)
    assert before.process
    assert is_alive(before.process)
    scoped.kill(before.process)
    until(lambda: scoped.members("x")["scope"].process not in (None, before.process), "not replaced")
    until(lambda: scoped.members("x")["scope"].state is MemberState.RUNNING, "it does not observe")
    assert scoped.fork_server() != fork_server


def test_a_fork_server_that_comes_up_slowly_keeps_nobody_waiting(scoped: Place) -> None:
    """It loads for seconds; meanwhile the Witness answers, and what wants a sidecar gets it afterwards."""
    scoped.witness.start()
    with locked(scoped.town.runtime / "forkserver.lock") as held:
        assert held is not None
        spawn = subprocess.Popen(
            [*GT, "polecat", "spawn", "x", "--agent", "sleep 60", "--sidecars", "scope:issue.md"],
            cwd=scoped.work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            until(lambda: launchers(scoped) != [], "no fork server was begun", every=0.02)
            began = time.monotonic()
            status = town_witness.ask(scoped.town, {"op": "status"}, 10.0)
            assert status
            assert status["groups"] == 1
            assert time.monotonic() - began < 2.0
            # The one that waits for the lock fails; the next one finds it free.
            for launcher in launchers(scoped):
                scoped.kill(launcher)
        except BaseException:
            spawn.kill()
            raise
    said, _ = spawn.communicate(timeout=30)
    assert spawn.returncode == 0, said
    until(lambda: scoped.members("x")["scope"].state is MemberState.RUNNING, "it does not observe")
    assert scoped.witness.find("x").state is GroupState.RUNNING


@pytest.mark.timeout(150)
@pytest.mark.parametrize("who", ["fork server", "tmux"])
def test_what_hangs_beside_the_witness_does_not_hold_it_up(make_place: Callable[..., Place], who: str) -> None:
    place = make_place(settings=SETTINGS + "patrol_interval: 50ms\n")
    (place.work / "issue.md").write_text("only `a/**`\n")
    spawned = place.spawn("x", AGENT, daemon=True, sidecars="scope:issue.md")
    (scope,) = spawned.sidecars
    pool = SidecarPool(place.town.runtime, "")
    hangs = pool.process() if who == "fork server" else identify(Tmux(place.town.socket).panes()[0].server)
    assert hangs
    send(hangs, signal.SIGSTOP)
    try:
        place.kill(scope.process)
        longest = 0.0
        for _ in range(15):
            began = time.monotonic()
            assert town_witness.ask(place.town, {"op": "status"}, 20.0)
            longest = max(longest, time.monotonic() - began)
            pass_time(0.05)
        assert longest < 8.0, "a turn of ten seconds"  # far less, but on a crowded machine
    finally:
        send(hangs, signal.SIGCONT)
    until(lambda: place.members("x")["scope"].process not in (None, scope.process), "not replaced")
    until(lambda: state(place) is GroupState.RUNNING, "it does not observe")
    assert is_alive(spawned.agent)


def launchers(place: Place) -> list[ProcessId]:
    """The processes that are about to become this town's fork server."""
    words = f"-m sidecars --forkserver {place.town.runtime}"
    return [row.process for row in read_table().values() if not row.defunct and words in command_line(row.process)]


def test_a_hung_sidecar_is_replaced(scoped: Place) -> None:
    (scoped.town.root / "settings" / "witness.yaml").write_text("sidecar_silence: 300ms\npatrol_interval: 200ms\n")
    spawned = scoped.spawn("x", AGENT, sidecars="scope:issue.md")
    (before,) = spawned.sidecars
    assert before.process
    send(before.process, signal.SIGSTOP)

    def replaced() -> bool:
        scoped.witness.patrol()
        return scoped.members("x")["scope"].process not in (None, before.process)

    until(replaced, "a stopped sidecar was not replaced")
    assert not wait_gone([before.process], 10)
    notes = [(e.kind, e.data.get("reason")) for e in scoped.witness.journal.history(spawned.group.run)]
    assert ("ending", "no sign of life for three intervals") in notes


def test_failed_is_told_once_shown_and_reset_by_one_command(scoped: Place) -> None:
    (scoped.town.root / "settings" / "witness.yaml").write_text("backoff_base: 10ms\nintensity: 2\nstop_grace: 1s\n")
    spawned = scoped.spawn("x", AGENT, sidecars="scope:issue.md")

    def scope() -> MemberState:
        scoped.witness.patrol()
        return scoped.members("x")["scope"].state

    for _ in range(3):
        until(lambda: scope() in (MemberState.RUNNING, MemberState.SPAWNING), "not respawned")
        until(lambda: scoped.members("x")["scope"].process is not None, "no process")
        scoped.kill(scoped.members("x")["scope"].process)
    until(lambda: scope() is MemberState.FAILED, "not FAILED")
    assert is_alive(spawned.agent)
    assert state(scoped) is GroupState.DEGRADED
    told = [event for event in scoped.witness.journal.history(spawned.group.run) if event.kind == "told"]
    assert len(told) == 1
    for _ in range(3):
        scoped.witness.patrol()
    shown = gt(scoped.work, "polecat", "status", "x")
    assert "FAILED" in shown.stdout
    assert len([e for e in scoped.witness.journal.history(spawned.group.run) if e.kind == "told"]) == 1
    reset = gt(scoped.work, "polecat", "reset", "x")
    assert reset.returncode == 0, reset.stderr
    assert "scope" in reset.stdout
    until(lambda: scope() is MemberState.RUNNING, "not tried again")
    assert state(scoped) is GroupState.RUNNING


# -- the daemon and cron --------------------------------------------------------------------------------------------


def test_start_status_stop(place: Place) -> None:
    assert gt_json(place.work, "witness", "status")["running"] is False
    assert gt(place.work, "witness", "start").returncode == 0
    first = gt_json(place.work, "witness", "status")
    assert first["running"] is True
    again = gt(place.work, "witness", "start")
    assert again.returncode == 0
    assert gt_json(place.work, "witness", "status")["pid"] == first["pid"]
    spawned = place.spawn("x", AGENT)
    assert gt(place.work, "witness", "stop").returncode == 0
    assert is_alive(spawned.agent)
    assert gt_json(place.work, "witness", "status")["running"] is False
    second = gt(place.work, "witness", "stop")
    assert (second.returncode, second.stdout) == (0, "no Witness runs\n")


def test_run_in_the_foreground_ends_by_term(place: Place) -> None:
    child = subprocess.Popen([*GT, "witness", "run"], cwd=place.work, stderr=subprocess.PIPE, text=True)
    until(lambda: town_witness.witness_process(place.town) is not None, "it did not come up")
    second = gt(place.work, "witness", "run")
    assert second.returncode == 1
    assert f"another Witness (pid {child.pid})" in second.stderr
    child.terminate()
    assert child.wait(20) == 0, child.communicate()
    assert child.stderr
    child.stderr.close()
    assert not (place.town.runtime / "witness.sock").exists()


@pytest.mark.parametrize("how", ["patrol", "daemon"])
def test_under_env_i_from_another_folder(scoped: Place, how: str) -> None:
    """As cron calls it: no HOME of ours, no locale, no TMUX, the town named."""
    spawned = scoped.spawn("x", AGENT, sidecars="scope:issue.md", daemon=how == "daemon")
    scoped.kill(spawned.agent)
    environment = {**bare_environment(), "GT_TOWN_ROOT": str(scoped.town.root), "TMUX": "/tmp/tmux-0/other,1,2"}
    done = gt(Path("/"), "witness", "patrol", "--json", environment=environment)
    assert done.returncode == 0, done.stderr
    until(lambda: state(scoped) is GroupState.NUKED, "not ended")
    assert not scoped.marked()
    if how == "patrol":
        assert json.loads(done.stdout)["nuked"] == ["main/x"]


def test_two_patrols_at_once(scoped: Place) -> None:
    spawned = [scoped.spawn(f"x{n}", AGENT, sidecars="scope:issue.md") for n in range(2)]
    scoped.kill(spawned[0].agent)
    argv = [*GT, "witness", "patrol", "--json"]
    both = [
        subprocess.Popen(argv, cwd=scoped.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = [each.communicate(timeout=50) for each in both]
    assert 0 in [each.returncode for each in both]
    for each, (_, said) in zip(both, answers, strict=True):
        assert each.returncode == 0 or ("supervises this town" in said and said.count("\n") == 1), said
    assert sum(out.count('"agent-dead"') for out, _ in answers) == 1
    assert is_alive(spawned[1].agent)
    assert not [each for each in scoped.marked() if not is_alive(ProcessId(*each))]


def test_a_daemon_waits_for_a_patrol_that_passes_through(place: Place) -> None:
    with town_witness.town_lock(place.town):
        starter = subprocess.Popen([sys.executable, "-m", "witness.daemon", str(place.town.root)])
        with pytest.raises(TownLockedError), town_witness.town_lock(place.town):
            pass
        assert starter.poll() is None
    assert starter.wait(20) == 0
    assert town_witness.witness_process(place.town)


def test_a_patrol_by_the_daemon_tells_what_it_ended(scoped: Place) -> None:
    (scoped.town.root / "settings" / "witness.yaml").write_text("patrol_interval: 1h\nstop_grace: 1s\n")
    scoped.spawn("x", AGENT, daemon=True, sidecars="scope:issue.md")
    scoped.spawn("y", ["sh", "-c", "trap '' TERM; while :; do sleep 60; done"], daemon=True)
    scoped.witness.journal.groups.set_intent(scoped.witness.find("y").id.run, Intent.NUKE, time.monotonic(), "test")
    report = scoped.witness.patrol()
    assert report.checked == 2
    assert report.nuked == ["main/y"]
    assert state(scoped, "x") is GroupState.RUNNING


def test_a_patrol_inside_a_spawn_starts_nothing_twice(scoped: Place) -> None:
    argv = [*GT, "polecat", "spawn", "x", "--no-witness", "--agent", "sleep 60", "--sidecars", "scope:issue.md"]
    spawn = subprocess.Popen(argv, cwd=scoped.work)
    while spawn.poll() is None:
        try:
            report = scoped.witness.patrol()
        except TownLockedError:
            continue
        assert (report.zombies, report.nuked) == ([], [])
    assert spawn.returncode == 0
    members = scoped.members("x")
    ours = {(each.process.pid, each.process.started) for each in members.values() if each.process}
    assert scoped.marked() == ours
    assert members["scope"].restarts == 0


def test_a_slip_in_the_settings_does_not_stop_the_daemon(scoped: Place) -> None:
    settings = scoped.town.root / "settings" / "witness.yaml"
    settings.write_text("patrol_interval: 100ms\n")
    spawned = scoped.spawn("x", AGENT, daemon=True, sidecars="scope:issue.md")
    settings.write_text("patrol_interval: [\n")
    log = scoped.town.runtime / "witness.log"
    until(lambda: "the settings of before are kept" in log.read_text(), "nobody complained")
    (before,) = spawned.sidecars
    scoped.kill(before.process)

    def replaced() -> bool:
        scope = scoped.members("x")["scope"]
        return scope.state is MemberState.RUNNING and scope.process not in (None, before.process)

    until(replaced, "not replaced")
    assert log.read_text().count("the settings of before are kept") == 1


def test_an_idle_witness_leaves_by_itself(place: Place) -> None:
    (place.town.root / "settings" / "witness.yaml").write_text("patrol_interval: 50ms\nlinger: 100ms\nstop_grace: 1s\n")
    place.spawn("x", AGENT, daemon=True)
    witness = town_witness.witness_process(place.town)
    assert witness
    place.witness.nuke(["x"])
    assert not wait_gone([witness], 20)


def test_done_after_the_witness_was_killed(scoped: Place) -> None:
    spawned: SpawnResult = scoped.spawn("x", AGENT, daemon=True, sidecars="scope:issue.md")
    scoped.kill_daemon()
    scoped.witness.done(spawned.group)
    until(lambda: state(scoped) is GroupState.NUKED, "no Witness came")
    assert not scoped.marked()


def test_a_fault_of_our_own_does_not_end_the_supervision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from witness.daemon.loop import Daemon

    town = Town.init(tmp_path / "town")
    town.make_runtime()
    daemon = Daemon(town)
    turns: list[int] = []
    said: list[str] = []

    def turn() -> None:
        turns.append(len(turns))
        if len(turns) == 1:
            raise RuntimeError("nobody has thought of this")
        daemon.stop()

    monkeypatch.setattr(daemon, "turn", turn)
    monkeypatch.setattr("witness.daemon.loop.say", said.append)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    monkeypatch.chdir(tmp_path)
    try:
        daemon.open()
        daemon.run()
    finally:
        signal.set_wakeup_fd(-1)
        for number, handler in before.items():
            signal.signal(number, handler)
    assert turns == [0, 1]
    assert "nobody has thought of this" in said[0]
