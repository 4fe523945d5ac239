"""The Witness is killed at every instant at which it writes, and the next one finds its way.

Nothing is lost (what was asked for happens, or is undone), nothing is doubled (one process a member, one session a
polecat), and a polecat that had started is never the victim.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.real.conftest import SETTINGS, Place
from tests.waiting import pass_time, until
from witness.api import Witness
from witness.clock import SystemClock
from witness.errors import TownLockedError
from witness.journal import GroupState, Intent, MemberState
from witness.launch import town_witness
from witness.process import ProcessId
from witness.process.table import is_alive
from witness.supervise.reconcile import Reconciler

AGENT = ["sleep", "60"]
MOMENTS = ("before", "after")


@pytest.fixture
def scoped(make_place: Callable[..., Place]) -> Place:
    place = make_place(settings=SETTINGS + "done_settle: 10ms\npatrol_interval: 100ms\nbackoff_base: 10ms\n")
    (place.work / "issue.md").write_text("only `a/**`\n")
    return place


def mortal(place: Place, *what: str, step: int, moment: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "tests.supervise.mortal", *what, str(place.town.root), str(step), moment]
    return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)


def died(child: subprocess.Popen[str]) -> bool:
    """Whether it came to its fatal step; anything but that and success is a fault."""
    _, said = child.communicate(timeout=50)
    assert child.returncode in (0, -signal.SIGKILL), said
    return child.returncode != 0


def patrolled(place: Place, told: Callable[[], bool], what: str) -> None:
    """Patrol as cron would, until it is so."""

    def now() -> bool:
        report = place.witness.patrol()
        assert not report.errors, report.errors
        return told()

    until(now, what, every=0.02)


def check_whole(place: Place, name: str) -> None:
    """The polecat runs, whole, and each of its processes once."""
    members = place.members(name)
    ours = {(each.process.pid, each.process.started) for each in members.values() if each.process}
    assert len(ours) == 4, members
    assert all(is_alive(ProcessId(*each)) for each in ours)
    assert {each.state for each in members.values()} == {MemberState.RUNNING}
    assert _marked(place, name) == ours
    assert place.sessions().count(f"gt-{name}") == 1


def check_gone(place: Place, name: str) -> None:
    assert _marked(place, name) == set()
    assert f"gt-{name}" not in place.sessions()


def _marked(place: Place, name: str) -> set[tuple[int, int]]:
    """Living processes of any run of that name, by their own marker and not by any record."""
    from witness.process.table import Markers, read_table

    found = Markers().read(read_table())
    runs = {folder.name for folder in (place.town.runtime / "runs").glob("*")}
    named = {(p.pid, p.started): marker.split("/") for p, marker in found.items() if marker.count("/") == 2}
    return {identity for identity, (_, polecat, run) in named.items() if polecat == name and run in runs}


def _steps(every: int) -> Iterator[tuple[int, str]]:
    step = 1
    while True:
        for moment in MOMENTS:
            yield step, moment
        step += every


def killed_while_spawning(place: Place, every: int) -> int:
    """Kill the spawner at its steps; returns how many there are."""
    for step, moment in _steps(every):
        name = f"x{step}{moment}"
        if not died(mortal(place, "spawn", name, step=step, moment=moment)):
            check_whole(place, name)
            place.witness.nuke([name])
            return step

        def settled(name: str = name) -> bool:
            last = place.witness.journal.groups.last(name)
            return last is None or last.state in (GroupState.RUNNING, GroupState.NUKED)

        patrolled(place, settled, f"killed {moment} step {step}: the spawn is neither finished nor undone")
        if (last := place.witness.journal.groups.last(name)) and last.state is GroupState.RUNNING:
            check_whole(place, name)
            place.witness.nuke([name])
        check_gone(place, name)
    raise AssertionError


def test_a_spawner_killed_at_some_of_its_steps(scoped: Place) -> None:
    assert killed_while_spawning(scoped, every=12) > 12


@pytest.mark.real
@pytest.mark.timeout(600)
def test_a_spawner_killed_at_each_of_its_steps(scoped: Place) -> None:
    assert killed_while_spawning(scoped, every=1) > 12


def killed_while_serving(place: Place, every: int, what: str) -> int:
    """Kill the daemon while it brings a sidecar back, and then ends the group."""
    for step, moment in _steps(every):
        name = f"x{step}{moment}"
        spawned = place.spawn(name, AGENT, sidecars="scope:issue.md")
        (scope,) = spawned.sidecars
        if what == "respawn":
            place.kill(scope.process)
        else:
            place.witness.journal.groups.set_intent(spawned.group.run, Intent.DONE, time.monotonic(), "COMPLETED")
        child = mortal(place, "serve", step=step, moment=moment)

        def goal(name: str = name, old: object = scope.process) -> bool:
            if what == "done":
                return place.witness.find(name, ended=True).state is GroupState.NUKED
            now = place.members(name)["scope"]
            return now.state is MemberState.RUNNING and now.process not in (None, old) and _is(place, name)

        until(lambda child=child, goal=goal: child.poll() is not None or goal(), "neither", processes=[child.pid])  # type: ignore[misc]
        if child.poll() is None:
            child.terminate()  # it may come to its step only now, while it leaves
        survived = not died(child)
        patrolled(place, goal, f"killed {moment} step {step}: {what} was not finished")
        if what == "respawn":
            check_whole(place, name)
            assert is_alive(spawned.agent)
            place.witness.nuke([name])
        check_gone(place, name)
        if survived:
            return step
    raise AssertionError


def _is(place: Place, name: str) -> bool:
    return place.witness.find(name).state is GroupState.RUNNING


@pytest.mark.parametrize("what", ["respawn", "done"])
def test_a_daemon_killed_at_some_of_its_steps(scoped: Place, what: str) -> None:
    assert killed_while_serving(scoped, 11, what) > 5


@pytest.mark.real
@pytest.mark.timeout(600)
@pytest.mark.parametrize("what", ["respawn", "done"])
def test_a_daemon_killed_at_each_of_its_steps(scoped: Place, what: str) -> None:
    assert killed_while_serving(scoped, 1, what) > 5


def test_an_unrecorded_sidecar_is_adopted_or_ended(scoped: Place) -> None:
    """The journal forgets a sidecar that runs; the next look finds it by its marker."""
    spawned = scoped.spawn("x", AGENT, sidecars="scope:issue.md")
    (scope,) = spawned.sidecars
    scoped.witness.journal.run("UPDATE members SET state = 'SPAWNING', pid = NULL WHERE name = 'scope'")
    patrolled(scoped, lambda: scoped.members("x")["scope"].state is MemberState.RUNNING, "not adopted")
    assert scoped.members("x")["scope"].process == scope.process
    check_whole(scoped, "x")


def test_of_two_of_the_same_sidecar_the_unrecorded_one_is_ended(scoped: Place) -> None:
    spawned = scoped.spawn("x", AGENT, sidecars="scope:issue.md")
    (scope,) = spawned.sidecars
    with closing(Reconciler(scoped.town, scoped.witness.journal, SystemClock())) as reconciler:
        assignment = reconciler.actor.assignment(scoped.witness.find("x"), scoped.members("x")["scope"])
        second = reconciler.pool.start(assignment)
    patrolled(scoped, lambda: not is_alive(second), "the second one lives")
    assert scope.process
    assert is_alive(scope.process)
    check_whole(scoped, "x")


def test_a_suspended_witness_takes_nobody_for_dead(make_place: Callable[..., Place]) -> None:
    """Stopped for longer than every limit, sidecars and all, as a laptop that sleeps."""
    limits = "patrol_interval: 200ms\nsidecar_silence: 3s\nhung_after: 1s\nspawn_deadline: 500ms\n"
    place = make_place(settings=SETTINGS + limits)
    (place.work / "issue.md").write_text("only `a/**`\n")
    (place.town.root / "settings" / "witness.yaml").write_text(
        SETTINGS + "patrol_interval: 200ms\nsidecar_silence: 30s\n"
    )
    spawned = place.spawn("x", AGENT, daemon=True, sidecars="scope:issue.md")
    (scope,) = spawned.sidecars
    witness = town_witness.witness_process(place.town)
    assert witness
    assert scope.process
    for process in (witness, scope.process):
        os.kill(process.pid, signal.SIGSTOP)
    (place.town.root / "settings" / "witness.yaml").write_text(SETTINGS + limits)
    pass_time(3.5)
    # The sidecar comes to itself some intervals later, as on a machine where everybody wakes at once.
    os.kill(witness.pid, signal.SIGCONT)
    pass_time(0.6)
    assert is_alive(scope.process), "it had no time to show that it lives"
    os.kill(scope.process.pid, signal.SIGCONT)
    status = town_witness.ask(place.town, {"op": "status"}, 10.0)
    assert status
    report = place.witness.patrol()
    assert report.zombies == []
    assert is_alive(spawned.agent)
    assert is_alive(scope.process)
    assert place.members("x")["scope"].restarts == 0


class _JumpingClock(SystemClock):
    """The machine's clocks; somebody sets the date."""

    offset = 0.0

    def wall(self) -> float:
        return super().wall() + self.offset


