"""What is started from inside of a polecat for others is theirs: it outlives that polecat."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.programs import Identity, alive
from tests.real.conftest import Place
from witness.launch import town_witness
from witness.process import ProcessId
from witness.process.table import read_table

pytestmark = pytest.mark.real

SLEEP = ["sleep", "70"]
BARE = ["env", "-i", f"PATH={os.environ['PATH']}"]


def spawn_from_inside(outer: Place, inner: Place, wrapper: list[str], tmp_path: Path) -> None:
    """A polecat of ``outer`` whose agent spawns one of ``inner``, and rests."""
    done = tmp_path / "done"
    os.mkfifo(done)
    gt = [*wrapper, sys.executable, "-m", "witness.cli", "polecat", "spawn", "inner", "--workdir", str(inner.work)]
    command = shlex.join([*gt, "--agent", shlex.join(SLEEP), "--sidecars", "tools"])
    script = f"cd {shlex.quote(str(inner.town.root))}; {command} >said 2>&1; echo $? >{shlex.quote(str(done))}; read on"
    outer.spawn("outer", ["sh", "-c", script])
    assert done.read_text() == "0\n", (inner.town.root / "said").read_text()


def stands_for(place: Place, name: str) -> dict[str, Identity]:
    """All that a polecat lives by: its processes, its Witness, its fork server, its tmux server."""
    members = {key: member.process for key, member in place.members(name).items()}
    reaper = members["reaper"]
    assert reaper
    table = read_table()
    found = members | {
        "witness": town_witness.witness_process(place.town),
        "fork_server": place.fork_server(),
        "tmux": table[table[reaper.pid].parent].process,
    }
    assert all(found.values()), found
    return {key: (each.pid, each.started) for key, each in found.items() if isinstance(each, ProcessId)}


@pytest.mark.parametrize("wrapper", [[], BARE], ids=["as the agent calls it", "with a bare environment"])
@pytest.mark.parametrize("towns", ["one town", "two towns"])
def test_a_polecat_that_is_spawned_from_inside_of_another_outlives_it(
    make_place: Callable[..., Place], tmp_path: Path, towns: str, wrapper: list[str]
) -> None:
    outer = make_place("outer #S %H 'town'")
    inner = outer if towns == "one town" else make_place("inner #S %H 'town'")
    spawn_from_inside(outer, inner, wrapper, tmp_path)
    stands = stands_for(inner, "inner")
    [nuked] = outer.witness.nuke(["outer"])
    assert nuked.result
    assert nuked.result.survivors == ()
    assert {key for key, each in stands.items() if not alive(each)} == set()
    assert inner.witness.patrol().zombies == []
    assert inner.sessions() == ["gt-inner"]
