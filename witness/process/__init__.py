"""Processes of this machine: identity, the table, exits, cgroups."""

from dataclasses import dataclass

# What a process is: a pid and the instant it was created, within one boot.


@dataclass(frozen=True, slots=True, order=True)
class ProcessId:
    """One process, told apart from any later one that is given the same pid.

    Args:
        pid: the kernel's number.
        started: when it was created. On Linux the raw clock ticks since boot (``/proc/PID/stat`` field 22), which no
            change of the date can move; elsewhere psutil's creation time in milliseconds.
    """

    pid: int
    started: int

    @property
    def known(self) -> bool:
        """False where the creation time could not be read; such a process is never signalled by its pid."""
        return self.pid > 1 and self.started > 0
