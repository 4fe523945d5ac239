"""One question on its way through a backend: what it may cost, until when, and over which texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sidecars.distill.errors import QuestionError, TimeoutSpentError
from witness.clock import Clock, SystemClock

if TYPE_CHECKING:  # the texts keep to the limits that stand here
    from sidecars.distill.text_pool import TextPool


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one question.

    Args:
        max_output_chars: longest printed answer with its evidence, in characters.
        max_steps: most requests to a model, the last answer included.
        budget_usd: most dollars; 0 means none may be spent.
        timeout: seconds for everything, the opening of the artifacts included.
        model: the model's id.
    """

    max_output_chars: int = 4000
    max_steps: int = 12
    budget_usd: float = 0.25
    timeout: float = 120.0
    model: str = "claude-haiku-5-5"

    def __post_init__(self) -> None:
        for name, least in (("max_output_chars", 200), ("max_steps", 1), ("budget_usd", 0), ("timeout", 0.01)):
            value = getattr(self, name)
            if not value >= least:  # also refuses nan
                raise QuestionError(f"--{name.replace('_', '-')} must be at least {least}, not {value}")


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant on the monotonic clock.

    Args:
        seconds: how far away it was at the start.
        clock: where the time comes from.
    """

    seconds: float
    clock: Clock = field(default_factory=SystemClock)
    started: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "started", self.clock.monotonic())

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return self.clock.monotonic() - self.started

    @property
    def left(self) -> float:
        """Seconds that remain, never negative."""
        return max(0.0, self.seconds - self.spent)

    @property
    def passed(self) -> bool:
        return self.left <= 0

    def check(self) -> None:
        """Return while there is time.

        Raises:
            TimeoutSpentError: there is none.
        """
        if self.passed:
            raise TimeoutSpentError(self.seconds)


# One question on its way through a backend.

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What a backend is given.

    Args:
        shelf: the artifacts, and until when they may be read.
        question: what is asked.
        limits: the bounds.
        room: how many characters the whole answer may have in its JSON form.
        progress: told what is being done, for people.
    """

    shelf: TextPool
    question: str
    limits: Limits
    room: int
    progress: Progress
