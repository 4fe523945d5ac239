"""Asking a slow judge without waiting for it, and how often it may be asked."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress

from sidecars.observer.judge.verdict import Judge, Verdict
from witness.clock import Clock
from witness.journal import Journal, ModelRest
from witness.judging.observation import Observation


class Asking:
    """One question at a time to a judge, in a thread of its own; it touches nothing but the judge.

    Args:
        judge: who is asked.
        aside: whether the caller goes on meanwhile; a replay awaits each answer.
    """

    def __init__(self, judge: Judge, *, aside: bool) -> None:
        self._judge = judge
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="judge") if aside else None
        self._answer: Future[list[Verdict]] | None = None
        self._ends = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) if aside else None
        #: What is being judged just now.
        self.asked: Sequence[Observation] = ()

    def fileno(self) -> int:
        """Readable once the answer is there; -1 when every answer is awaited."""
        return self._ends[0] if self._ends else -1

    @property
    def busy(self) -> bool:
        """Whether a question has not been answered, or its answer not been taken."""
        return self._answer is not None

    def ask(self, seen: Sequence[Observation], said: Sequence[str]) -> None:
        """Put a question; the arguments are those of ``Judge.judge``."""
        self.asked = seen
        if self._pool is None:
            self._answer = Future()
            try:
                self._answer.set_result(self._judge.judge(seen, said))
            except Exception as error:  # noqa: BLE001 - told by ``take``
                self._answer.set_exception(error)
            return
        self._answer = self._pool.submit(self._judge.judge, seen, said)
        self._answer.add_done_callback(self._wake)

    def _wake(self, _: Future[list[Verdict]]) -> None:
        if self._ends:
            os.write(self._ends[1], b".")

    def wait(self) -> None:
        """Until the answer is there; returns at once when nobody was asked. A judge has a deadline of its own."""
        if self._answer is not None:
            wait([self._answer])

    def take(self) -> list[Verdict] | None:
        """The answer, None while there is none.

        Raises:
            Exception: whatever the judge raised.
        """
        if self._answer is None or not self._answer.done():
            return None
        if self._ends:
            # The callback comes right behind the answer: a wake too many harms nobody.
            with suppress(BlockingIOError):
                os.read(self._ends[0], 16)
        answer, self._answer = self._answer, None
        return answer.result()

    def close(self) -> None:
        """Let go of the judge, in the thread that used it."""
        if self._pool is not None:
            self._pool.submit(self._judge.close)
            self._pool.shutdown(wait=True)
        else:
            self._judge.close()
        if self._ends:
            for end in self._ends:
                os.close(end)
            self._ends = None


# How often a model may be asked: an even pace for one sidecar, a rest for the whole town when the API is in trouble.
#
# Both are read from the journal, so that neither a respawn nor a neighbour starts anew.

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
