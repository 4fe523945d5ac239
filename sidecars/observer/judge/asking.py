"""Asking a slow judge without waiting for it: rules speak on while a model thinks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress

from sidecars.observer.judge.verdict import Judge, Verdict
from sidecars.observer.observe.observation import Observation


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

    def ask(self, seen: Sequence[Observation]) -> None:
        """Put a question."""
        self.asked = seen
        if self._pool is None:
            self._answer = Future()
            try:
                self._answer.set_result(self._judge.judge(seen))
            except Exception as error:  # noqa: BLE001 - told by ``take``
                self._answer.set_exception(error)
            return
        self._answer = self._pool.submit(self._judge.judge, seen)
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
