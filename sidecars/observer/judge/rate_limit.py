"""How often a model may be asked: an even pace for one sidecar, a rest for the whole town when the API is in trouble.

Both are read from the journal, so that neither a respawn nor a neighbour starts anew.
"""

from __future__ import annotations

import random

from witness.clock import Clock
from witness.journal import Journal, ModelRest

# A quiet sidecar may ask so many times in a row before the pace counts.
BURST = 4
_HOUR = 3600.0
_FIRST_REST, _LONGEST_REST = 15.0, 600.0


class Pace:
    """Says how long the next call of the model has to wait.

    Args:
        journal: the town's.
        run, sidecar: who asks.
        calls_per_hour: the pace.
        clock: where the time comes from.
    """

    def __init__(self, journal: Journal, run: str, sidecar: str, calls_per_hour: int, clock: Clock) -> None:
        self._journal, self._run, self._sidecar, self._clock = journal, run, sidecar, clock
        self._burst = min(BURST, calls_per_hour)
        # The burst is part of the hour's calls, not on top of them.
        self._per_second = max(1, calls_per_hour - self._burst) / _HOUR

    def wait(self) -> float:
        """Seconds until a call may be made, 0 for now."""
        now = self._clock.wall()
        return max(self._turn(now), self._rest(now))

    def _turn(self, now: float) -> float:
        """A bucket that fills evenly; each call of the last hour has taken one out."""
        level, since = float(self._burst), now - _HOUR
        for called in self._journal.decisions.call_times(self._run, self._sidecar, since):
            level = min(self._burst, level + (called - since) * self._per_second) - 1
            since = called
        level = min(self._burst, level + (now - since) * self._per_second)
        # Rounding must not leave a wait too short to bring anybody nearer to its end.
        return 0.0 if level >= 1 - 1e-6 else (1 - level) / self._per_second

    def _rest(self, now: float) -> float:
        return max(0.0, self._journal.town.model_rest.until - now)

    def failed(self, asked: float = 0.0) -> None:
        """A call failed in a way that passes: let everybody rest, longer each time.

        Args:
            asked: seconds that the server asked for.
        """
        rest = min(_LONGEST_REST, max(asked, self._journal.town.model_rest.seconds * 2 or _FIRST_REST))
        # Not all at once: each town's sidecars come back at a time of their own.
        until = self._clock.wall() + rest * random.uniform(1.0, 1.25)  # noqa: S311 - jitter, no secret
        self._journal.town.model_rest = ModelRest(until, rest)

    def succeeded(self) -> None:
        """A call was answered: the trouble is over."""
        if self._journal.town.model_rest != ModelRest():
            self._journal.town.model_rest = ModelRest()