@pytest.mark.parametrize("hours", [8, -1, 24 * 365])
def test_a_date_that_jumps_changes_nothing(make_place: Callable[..., Place], hours: int) -> None:
    place = make_place(settings=SETTINGS + "spawn_deadline: 5s\ndone_grace: 5s\nhung_after: 60s\n")
    (place.work / "issue.md").write_text("only `a/**`\n")
    spawned = place.spawn("x", AGENT, sidecars="scope:issue.md")
    clock = _JumpingClock()
    with Witness(place.town, clock=clock, environ={}) as witness:
        assert witness.patrol().zombies == []
        clock.offset = hours * 3600.0
        for _ in range(2):
            report = witness.patrol()
            assert (report.zombies, report.nuked, report.respawned, report.errors) == ([], [], [], [])
        other = witness.spawn("y", workdir=place.work, agent="sleep 60", sidecars="scope:issue.md", witness=False)
        witness.done(other.group)
        until(
            lambda: witness.find("y", ended=True).state is GroupState.NUKED, "a done after the jump is not carried out"
        )
    check_whole(place, "x")
    assert is_alive(spawned.agent)


def test_a_patrol_that_is_killed_leaves_the_town_free(scoped: Place) -> None:
    spawned = scoped.spawn("x", AGENT, sidecars="scope:issue.md")
    scoped.kill(spawned.agent)
    assert died(mortal(scoped, "patrol", step=3, moment="after"))
    try:
        with town_witness.town_lock(scoped.town):
            pass
    except TownLockedError as error:
        raise AssertionError("a killed patrol holds the town") from error
    patrolled(scoped, lambda: scoped.witness.find("x", ended=True).state is GroupState.NUKED, "not ended")
    check_gone(scoped, "x")


