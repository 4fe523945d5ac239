"""Why a member ended, and what its exit code asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from witness.files import report_of, typed
from witness.process.identity import ProcessId

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
    """The exit that the nursery recorded for a sidecar's process; unknown when it could not.

    The nursery is the parent of every sidecar and the only one to reap it, so a stolen wait can never turn a crash
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
