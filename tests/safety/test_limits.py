"""What one polecat may use of the machine: set, shown, met and told; refused where it cannot be had."""

from __future__ import annotations

import json
import shlex
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.conftest import SETTINGS, Place, make_place, place
from tests.supervise.command import gt
from tests.waiting import until
from witness.errors import DeclarationError, SpawnError, UsageError
from witness.process import limits as limits_module
from witness.process.cgroup import cgroup_members, folder_of, own_cgroup, remove_cgroup
from witness.process.limits import Limits, LimitsUnavailable, make_limit_group, parse_limit, read_use, shown_size
from witness.state.reader import StateReader

__all__ = ["make_place", "place"]
SLEEPER = ["sleep", "600"]


@pytest.fixture
def controllers() -> None:
    """Skips where this machine gives nobody limits: then the refusal is what is tested."""
    run = uuid.uuid4().hex
    try:
        made = make_limit_group(run, Limits(memory_max=1 << 26, pids_max=50, cpu_weight=10))
    except LimitsUnavailable as error:
        pytest.skip(str(error))
    for folder in made.folders.values():
        remove_cgroup(folder, run)


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        ("memory_max", "4G", 4 << 30), ("memory_max", "512MiB", 512 << 20), ("memory_high", 1 << 30, 1 << 30),
        ("memory_max", "1.5g", 3 << 29), ("memory_max", "max", None), ("pids_max", "500", 500), ("pids_max", 20, 20),
        ("cpu_weight", 1, 1), ("cpu_weight", "max", None),
    ],
)  # fmt: skip
def test_a_limit_is_read(name: str, given: object, read: int | None) -> None:
    assert parse_limit(name, given) == read


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("memory_max", "4 elephants"), ("memory_max", "10"), ("memory_max", True), ("memory_max", -5),
        ("memory_max", 4.0), ("memory_max", "9" * 5000), ("memory_high", "1e9G"), ("pids_max", 0), ("pids_max", "²"),
        ("pids_max", "9" * 5000), ("pids_max", True), ("pids_max", [1]), ("cpu_weight", 10_001),
        ("cpu_weight", "a\x1b[2J"),
    ],
)  # fmt: skip
def test_what_is_no_limit_is_refused_in_one_line(name: str, given: object) -> None:
    with pytest.raises(ValueError, match=r"size|least|number|between") as caught:
        parse_limit(name, given)
    assert str(caught.value).isprintable()


def test_sizes_are_shown_short() -> None:
    assert [shown_size(each) for each in (5, 2048, 100 << 20, 3 << 29)] == ["5", "2K", "100M", "1.5G"]


def test_the_agent_is_within_its_limits_and_its_reapers_and_sidecars_are_not(
    controllers: None, make_place: Callable[..., Place]
) -> None:
    town = make_place(settings=SETTINGS + "memory_max: 200M\npids_max: 40\ncpu_weight: 50\n")
    (town.work / "issue.md").write_text("files: [a.py]\n")
    spawned = town.spawn("toast", SLEEPER, daemon=True, sidecars="scope:issue.md")
    group = town.witness.find("toast")
    assert group.run_state.limits == {"memory_max": 200 << 20, "pids_max": 40, "cpu_weight": 50}
    name = folder_of(Path(), group.id.run).name
    members = town.members("toast")
    for member, inside in (("agent", True), ("reaper", False), ("keeper", False), ("scope", False)):
        process = members[member].process
        assert process
        lines = Path(f"/proc/{process.pid}/cgroup").read_text().splitlines()
        held = {line.split(":")[1] for line in lines if name in line and "reapers" not in line}
        assert bool(held) is inside, (member, lines)
    (state,) = StateReader(town.town, town.witness.journal).read().polecats
    assert state.limits
    assert state.limits.pids_max == 40
    assert state.limits.pids == 1
    assert state.limits.memory is not None
    shown = gt(town.work, "polecat", "status", "toast").stdout
    assert [each for each in ("pids_max 1 of 40", "of 200M", "cpu_weight 50") if each not in shown] == []
    row = json.loads(gt(town.work, "polecat", "list", "--json").stdout)[0]
    assert row["limits"]["memory_max"] == 200 << 20
    assert row["limits"]["met"] == ""
    town.witness.nuke(["toast"])
    town.witness.patrol()
    assert not [folder for folder in group.cgroups if Path(folder).exists()]
    assert spawned.group == group.id


@pytest.mark.parametrize("where", ["flags", "molecule", "settings"])
def test_each_place_may_set_them_and_the_nearest_wins(
    controllers: None, make_place: Callable[..., Place], where: str
) -> None:
    town = make_place(settings=SETTINGS + "pids_max: 60\nmemory_high: 300M\n")
    molecule = town.town.root / ".beads" / "formulas" / "mol-small.formula.toml"
    molecule.parent.mkdir(parents=True)
    molecule.write_text('formula = "mol-small"\npids_max = 50\nmemory_max = "100M"\n[[steps]]\nid = "a"\n')
    args = ["polecat", "spawn", "toast", "--agent", "sleep 600", "--no-witness", "--workdir", str(town.work)]
    args += ["--molecule", "mol-small"] if where != "settings" else []
    args += ["--pids-max", "44", "--memory-max", "max"] if where == "flags" else []
    done = gt(town.work, *args)
    assert done.returncode == 0, done.stderr
    assert (
        town.witness.find("toast").run_state.limits
        == {
            "settings": {"pids_max": 60, "memory_high": 300 << 20},
            "molecule": {"pids_max": 50, "memory_high": 300 << 20, "memory_max": 100 << 20},
            "flags": {"pids_max": 44, "memory_high": 300 << 20},
        }[where]
    )


