"""Awkward programs, and how a test learns who they are, when they stand, and who of them still lives.

Nobody's word is taken: the programs record their own processes as (pid, start ticks), and who lives is read from the
kernel's table, not through any code of the product.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import Changes

_SOURCE = Path(__file__).with_name("awkward.py")

# Longer than any test may take, short enough that a failed one does no harm.
LIFE = 75.0
# PF_EXITING in the kernel's include/linux/sched.h.
_EXITING = 0x4

Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Program:
    """One kind of awkward process tree.

    Args:
        name: as in ``awkward.py``.
        description: what makes it awkward, for people.
        least: how many processes it has recorded when it stands, at least.
        obeys: whether TERM alone ends all its processes for good.
    """

    name: str
    description: str
    least: int
    obeys: bool = True

    def argv(self, record: Path, life: float = LIFE) -> list[str]:
        """The argument list that starts it.

        Args:
            record: file to which its processes write who they are.
            life: seconds after which every process of it ends by itself.
        """
        return [sys.executable, "-S", "-I", str(_SOURCE), self.name, str(record), str(life)]


PROGRAMS: tuple[Program, ...] = (
    Program("plain", "three children", 4),
    Program("deep", "twenty generations", 20),
    Program("wide", "two hundred children", 201),
    Program("stubborn", "ignores TERM, HUP and INT", 3, obeys=False),
    Program("stubborn-child", "obeys, its children ignore TERM, HUP and INT", 3, obeys=False),
    Program("own-group", "child in its own process group", 3),
    Program("own-session", "child in its own session", 3),
    Program("daemon", "double-forked daemon", 3),
    Program("daemon-bare", "daemon with its environment cleared", 3),
    Program("daemon-renamed", "the same renamed, TERM ignored, parent long gone", 3, obeys=False),
    Program("twins", "two that restart each other, one session", 3, obeys=False),
    Program("twins-apart", "two that restart each other, two sessions", 4, obeys=False),
    Program("chain", "forks itself anew every 50 ms", 2, obeys=False),
    Program("chain-apart", "the same, a new session each time", 2, obeys=False),
    Program("stopped", "children stopped by SIGSTOP", 3, obeys=False),
    Program("nohup", "nohup … & from bash, no job control", 3),
    Program("nohup-jobs", "nohup … & from bash, job control", 3),
    Program("exec-other", "becomes another program", 2),
    Program("late", "starts a child when the nuke has begun", 2, obeys=False),
    Program("late-daemon", "leaves a bare daemon when the nuke has begun", 2, obeys=False),
    Program("phoenix", "answers TERM by forking a copy of itself", 3, obeys=False),
    Program("headless", "daemon whose first thread ended: looks defunct, is alive", 3),
    Program("foster", "orphans adopted by a subreaper within the tree", 4),
    Program("negligent", "never reaps its children", 3),
)

BY_NAME = {program.name: program for program in PROGRAMS}


def alive(identity: Identity) -> bool:
    """Whether that very process lives.

    A defunct one is dead, and so is one whose last thread is on its way out of the kernel, which on a busy machine may
    take a while. One whose first thread alone has ended lives.
    """
    pid, ticks = identity
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    state, flags, threads, started = stat[0], int(stat[6]), int(stat[17]), int(stat[19])
    if started != ticks or state == b"X":
        return False
    return threads > 1 or not (state == b"Z" or flags & _EXITING)


class Record:
    """What one started program tells of itself. ``recording()`` makes one and cleans up behind it."""

    def __init__(self, folder: Path, name: str = "record") -> None:
        self.path = folder / name
        self._fifo = folder / f"{name}.stands"
        os.mkfifo(self._fifo, 0o600)
        self._fd = os.open(self._fifo, os.O_RDONLY | os.O_NONBLOCK)

    def wait_stands(self, timeout: float = 20.0) -> set[Identity]:
        """Wait until the program's tree stands.

        Returns:
            The identities of its processes up to now.

        Raises:
            TimeoutError: it does not stand within ``timeout`` seconds.
        """
        if not select.select([self._fd], [], [], timeout)[0]:
            raise TimeoutError(f"the program did not stand within {timeout} s: {sorted(self.identities())}")
        return self.identities()

    def identities(self) -> set[Identity]:
        """All processes that the program has made so far, alive or not."""
        try:
            lines = self.path.read_text().splitlines()
        except FileNotFoundError:
            return set()
        return {(int(pid), int(ticks)) for pid, ticks in (line.split() for line in lines if line != "stands")}

    def living(self) -> set[Identity]:
        """Those that live now."""
        return {each for each in self.identities() if alive(each)}

    def survivors(self, watch: float = 0.3) -> set[Identity]:
        """Those that live, also those that show up within ``watch`` seconds: what restarts itself does so late."""
        until = time.monotonic() + watch
        with Changes(self.path.parent) as changes:  # each new one of them records itself there
            while not (found := self.living()) and (left := until - time.monotonic()) > 0:
                select.select([changes], [], [], left)
                changes.take()
        return found

    def end(self) -> None:
        """Kill whatever of it still lives, also what forks meanwhile."""
        limit = time.monotonic() + 10
        with Changes(self.path.parent) as changes:
            new = True
            # Long enough for a chain's next link to have recorded itself.
            while (found := self.living()) or new:
                assert time.monotonic() < limit, f"cannot be killed: {found}"
                for number in (signal.SIGSTOP, signal.SIGKILL):
                    for pid, ticks in found:
                        if alive((pid, ticks)):
                            _signal(pid, number)
                new = bool(select.select([changes], [], [], 0.01 if found else 0.1)[0])
                changes.take()
        os.close(self._fd)
        self._fifo.unlink(missing_ok=True)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


@contextmanager
def recording(folder: Path, name: str = "record") -> Iterator[Record]:
    """A record in ``folder``; at the end whatever still lives of the program is killed."""
    record = Record(folder, name)
    try:
        yield record
    finally:
        record.end()


def missing(program: Program) -> str:
    """What this machine lacks for that program, empty when nothing."""
    if not Path("/proc/self/stat").exists():
        return "the awkward programs read /proc"
    if program.name.startswith("nohup") and not shutil.which("bash"):
        return "no bash here"
    return ""
