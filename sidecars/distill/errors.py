"""How a distillation can end without an answer; each has its own exit code, so that a program can act on it."""

from __future__ import annotations

from enum import IntEnum

from witness.errors import UsageError, WitnessError


class Exit(IntEnum):
    """What ``gt distill`` and ``gt ask`` end with. 0 and 2 are those of every command."""

    ANSWERED = 0
    FAILED = 1
    USAGE = 2
    UNVERIFIED = 3
    UNREADABLE = 4
    NO_BACKEND = 5
    BUDGET = 6
    TIMEOUT = 7
    UNPARSABLE = 8


class QuestionError(UsageError):
    """The question or a limit cannot be meant."""


class UnreadableError(WitnessError):
    """An artifact cannot be opened, or must not be."""

    exit_code = Exit.UNREADABLE

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason}")


class NoBackendError(WitnessError):
    """The backend that was asked for cannot run here: no key, no client, refused by the service."""

    exit_code = Exit.NO_BACKEND


class BudgetError(WitnessError):
    """The money was spent before there was an answer."""

    exit_code = Exit.BUDGET


class TimeoutSpentError(WitnessError):
    """The time was up before there was an answer."""

    exit_code = Exit.TIMEOUT

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"no answer within {seconds:g} s: give --timeout more, or ask a narrower question")


class UnparsableError(WitnessError):
    """The model answered twice in a form that holds no answer."""

    exit_code = Exit.UNPARSABLE
