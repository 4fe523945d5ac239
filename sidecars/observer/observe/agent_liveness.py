"""Whether the observed agent is still alive: a sidecar ends with its polecat, whoever forgot to tell it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from witness.process import ProcessId


class AgentLife:
    """Watches one process; a context manager.

    Where the kernel has pidfds (Linux), its end wakes a selector at once; elsewhere ``ended`` is asked at every look.
    """

    def __init__(self, process: ProcessId) -> None:
        self._process = process
        self._pidfd = -1

    def __enter__(self) -> Self:
        if hasattr(os, "pidfd_open"):
            with suppress(OSError):
                self._pidfd = os.pidfd_open(self._process.pid)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def fileno(self) -> int:
        """A descriptor that becomes readable when the agent ends, -1 where there is none."""
        return self._pidfd

    @property
    def ended(self) -> bool:
        """Whether the agent is gone, or its pid belongs to somebody else by now. A defunct process is gone."""
        if Path("/proc/self/stat").exists():
            return _linux_start(self._process.pid) != self._process.started
        return _portable_start(self._process.pid) != self._process.started


def _linux_start(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return 0
    # The second field is the program's name in parentheses and may hold anything, parentheses and blanks too.
    fields = text.rpartition(")")[2].split()
    # One whose first thread alone has ended also shows a Z, and lives on in the others.
    return 0 if fields[0] == "X" or (fields[0] == "Z" and int(fields[17]) <= 1) else int(fields[19])


def _portable_start(pid: int) -> int:
    import psutil

    try:
        process = psutil.Process(pid)
        return 0 if process.status() == psutil.STATUS_ZOMBIE else int(process.create_time() * 1000)
    except psutil.Error:
        return 0