@pytest.mark.parametrize("flag", ["--memory-max=4 elephants", "--pids-max=0", "--cpu-weight=a", "--memory-high=1"])
def test_a_wrong_flag_is_one_line_and_nothing_is_started(place: Place, flag: str) -> None:
    done = gt(place.work, "polecat", "spawn", "toast", flag, "--agent", "sleep 600", "--workdir", str(place.work))
    name = flag.partition("=")[0]
    assert (done.returncode, done.stderr.count("\n"), name in done.stderr) == (2, 1, True), done.stderr
    assert place.sessions() == []
    with pytest.raises(UsageError):
        place.witness.spawn("toast", workdir=place.work, agent="sleep 600", pids_max=0)


def test_a_wrong_limit_of_a_molecule_is_named_with_its_line(place: Place) -> None:
    (place.work / "mol-bad.toml").write_text('formula = "mol-bad"\npids_max = "many"\n[vars.a]\ndefault = ""\n')
    with pytest.raises(DeclarationError, match=r"mol-bad.toml:2"):
        place.witness.spawn("toast", workdir=place.work, molecule=str(place.work / "mol-bad.toml"), agent="sleep 600")


def test_limits_that_cannot_be_had_are_refused_and_nothing_stays(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "own_cgroup", lambda controller="", pid=None: None)
    with pytest.raises(SpawnError, match="pids_max: this machine has no cgroups with pids") as caught:
        place.witness.spawn("toast", workdir=place.work, agent="sleep 600", pids_max=50, witness=False)
    assert "\n" not in str(caught.value)
    assert place.sessions() == []
    assert place.witness.polecats() == []


