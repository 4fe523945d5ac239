"""The lookers of a town: one process for each work tree in which sidecars observe an agent.

They are forked beside the sidecars, serve every run whose agent works in their tree, and end with the last of these, or
with the process that forked them: nobody else needs to know of them.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

from witness.events.tree_files import top_level

# One that dies so soon, so often, would die for ever: calls are then recorded without what they did.
_SOON, _OFTEN = 5.0, 3


@dataclass(slots=True)
class _Looker:
    pid: int
    orders: int
    began: float
    runs: dict[str, str] = field(default_factory=dict)
    quick_deaths: int = 0


class LookerPool:
    """Starts and ends lookers.

    Args:
        become: turns a forked child into the looker of a tree that reads its orders from a descriptor.
    """

    def __init__(self, become: Callable[[str, int], NoReturn]) -> None:
        self._become = become
        self._lookers: dict[str, _Looker] = {}

    def add(self, spool: str, workdir: str) -> None:
        """From now on somebody reads this run's spool.

        Raises:
            OSError: no process can be made.
        """
        root = top_level(workdir)
        looker = self._lookers.get(root)
        if looker is None:
            looker = self._lookers[root] = self._fork(root)
        if spool not in looker.runs:
            looker.runs[spool] = workdir
            self._order(looker, {"add": spool, "workdir": workdir})

    def drop(self, spool: str) -> None:
        """Nobody reads this run's spool any longer."""
        for root, looker in list(self._lookers.items()):
            if looker.runs.pop(spool, None) is None:
                continue
            if looker.runs:
                self._order(looker, {"drop": spool})
            else:
                del self._lookers[root]
                os.close(looker.orders)

    def reaped(self, pid: int) -> bool:
        """Whether a child that has ended was a looker; one that is still needed is replaced."""
        root = next((root for root, looker in self._lookers.items() if looker.pid == pid), None)
        if root is None:
            return False
        dead = self._lookers.pop(root)
        os.close(dead.orders)
        quick = dead.quick_deaths + 1 if time.monotonic() - dead.began < _SOON else 0
        if quick >= _OFTEN:
            sys.stderr.write(f"{root}: effects are not looked at: the looker has ended {quick} times at once\n")
            return True
        with suppress(OSError):
            looker = self._lookers[root] = self._fork(root)
            looker.runs, looker.quick_deaths = dead.runs, quick
            for spool, workdir in looker.runs.items():
                self._order(looker, {"add": spool, "workdir": workdir})
        return True

    def close(self) -> None:
        """End them all, and wait until they have ended."""
        for looker in self._lookers.values():
            os.close(looker.orders)
            with suppress(OSError):
                os.kill(looker.pid, signal.SIGKILL)
                os.waitpid(looker.pid, 0)
        self._lookers.clear()

    def _fork(self, root: str) -> _Looker:
        read_end, write_end = os.pipe2(os.O_CLOEXEC)
        try:
            pid = os.fork()
        except OSError:
            os.close(read_end)
            os.close(write_end)
            raise
        if pid == 0:
            os.close(write_end)
            self._become(root, read_end)
        os.close(read_end)
        return _Looker(pid, write_end, time.monotonic())

    @staticmethod
    def _order(looker: _Looker, order: dict[str, str]) -> None:
        # One that is dead is about to be reaped, and its successor told everything.
        with suppress(OSError):
            os.write(looker.orders, json.dumps(order).encode() + b"\n")
