"""What one question may cost, and the instant at which it must be answered."""

from __future__ import annotations

from dataclasses import dataclass, field

from sidecars.distill.errors import QuestionError, TimeoutSpentError
from witness.clock import Clock, SystemClock


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
