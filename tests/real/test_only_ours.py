"""Nobody but ours: what stands beside a polecat lives on when the polecat is ended and when the patrol cleans up."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.programs import BY_NAME, Identity, alive, recording
from tests.real.conftest import Place
from tests.waiting import until
from witness.journal import MemberKind, MemberState
from witness.process import ProcessId

pytestmark = pytest.mark.real

# Longer than a test, and an end by itself for what a killed test leaves.
SLEEP = ["sleep", "70"]


def identity(pid: int) -> Identity:
    return pid, int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


@pytest.fixture
def bystander() -> Iterator[Callable[..., Identity]]:
    """Starts processes that are nobody's polecat, and ends them after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(argv: list[str], **more: object) -> Identity:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, **more)  # type: ignore[call-overload]
        started.append(process)
        return identity(process.pid)

    yield start
    for process in started:
        process.kill()
        process.wait(10)


def end_one_and_patrol(place: Place) -> None:
    """A nuke of one polecat, and a patrol that finds a real zombie in another."""
    place.spawn("toast", SLEEP)
    place.spawn("other", SLEEP)
    [nuked] = place.witness.nuke(["toast"])
    assert nuked.result
    assert nuked.result.survivors == ()
    place.kill(place.members("other")["agent"].process)
    report = place.witness.patrol()
    assert report.nuked == ["main/other"]


