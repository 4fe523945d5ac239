"""Ends of processes: why a member ended, what its exit code asks for, and waiting for it."""

from __future__ import annotations

import math
import os
import select
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from witness.clock import SystemClock
from witness.files import report_of, typed
from witness.process import ProcessId
from witness.process.table import is_alive

# A sidecar's exit codes are a contract (design: "Sidecar exit codes").
ENDED, BAD_CONFIGURATION, LIMITED = 0, 3, 4


class ExitKind(StrEnum):
    """What a sidecar's end means."""

    ENDED = "ended"
    BAD_CONFIGURATION = "bad configuration"
    LIMITED = "limited"
    CRASH = "crash"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended.

    Args:
        code: its exit code, 128 + n after signal n; None where nobody could read it.
        reason: what it said itself, for people.
        hangup: its terminal had been taken away before.
    """

    code: int | None
    reason: str = ""
    hangup: bool = False

    @property
    def kind(self) -> ExitKind:
        if self.code is None:
            return ExitKind.UNKNOWN
        return {
            ENDED: ExitKind.ENDED,
            BAD_CONFIGURATION: ExitKind.BAD_CONFIGURATION,
            LIMITED: ExitKind.LIMITED,
        }.get(self.code, ExitKind.CRASH)

    def describe(self) -> str:
        """In words; empty when nothing is known."""
        if self.code is None:
            return ""
        return f"exit code {self.code}" + (f" ({self.reason})" if self.reason else "")


UNKNOWN_EXIT = Exit(None)


def recorded_exit(run_dir: Path, member: str, process: ProcessId, told: Callable[[str], None] | None = None) -> Exit:
    """The exit that the fork server recorded for a sidecar's process; unknown when it could not.

    The fork server is the parent of every sidecar and the only one to reap it, so a stolen wait can never turn a crash
    into a clean end.

    Args:
        run_dir: the run's folder.
        member: the sidecar's name.
        process: its process.
        told: hears what is wrong with the record, in one line.
    """
    path = run_dir / "exits" / f"{member}.json"
    raw = report_of(path, below=run_dir.parent, told=told)
    try:
        if raw and (typed(raw, "pid", int), typed(raw, "started", int)) == (process.pid, process.started):
            return Exit(typed(raw, "code", int), typed(raw, "reason", str, ""))
    except ValueError as error:
        _tell(told, path, error)
    return UNKNOWN_EXIT


def agent_exit(run_dir: Path, told: Callable[[str], None] | None = None) -> Exit:
    """How the agent ended, as its reaper recorded it; unknown while it runs or when the reaper was killed.

    Args:
        run_dir: the run's folder.
        told: hears what is wrong with the record, in one line.
    """
    path = run_dir / "exit.json"
    raw = report_of(path, below=run_dir.parent, told=told)
    if raw is None:
        return UNKNOWN_EXIT
    try:
        number = typed(raw, "signal", int, 0)
        return Exit(typed(raw, "code", int), f"signal {number}" if number else "", typed(raw, "hangup", bool, False))
    except ValueError as error:
        _tell(told, path, error)
        return UNKNOWN_EXIT


def _tell(told: Callable[[str], None] | None, path: Path, error: ValueError) -> None:
    if told is not None:
        told(f"{path}: {error}")


# Waiting for processes to end: on facts from the kernel, never on a clock alone.

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
