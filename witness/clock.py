"""The only reader of time.

Ages are counted on the monotonic clock, which stands still while the machine sleeps and does not jump when somebody
sets the date; the wall clock is for people and for Gas Town's files. A monotonic stamp means something only within one
boot, so it is stored beside the boot's id.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """Where everybody else gets the time from."""

    def wall(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed instant of this boot; comparable between processes."""
        ...

    @property
    def boot(self) -> str:
        """An id that changes with every boot."""
        ...


def _read_boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        # Elsewhere the boot is named by the second at which the monotonic clock began; rounding hides drift.
        import uuid

        return str(uuid.uuid5(uuid.NAMESPACE_OID, str(round((time.time() - time.monotonic()) / 60))))


class SystemClock:
    """The machine's clocks."""

    def __init__(self) -> None:
        self._boot = _read_boot_id()

    def wall(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    @property
    def boot(self) -> str:
        return self._boot


@dataclass
class ManualClock:
    """A clock that moves only when told to: for tests and for replaying recorded sessions at full speed."""

    now: float = 1_000.0
    date: float = 1_800_000_000.0
    boot: str = field(default="boot-1")

    def wall(self) -> float:
        return self.date

    def monotonic(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass on both clocks."""
        self.now += seconds
        self.date += seconds