def test_a_users_own_claude_lives(place: Place, bystander: Callable[..., Identity], tmp_path: Path) -> None:
    """By name it is an agent: in a tmux of the user's own, without any terminal, and in the town's very tmux."""
    claude = tmp_path / "claude"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", claude)
    without_terminal = bystander([str(claude), "70"], start_new_session=True)
    own = ["tmux", "-L", f"users-own-{os.getpid()}"]
    towns = ["tmux", "-L", place.town.socket]
    shown = {}
    try:
        for tmux in (own, towns):
            # Even one of Gas Town's own names is no proof that it is ours.
            done = subprocess.run(
                [*tmux, "new-session", "-d", "-P", "-F", "#{pane_pid}", "-s", "gt-mine", str(claude), "70"],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            shown[tuple(tmux)] = identity(int(done.stdout))
        end_one_and_patrol(place)
        assert alive(without_terminal)
        assert all(alive(each) for each in shown.values())
        assert place.sessions() == ["gt-mine"]
    finally:
        subprocess.run([*own, "kill-server"], capture_output=True, check=False)


def test_a_later_owner_of_a_recorded_pid_lives(place: Place, bystander: Callable[..., Identity]) -> None:
    """The journal knows the pid from an earlier process; whoever has it now is somebody else."""
    pid, ticks = bystander(SLEEP)
    before = ProcessId(pid, ticks - 1)
    spawned = place.spawn("toast", SLEEP)
    run, journal = spawned.group.run, place.witness.journal
    journal.groups.record_descendants(run, {before})
    agent = place.members("toast")["agent"]
    from dataclasses import replace

    assert agent.kind is MemberKind.AGENT
    assert journal.members.update(replace(agent, process=before), MemberState.RUNNING)
    assert place.witness.patrol().nuked == ["main/toast"]
    assert alive((pid, ticks))
    assert not place.marked(), "the agent that the record does not name carries the marker"


def test_a_process_of_unknown_age_lives(place: Place, bystander: Callable[..., Identity]) -> None:
    pid, ticks = bystander(SLEEP)
    spawned = place.spawn("toast", SLEEP)
    place.witness.journal.groups.record_descendants(spawned.group.run, {ProcessId(pid, 0)})
    place.witness.nuke(["toast"])
    assert alive((pid, ticks))


def test_the_tmux_server_lives(place: Place) -> None:
    """Also when it was recorded as a descendant: other polecats and people's sessions hang from it."""
    spawned = place.spawn("toast", SLEEP)
    place.spawn("other", SLEEP)
    reaper = place.members("toast")["reaper"].process
    assert reaper
    server = int(Path(f"/proc/{reaper.pid}/stat").read_text().rpartition(")")[2].split()[1])
    place.witness.journal.groups.record_descendants(spawned.group.run, {ProcessId(*identity(server))})
    who = identity(server)
    [nuked] = place.witness.nuke(["toast"])
    assert nuked.result
    assert nuked.result.survivors == ()
    assert alive(who)
    assert place.sessions() == ["gt-other"]


def test_the_caller_and_its_ancestors_live(place: Place) -> None:
    """Recorded as seen by mistake, they are still no target: the test itself and whoever started it."""
    spawned = place.spawn("toast", SLEEP)
    line = {ProcessId(*identity(os.getpid())), ProcessId(*identity(os.getppid()))}
    place.witness.journal.groups.record_descendants(spawned.group.run, line)
    [nuked] = place.witness.nuke(["toast"])
    assert nuked.result
    assert nuked.result.survivors == ()
    assert all(alive((each.pid, each.started)) for each in line)


def test_a_child_of_the_caller_lives(place: Place, bystander: Callable[..., Identity]) -> None:
    child = bystander(SLEEP)
    place.spawn("toast", SLEEP)
    place.witness.nuke(["toast"])
    assert alive(child)


@pytest.mark.parametrize("command", [["polecat", "nuke", "toast"], ["done"]])
def test_a_polecat_that_ends_itself_is_ended_from_outside(place: Place, command: list[str], tmp_path: Path) -> None:
    """The caller runs inside the group: the Witness ends it, and the caller is not cut off before it has asked."""
    with recording(tmp_path) as record:
        gt = [sys.executable, "-m", "witness.cli", *command]
        inner = BY_NAME["daemon-renamed"].argv(record.path)
        script = '"$@" & read go; ' + shlex.join(gt) + f" >{tmp_path}/said 2>&1; echo $? >{tmp_path}/code; read forever"
        spawned = place.spawn("toast", ["sh", "-c", script, "sh", *inner], daemon=True)
        record.wait_stands()
        watched = os.pidfd_open(spawned.agent.pid)
        subprocess.run(
            ["tmux", "-L", place.town.socket, "send-keys", "-t", "=gt-toast:", "Enter"], check=True, capture_output=True
        )
        import select

        assert select.select([watched], [], [], 30)[0], "the agent lives on"
        os.close(watched)
        # The daemon's own record of it is the last thing that it does.
        wait_until_ended(place, spawned.group.run)
        assert not record.survivors()
        assert not place.marked()
        assert place.sessions() == []


def wait_until_ended(place: Place, run: str) -> None:
    def ended() -> bool:
        group = place.witness.journal.groups.get(run)
        return group is not None and group.state == "NUKED"

    until(ended, f"{run} has not ended")


def test_another_town_with_the_same_name_and_the_same_polecat_lives(make_place: Callable[..., Place]) -> None:
    here, there = make_place("a/town"), make_place("b/town")
    here.spawn("toast", SLEEP)
    there.spawn("toast", SLEEP)
    assert here.town.socket != there.town.socket
    kept = {(m.process.pid, m.process.started) for m in there.members("toast").values() if m.process}
    here.witness.nuke(["toast"])
    here.witness.patrol()
    assert here.sessions() == []
    assert len(kept) == 3
    assert all(alive(each) for each in kept)
    assert there.witness.patrol().zombies == []
    assert there.sessions() == ["gt-toast"]


def test_a_session_of_the_same_name_that_is_not_ours_stands(place: Place) -> None:
    """Somebody ended ours by hand and made one of the same name: the clean-up leaves it."""
    tmux = ["tmux", "-L", place.town.socket]
    place.spawn("toast", SLEEP)
    place.spawn("keeps-the-server", SLEEP)
    subprocess.run([*tmux, "kill-session", "-t", "=gt-toast"], check=True, capture_output=True)
    for each in ("agent", "keeper", "reaper"):
        place.kill(place.members("toast")[each].process)
    done = subprocess.run(
        [*tmux, "new-session", "-d", "-P", "-F", "#{pane_pid}", "-s", "gt-toast", *SLEEP],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    theirs = identity(int(done.stdout))
    report = place.witness.patrol()
    assert report.nuked == ["main/toast"]
    assert alive(theirs)
    assert "gt-toast" in place.sessions()


def test_a_process_that_another_run_of_the_name_left_is_not_the_new_ones(place: Place, tmp_path: Path) -> None:
    """Ending the run before must not touch the run now: the marker names the run, not the name."""
    first = place.spawn("toast", SLEEP)
    pane = place.witness.find("toast").pane
    place.witness.nuke(["toast"])
    second = place.spawn("toast", SLEEP)
    with recording(tmp_path) as record:
        environment = {"PATH": os.environ["PATH"], "GT_WITNESS_GROUP": first.group.marker, "TMUX_PANE": pane}
        late = subprocess.Popen(
            BY_NAME["stubborn"].argv(record.path), env=environment, start_new_session=True, stdin=subprocess.DEVNULL
        )
        try:
            record.wait_stands()
            report = place.witness.patrol()
            assert [zombie["class"] for zombie in report.zombies] == ["orphans"]
            late.wait(10)
            assert not record.survivors()
        finally:
            late.kill()
            late.wait(10)
    assert alive((second.agent.pid, second.agent.started))
    assert place.sessions() == ["gt-toast"]
