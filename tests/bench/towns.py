"""A scratch town with its Witness, for measuring; everything that it started is ended with it."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from tests.programs import alive
from witness import Town, Witness
from witness.journal import Member, MemberKind, MemberState
from witness.launch import town_witness
from witness.launch.sidecar_pool import SidecarPool
from witness.process import ProcessId
from witness.process.table import Markers, read_table
from witness.trust import OWN_FOLDER, shipped_types

# What a person would declare; a checkout that lacks one of them measures the same number of another.
_USUAL = ("specs:spec.md", "tools", "scope", "conventions")
# Without a cgroup, which not everybody may make. Crashes are forgotten at once, so that each of many respawns is a
# first one.
_SETTINGS = "containment: reaper\nstop_grace: 1s\nspawn_settle: 0s\nintensity_window: 1s\nmember_limit: 5000\n"


class ScratchTown:
    """One town; a context manager."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="gtb-"))
        self.town = Town.init(self._root / "town")
        (self.town.root / "settings").mkdir()
        (self.town.root / "settings" / "witness.yaml").write_text(_SETTINGS)
        self.work = self.town.root / "work"
        self.work.mkdir()
        (self.work / "spec.md").write_text("# API\n\nEvery path begins with /v2.\n")
        self.witness = Witness(self.town)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        processes = [self.daemon, self.fork_server]
        processes += [member.process for _, members in self.witness.polecats() for member in members]
        for process in processes:
            if process:
                self._end(process)
        runs = {folder.name for folder in (self.town.runtime / "runs").glob("*")}
        for process, marker in Markers().read(read_table()).items():
            if marker.rpartition("/")[2] in runs:
                self._end(process)
        self.witness.close()
        subprocess.run(["tmux", "-L", self.town.socket, "kill-server"], capture_output=True, check=False)
        shutil.rmtree(self._root, ignore_errors=True)

    @staticmethod
    def _end(process: ProcessId) -> None:
        try:
            handle = os.pidfd_open(process.pid)
        except ProcessLookupError:
            return
        try:
            if alive((process.pid, process.started)):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                select.select([handle], [], [], 5)
        finally:
            os.close(handle)

    @property
    def daemon(self) -> ProcessId | None:
        """The running Witness."""
        return town_witness.witness_process(self.town)

    @property
    def fork_server(self) -> ProcessId | None:
        """The process that forks sidecars."""
        return SidecarPool(self.town.runtime, "").process()

    def four_sidecars(self) -> str:
        """A spec of four sidecars: the usual ones, or as many copies of one."""
        shipped = shipped_types()
        if all((shipped / each.partition(":")[0]).is_dir() for each in _USUAL):
            return ",".join(_USUAL)
        names = [f"copy{number}" for number in range(4)]
        for name in names:
            shutil.copytree(shipped / "scope", self.town.root / OWN_FOLDER / name, dirs_exist_ok=True)
        return ",".join(names)

    def sidecars(self) -> list[Member]:
        """All sidecars that run, in all groups."""
        return [
            member
            for _, members in self.witness.polecats()
            for member in members
            if member.kind is MemberKind.SIDECAR and member.state is MemberState.RUNNING and member.process
        ]

    def wait_running(self, count: int, since: float, seconds: float = 30.0) -> list[Member]:
        """Wait until so many sidecars observe, all of them since that instant.

        Raises:
            TimeoutError: they do not.
        """
        for _ in range(int(seconds / 0.005)):
            found = [member for member in self.sidecars() if member.since >= since]
            if len(found) >= count:
                return found
            select.select([], [], [], 0.005)
        states = [(each.name, each.state, each.note) for _, members in self.witness.polecats() for each in members]
        raise TimeoutError(f"{len(found)} of {count} sidecars observe: {states[:12]}")
