"""One thing that the doctor found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """How bad it is. Only a fault makes the doctor's exit code 1."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, and what to do about it.

    Args:
        check: which check found it.
        level: how bad it is.
        message: one line.
        fix: what a person can do; empty when nothing needs doing.
        mend: does the fix itself where that is safe, and says what it did; None where it is not.
    """

    check: str
    level: Level
    message: str
    fix: str = ""
    mend: Callable[[], str] | None = None

    def as_json(self) -> dict[str, Any]:
        """The form that ``gt doctor --json`` prints."""
        return {
            "check": self.check,
            "level": str(self.level),
            "message": self.message,
            "fix": self.fix,
            "safe": self.mend is not None,
        }


def ok(check: str, message: str) -> Finding:
    """Nothing is wrong."""
    return Finding(check, Level.OK, message)


def note(check: str, message: str, fix: str = "") -> Finding:
    """Worth knowing."""
    return Finding(check, Level.NOTE, message, fix)


def warning(check: str, message: str, fix: str, mend: Callable[[], str] | None = None) -> Finding:
    """Works, but not as it should."""
    return Finding(check, Level.WARNING, message, fix, mend)


def fault(check: str, message: str, fix: str, mend: Callable[[], str] | None = None) -> Finding:
    """Does not work until it is mended."""
    return Finding(check, Level.FAULT, message, fix, mend)