class _LaterClock(SystemClock):
    """Half a minute from now."""

    def monotonic(self) -> float:
        return super().monotonic() + 30.0


def test_a_report_that_the_agent_has_replaced_keeps_no_spawn_open(scoped: Place) -> None:
    """The spawner was killed, and what its reaper reported is a link now: nobody will ever learn whom it started."""
    for step, moment in _steps(3):
        name = f"x{step}{moment}"
        assert died(mortal(scoped, "spawn", name, step=step, moment=moment)), "there is no such step"
        last = scoped.witness.journal.groups.last(name)
        if last and last.state is GroupState.SPAWNING and f"gt-{name}" in scoped.sessions():
            break
        if last:
            scoped.witness.nuke([name])
    assert last
    report = scoped.town.run_dir(last.id.run) / "started.json"
    until(report.exists, "the reaper's report")
    report.unlink()
    report.symlink_to("/etc/hostname")
    told = scoped.witness.patrol().errors
    assert [line for line in told if "started.json" in line]
    assert scoped.witness.find(name).state is GroupState.SPAWNING, "a disk may fail for a moment"
    with Witness(scoped.town, clock=_LaterClock(), environ={}) as later:
        later.patrol()
    assert scoped.witness.find(name, ended=True).state is GroupState.NUKED
    check_gone(scoped, name)
