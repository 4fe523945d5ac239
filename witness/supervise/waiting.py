"""Waiting for processes to end: on facts from the kernel, never on a clock alone."""

from __future__ import annotations

import os
import select
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from witness.clock import SystemClock
from witness.identity import ProcessId
from witness.supervise.proctree import is_alive

# Where the kernel offers no handle to wait on, or we may open no more of them.
_POLL_SECONDS = 0.01
_CLOCK = SystemClock()


@contextmanager
def exit_handle(process: ProcessId) -> Iterator[int | None]:
    """A descriptor that turns readable when the process ends; None where there is none to be had."""
    handle = open_exit_handle(process)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def open_exit_handle(process: ProcessId) -> int | None:
    """Like ``exit_handle``, for a caller that closes it by itself; None also for a process that is gone."""
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


def wait_gone(processes: Iterable[ProcessId], seconds: float) -> set[ProcessId]:
    """Wait until all of them have ended, at most so long.

    Returns:
        Those that still live.
    """
    living = {process for process in processes if is_alive(process)}
    deadline = _CLOCK.monotonic() + seconds
    handles: dict[int, ProcessId] = {}
    poller = select.poll()
    try:
        for process in living:
            if (handle := open_exit_handle(process)) is not None:
                handles[handle] = process
                poller.register(handle, select.POLLIN)
        while living:
            remaining = deadline - _CLOCK.monotonic()
            if remaining <= 0:
                break
            unwatched = len(living) > len(handles)
            ended = poller.poll(1000 * (min(remaining, _POLL_SECONDS) if unwatched else remaining))
            for handle, _ in ended:
                living.discard(handles.pop(handle))
                poller.unregister(handle)
                os.close(handle)
            if unwatched:
                watched = set(handles.values())
                living = {process for process in living if process in watched or is_alive(process)}
    finally:
        for handle in handles:
            os.close(handle)
    return living