def test_an_agent_that_cannot_go_into_its_cgroup_does_not_start(
    controllers: None, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = make_limit_group
    from dataclasses import replace

    monkeypatch.setattr(
        "witness.supervise.spawn.make_limit_group",
        lambda run, limits: replace(make(run, limits), join=(str(place.work / "gone"),)),
    )
    with pytest.raises(SpawnError, match="its limits cannot hold: No such file"):
        place.witness.spawn("toast", workdir=place.work, agent="sleep 600", pids_max=50, witness=False)
    assert place.sessions() == []
    assert place.marked() == set()


LEAK = "import time\nheld = []\nfor _ in range(400):\n    held.append(bytearray(b'x') * (1 << 20))\ntime.sleep(600)\n"


def test_a_leak_ends_at_its_limit_and_the_reason_is_told(controllers: None, place: Place) -> None:
    script = f"sleep 0.2; exec {shlex.quote(sys.executable)} -c {shlex.quote(LEAK)}"
    place.witness.spawn(
        "toast", workdir=place.work, agent=["sh", "-c", script], memory_max="40M", pids_max=20, witness=False
    )
    until(lambda: place.witness.patrol() is not None and not place.witness.polecats(), "the end of its agent")
    shown = gt(place.work, "polecat", "status", "toast").stdout
    assert "the kernel ended 1 of its processes at its memory_max" in shown, shown
    assert "signal 9" in shown


def test_a_child_that_leaks_is_told_while_the_agent_lives_on(controllers: None, place: Place) -> None:
    script = f"sleep 0.2; {shlex.quote(sys.executable)} -c {shlex.quote(LEAK)}; exec sleep 600"
    place.witness.spawn("toast", workdir=place.work, agent=["sh", "-c", script], memory_max="40M", witness=False)
    group = place.witness.find("toast")
    until(lambda: read_use(group.run_state.limit_cgroups).oom_kills == 1, "its child's end")
    place.witness.patrol()
    assert [event.kind for event in place.witness.journal.history(group.id.run, 50)].count("limits-met") == 1
    place.witness.patrol()
    assert [event.kind for event in place.witness.journal.history(group.id.run, 50)].count("limits-met") == 1
    assert "the kernel ended 1 of its processes" in gt(place.work, "state").stdout


# A bomb within bounds: it forks as fast as it may, for good, and every one of its processes keeps the processor busy.
BOMB = """
import os, sys
while True:
    try:
        os.fork()
    except OSError:
        pass
"""


def test_a_fork_bomb_meets_its_limit_counts_as_one_and_is_ended(controllers: None, place: Place) -> None:
    script = f"sleep 0.1; exec {shlex.quote(sys.executable)} -c {shlex.quote(BOMB)}"
    place.witness.spawn(
        "bomb", workdir=place.work, agent=["sh", "-c", script], pids_max=50, memory_max="200M", cpu_weight=10,
        witness=False,
    )  # fmt: skip
    group = place.witness.find("bomb")
    until(lambda: read_use(group.run_state.limit_cgroups).forks_refused > 0, "its limit")
    assert (read_use(group.run_state.limit_cgroups).pids or 0) <= 50
    # All of them count as one for the processor: what that is worth to others is measured, and stands in the docs.
    cpu = Path(group.run_state.limit_cgroups["cpu"])
    shares = cpu / "cpu.shares" if (cpu / "cpu.shares").exists() else cpu / "agent" / "cpu.weight"
    assert int(shares.read_text()) in (10, 102)
    assert len(cgroup_members(str(cpu), group.id.run)) > 10
    (nuked,) = place.witness.nuke(["bomb"])
    assert nuked.result
    assert not nuked.result.survivors
    assert place.marked() == set()
    assert "pids_max" in gt(place.work, "polecat", "status", "bomb").stdout


# -- a v2 tree, as systemd delegates it: this machine may have its controllers in v1 hierarchies ---------------------


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a v2 tree, with ourselves in ``slice/ours``."""
    place = tmp_path / "cgroup" / "slice" / "ours"
    place.mkdir(parents=True)
    for folder in (place, place.parent, place.parent.parent):
        (folder / "cgroup.procs").write_text("")
        (folder / "cgroup.subtree_control").write_text("")
    monkeypatch.setattr(limits_module, "own_cgroup", lambda controller="", pid=None: None if controller else place)
    return place


def test_in_a_v2_tree_that_is_delegated_the_agent_gets_a_cgroup_below_the_runs(tree: Path) -> None:
    (tree / "cgroup.subtree_control").write_text("memory pids cpu")
    made = make_limit_group("a1", Limits(memory_high=1 << 29, memory_max=1 << 30, pids_max=50, cpu_weight=10))
    folder = folder_of(tree, "a1")
    assert made.contained == str(folder)
    assert made.join == (str(folder / "agent"),)
    assert made.reapers == str(folder / "reapers")
    assert set(made.folders) == {"memory", "pids", "cpu"}
    found = {each.name: each.read_text() for each in (folder / "agent").iterdir()}
    assert found == {"memory.high": "536870912", "memory.max": "1073741824", "pids.max": "50", "cpu.weight": "10"}
    assert (folder / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"


def test_where_processes_are_in_the_way_the_cgroup_above_serves(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree.parent / "cgroup.subtree_control").write_text("memory pids")
    made = make_limit_group("a1", Limits(pids_max=50))
    assert made.contained == str(folder_of(tree.parent, "a1"))


def test_a_v2_tree_that_is_not_delegated_is_said_in_one_line(tree: Path) -> None:
    with pytest.raises(
        LimitsUnavailable, match=r"memory_max: the controllers memory are not delegated to .*Delegate=yes"
    ):
        make_limit_group("a1", Limits(memory_max=1 << 30))
    assert not folder_of(tree, "a1").exists()


def test_use_of_a_v2_cgroup_is_read(tmp_path: Path) -> None:
    inner = tmp_path / "agent"
    inner.mkdir()
    (inner / "memory.events").write_text("low 0\nhigh 3\nmax 9\noom 1\noom_kill 2\noom_group_kill 0\n")
    (inner / "memory.current").write_text("4096\n")
    (inner / "pids.events").write_text("max 7\n")
    (inner / "pids.current").write_text("3\n")
    use = read_use({"memory": str(tmp_path), "pids": str(tmp_path)})
    assert (use.memory, use.pids, use.oom_kills, use.forks_refused) == (4096, 3, 2, 7)


# -- what is left of runs that are over --------------------------------------------------------------------------------


def test_cgroups_of_ended_runs_are_swept_by_the_patrol_and_the_doctor_and_no_others(
    controllers: None, make_place: Callable[..., Place]
) -> None:
    town = make_place(settings="stop_grace: 1s\nspawn_settle: 50ms\npids_max: 40\n")
    sweeps: tuple[Callable[[], object], ...] = (town.witness.patrol, lambda: gt(town.work, "doctor", "--fix"))
    made = []
    for name in ("one", "two"):
        town.spawn(name, SLEEPER)
        made.append(town.witness.find(name))
        town.witness.nuke([name])
    place = own_cgroup("pids")
    assert place
    strange = folder_of(place, uuid.uuid4().hex)
    strange.mkdir()
    try:
        for group, sweep in zip(made, sweeps, strict=True):
            assert group.cgroups
            assert not any(Path(folder).exists() for folder in group.cgroups)
            # As a Witness leaves it that is killed between the end of the group and this.
            for folder in group.cgroups:
                Path(folder).mkdir()
            town.witness.journal.groups.change(
                group.id.run, cgroup=group.run_state.cgroup, limit_cgroups=group.run_state.limit_cgroups
            )
            sweep()
            assert not any(Path(folder).exists() for folder in group.cgroups)
            left = town.witness.journal.groups.get(group.id.run)
            assert left
            assert left.cgroups == ()
        assert strange.exists(), "one of no recorded run is somebody's"
    finally:
        strange.rmdir()
