"""Every awkward program as a polecat's agent: after its nuke nobody is left, whoever was killed before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.programs import PROGRAMS, Program, missing, recording
from tests.real.conftest import SETTINGS, Place, kill_and_wait
from witness.process.cgroup import cgroup_members

pytestmark = pytest.mark.real


@pytest.fixture(params=PROGRAMS, ids=lambda program: program.name)
def program(request: pytest.FixtureRequest) -> Program:
    chosen: Program = request.param
    if missing(chosen):
        pytest.skip(missing(chosen))
    return chosen


def nuke(place: Place, program: Program) -> None:
    """End it and hold the result against what the kernel says."""
    [nuked] = place.witness.nuke([program.name])
    assert nuked.result
    assert nuked.result.survivors == ()


def test_nuke_leaves_nobody(program: Program, place: Place, tmp_path: Path) -> None:
    with recording(tmp_path) as record:
        place.run(program, record)
        nuke(place, program)
        assert not record.survivors()
        assert not place.marked()
        assert place.sessions() == []


@pytest.mark.parametrize("half", ["reaper", "keeper"])
def test_nuke_leaves_nobody_when_a_reaper_was_killed(program: Program, half: str, place: Place, tmp_path: Path) -> None:
    with recording(tmp_path) as record:
        place.run(program, record)
        place.kill(place.members(program.name)[half].process)
        nuke(place, program)
        assert not record.survivors()
        assert not place.marked()


def test_nuke_leaves_nobody_when_both_reapers_were_killed_after_a_patrol(
    program: Program, place: Place, tmp_path: Path
) -> None:
    """What the patrol has seen is known for ever, so that even a bare daemon without any reaper is found."""
    with recording(tmp_path) as record:
        place.run(program, record)
        report = place.witness.patrol()
        assert not report.errors
        members = place.members(program.name)
        for half in ("keeper", "reaper"):
            place.kill(members[half].process)
        nuke(place, program)
        assert not record.survivors()


def test_nuke_leaves_nobody_when_the_witness_was_down(program: Program, place: Place, tmp_path: Path) -> None:
    with recording(tmp_path) as record:
        place.run(program, record, daemon=True)
        place.kill_daemon()
        # The agent itself dies while nobody looks, and leaves what it leaves.
        agent = place.members(program.name)["agent"].process
        assert agent
        kill_and_wait((agent.pid, agent.started))
        nuke(place, program)
        assert not record.survivors()
        assert not place.marked()


def test_patrol_finds_the_agent_dead_and_ends_the_rest(program: Program, place: Place, tmp_path: Path) -> None:
    with recording(tmp_path) as record:
        place.run(program, record)
        agent = place.members(program.name)["agent"].process
        assert agent
        kill_and_wait((agent.pid, agent.started))
        report = place.witness.patrol()
        assert report.nuked == [f"main/{program.name}"], report
        assert not record.survivors()
        assert place.witness.patrol().zombies == []


def test_a_cgroup_holds_what_nobody_ever_saw(
    program: Program, make_place: Callable[..., Place], tmp_path: Path
) -> None:
    """Both reapers killed before anybody looked, the environment cleared: only the cgroup still knows."""
    place = make_place(settings=SETTINGS.replace("containment: reaper", "containment: auto"))
    with recording(tmp_path) as record:
        spawned = place.run(program, record)
        group = place.witness.find(program.name)
        cgroup = group.run_state.cgroup
        if not cgroup_members(cgroup, group.id.run):
            pytest.skip("no cgroup can be made here")
        members = place.members(program.name)
        for half in ("keeper", "reaper"):
            place.kill(members[half].process)
        nuke(place, program)
        assert not record.survivors()
        assert not Path(cgroup).exists()
        assert spawned.group.run in cgroup
