"""Waiting for processes to end: on facts from the kernel, never on a clock alone."""

from __future__ import annotations

import math
import os
import select
from collections.abc import Iterable
from typing import Self

from witness.clock import SystemClock
from witness.process.identity import ProcessId
from witness.process.table import is_alive

# Where the kernel offers no handle to wait on, or we may open no more of them.
_POLL_SECONDS = 0.01
_CLOCK = SystemClock()


def open_exit_handle(process: ProcessId) -> int | None:
    """A descriptor that turns readable when the process ends; None where there is none to be had, or it is gone."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return None
    if is_alive(process):
        return handle
    os.close(handle)
    return None


class ExitWatch:
    """Many processes watched at once; used as a context manager, so that no handle stays open."""

    def __init__(self) -> None:
        self._poller = select.poll()
        self._handles: dict[int, ProcessId] = {}
        self._unwatched: set[ProcessId] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            os.close(handle)

    def add(self, process: ProcessId) -> bool:
        """Watch one more process; False when it is gone already."""
        handle = open_exit_handle(process)
        if handle is not None:
            self._handles[handle] = process
            self._poller.register(handle, select.POLLIN)
            return True
        if is_alive(process):
            self._unwatched.add(process)
            return True
        return False

    def wait(self, seconds: float) -> set[ProcessId]:
        """Wait until at least one of them has ended, at most so long; returns those that have."""
        deadline = _CLOCK.monotonic() + seconds
        while True:
            remaining = max(deadline - _CLOCK.monotonic(), 0.0)
            slot = min(remaining, _POLL_SECONDS) if self._unwatched else remaining
            ended = {self._drop(handle) for handle, _ in self._poller.poll(math.ceil(1000 * slot))}
            gone = {process for process in self._unwatched if not is_alive(process)}
            self._unwatched -= gone
            if ended or gone or remaining == 0:
                return ended | gone

    def _drop(self, handle: int) -> ProcessId:
        self._poller.unregister(handle)
        os.close(handle)
        return self._handles.pop(handle)


def wait_gone(processes: Iterable[ProcessId], seconds: float) -> set[ProcessId]:
    """Wait until all of them have ended, at most so long; returns those that still live."""
    deadline = _CLOCK.monotonic() + seconds
    with ExitWatch() as watch:
        living = {process for process in processes if watch.add(process)}
        while living and (remaining := deadline - _CLOCK.monotonic()) > 0:
            living -= watch.wait(remaining)
    return living
