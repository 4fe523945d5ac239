"""gt-witness in the same shape as its peers."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Self

from tests.bench.peers import GRACE, Peer, Services
from tests.bench.towns import ScratchTown
from witness.journal import MemberKind


class GtWitness(Peer):
    """Services are polecats when they are to be stopped, and sidecars of one polecat each four when they restart."""

    name = "gt-witness"
    how = "nuke, as a library call"

    def __init__(self, folder: Path, services: Services, *, restart: bool = False) -> None:
        super().__init__(folder, services, restart=restart)
        self._order = list(services)

    @classmethod
    def missing(cls) -> str:
        return "" if shutil.which("tmux") else "no tmux"

    def __enter__(self) -> Self:
        assert GRACE == 1.0, "the town's settings say the same grace as the peers have"
        self._town = ScratchTown()
        self._specs = self._town.four_sidecars()
        return self

    def __exit__(self, *_: object) -> None:
        self._town.__exit__()

    def up(self, service: str) -> None:
        if not self.restart:
            self._spawn(service, shlex.join(self.services[service]), "")
        elif (place := self._order.index(service)) % 4 == 0:
            # Four sidecars each, as people declare them.
            self._spawn(service, "sleep 300", self._specs)
            self._town.wait_running(min(place + 4, 4 * (place // 4 + 1)), 0.0)

    def _spawn(self, name: str, agent: str, specs: str) -> None:
        self._town.witness.spawn(name, workdir=self._town.work, agent=agent, sidecars=specs, witness=self.restart)

    def down(self, service: str) -> None:
        self._town.witness.nuke([service])

    def pid(self, service: str) -> int:
        self._town.wait_running(4 * ((len(self._order) + 3) // 4), 0.0)
        group = self._town.witness.find(service)
        members = self._town.witness.journal.members.of(group.id.run)
        return next(m.process.pid for m in members if m.kind is MemberKind.SIDECAR and m.process)

    def own(self) -> list[int]:
        return [process.pid for process in (self._town.daemon, self._town.fork_server) if process]
