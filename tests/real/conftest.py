"""Towns with real tmux, real polecats and awkward agents, each ended by its fixture."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.programs import Identity, Program, Record, alive
from witness import Town, Witness
from witness.journal import Member
from witness.launch import town_witness
from witness.launch.sidecar_pool import SidecarPool
from witness.process import ProcessId
from witness.process.cgroup import remove_cgroup
from witness.process.table import Markers, read_table
from witness.supervise.spawn import SpawnResult

# Without a cgroup, which would hide what the other nets let through.
SETTINGS = "stop_grace: 1s\nspawn_settle: 50ms\ncontainment: reaper\n"


class Place:
    """One town with its Witness as a library.

    Args:
        root: where it is made.
        settings: text of its ``settings/witness.yaml``.
    """

    def __init__(self, root: Path, settings: str = SETTINGS) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.town = Town.init(root)
        (root / "settings").mkdir(exist_ok=True)
        (root / "settings" / "witness.yaml").write_text(settings)
        self.work = root / "work"
        self.work.mkdir(exist_ok=True)
        self.witness = Witness(self.town)

    def spawn(self, name: str, argv: list[str], *, daemon: bool = False, sidecars: str = "") -> SpawnResult:
        """Spawn a polecat whose agent is ``argv``; ``daemon`` starts the town's Witness too."""
        return self.witness.spawn(name, workdir=self.work, agent=shlex.join(argv), sidecars=sidecars, witness=daemon)

    def run(self, program: Program, record: Record, *, daemon: bool = False) -> SpawnResult:
        """Spawn an awkward program as a polecat of the same name, and wait until its tree stands."""
        spawned = self.spawn(program.name, program.argv(record.path), daemon=daemon)
        record.wait_stands()
        return spawned

    def members(self, name: str) -> dict[str, Member]:
        """The recorded members of the newest run of that name."""
        group = self.witness.find(name, ended=True)
        return {member.name: member for member in self.witness.journal.members.of(group.id.run)}

    def kill(self, process: ProcessId | None) -> None:
        """SIGKILL, and wait for the end."""
        assert process
        kill_and_wait((process.pid, process.started))

    def fork_server(self) -> ProcessId | None:
        """The town's fork server, None when none runs."""
        return SidecarPool(self.town.runtime, "").process()

    def kill_daemon(self) -> None:
        """End the Witness as a crash would."""
        process = town_witness.witness_process(self.town)
        assert process, "no Witness runs"
        self.kill(process)

    def marked(self) -> set[Identity]:
        """Every living process with the marker of a run of this town."""
        runs = {folder.name for folder in (self.town.runtime / "runs").glob("*")}
        found = Markers().read(read_table())
        return {(each.pid, each.started) for each, marker in found.items() if marker.rpartition("/")[2] in runs}

    def sessions(self) -> list[str]:
        """The names of the tmux sessions on the town's socket."""
        done = subprocess.run(
            ["tmux", "-L", self.town.socket, "list-sessions", "-F", "#{session_name}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout.split()

    def close(self) -> None:
        """End everything that this town has started."""
        helpers = [town_witness.witness_process(self.town), self.fork_server()]
        members = [member.process for _, members in self.witness.polecats() for member in members]
        for process in (*helpers, *members):
            if process:
                kill_and_wait((process.pid, process.started))
        for identity in self.marked():
            kill_and_wait(identity)
        for group, _ in self.witness.polecats():
            for folder in group.cgroups:
                remove_cgroup(folder, group.id.run)
        self.witness.close()
        subprocess.run(["tmux", "-L", self.town.socket, "kill-server"], capture_output=True, check=False)


def kill_and_wait(identity: Identity) -> None:
    """SIGKILL to exactly that process, and wait until it is gone."""
    try:
        handle = os.pidfd_open(identity[0])
    except ProcessLookupError:
        return
    try:
        if alive(identity):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            assert select.select([handle], [], [], 10)[0]
    finally:
        os.close(handle)


@pytest.fixture
def make_place(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    """Makes towns; ends what they started."""
    made: list[Place] = []

    def make(name: str = "town", settings: str = SETTINGS) -> Place:
        place = Place(tmp_path / name, settings)
        made.append(place)
        return place

    yield make
    for place in made:
        place.close()


@pytest.fixture
def place(make_place: Callable[..., Place]) -> Place:
    """One town."""
    return make_place()
