"""Why a member ended, and what its exit code asks for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

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


def recorded_exit(run_dir: Path, member: str, process: ProcessId) -> Exit:
    """The exit that the nursery recorded for a sidecar's process; unknown when it could not.

    The nursery is the parent of every sidecar and the only one to reap it, so a stolen wait can never turn a crash
    into a clean end.
    """
    try:
        raw = json.loads((run_dir / "exits" / f"{member}.json").read_text())
        if [raw["pid"], raw["started"]] == [process.pid, process.started]:
            return Exit(int(raw["code"]), str(raw.get("reason", "")))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return UNKNOWN_EXIT


def agent_exit(run_dir: Path) -> Exit:
    """How the agent ended, as its reaper recorded it; unknown while it runs or when the reaper was killed."""
    try:
        raw = json.loads((run_dir / "exit.json").read_text())
        reason = f"signal {raw['signal']}" if raw.get("signal") else ""
        return Exit(int(raw["code"]), reason, bool(raw.get("hangup")))
    except (OSError, ValueError, KeyError, TypeError):
        return UNKNOWN_EXIT
