"""Readings: time, memory and processor time of processes, taken from the kernel."""

from __future__ import annotations

import os
import select
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.programs import Identity, alive


def milliseconds(seconds: Iterable[float]) -> float | None:
    """The median of some spans, in milliseconds; None when there are none."""
    found = list(seconds)
    return statistics.median(found) * 1000 if found else None


def pss(pids: Iterable[int]) -> float:
    """MiB of memory that these processes hold, shared pages counted by share (``smaps_rollup``)."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def processor_seconds(pids: Iterable[int]) -> float:
    """Seconds that these processes have been on a processor, to the nanosecond (``schedstat``)."""
    total = 0
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


def share_of_core(pids: list[int], seconds: float) -> float:
    """Percent of one core that these processes use over the next ``seconds``."""
    before, began = processor_seconds(pids), time.monotonic()
    select.select([], [], [], seconds)
    return 100 * (processor_seconds(pids) - before) / (time.monotonic() - began)


def children(pid: int) -> list[int]:
    """The children of a process, by all its threads."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    except FileNotFoundError:
        pass
    return found


def descendants(pid: int) -> list[int]:
    """Children, their children and so on."""
    found = children(pid)
    for child in found:
        found += descendants(child)
    return found


def identity(pid: int) -> Identity:
    """(pid, start ticks) of a process that exists."""
    return pid, int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def gone_after(identities: Iterable[Identity], stop: Callable[[], object], patience: float = 1.0) -> float | None:
    """Seconds from calling ``stop`` until it has returned and all are gone.

    Args:
        identities: the processes.
        stop: what ends them.
        patience: how long after its return they may still take.

    Returns:
        None when some live on.
    """
    handles = {os.pidfd_open(pid) for pid, ticks in identities if alive((pid, ticks))}
    try:
        began = time.monotonic()
        stop()
        returned = time.monotonic()
        left = set(handles)
        poller = select.poll()
        for handle in left:
            poller.register(handle, select.POLLIN)
        while left:
            ready = poller.poll(max(0.0, returned + patience - time.monotonic()) * 1000)
            if not ready:
                return None
            for handle, _ in ready:
                poller.unregister(handle)
                left.discard(handle)
        return time.monotonic() - began
    finally:
        for handle in handles:
            os.close(handle)


def replaced_after(parent: int, old: int, kill: Callable[[], object], patience: float = 10.0) -> float | None:
    """Seconds from the death of a child until its parent has another one in its place.

    The kernel tells nobody of a birth, so the parent's list of children is read without a pause; that costs at most the
    time of one reading.

    Args:
        parent: who will start the new one.
        old: the child that is killed.
        kill: how.
        patience: seconds after which None is returned.
    """
    before = set(children(parent))
    began = time.monotonic()
    kill()
    while time.monotonic() - began < patience:
        if set(children(parent)) - before:
            return time.monotonic() - began
    return None
