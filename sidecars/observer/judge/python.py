"""The judge that is a Python function: an installed one, called here, or one of another process, asked there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from sidecars.observer.context import Context
from sidecars.observer.judge.signal_tool import read_report
from sidecars.observer.judge.verdict import Verdict
from sidecars.type_reader.sidecar_type import SidecarType
from witness.clock import Clock, SystemClock
from witness.errors import WitnessError
from witness.installed import JUDGES, entries
from witness.journal.records import Usage
from witness.judging.functions import JudgeFunction, answer_to, import_judge, question_of
from witness.judging.hosts import HostLink
from witness.judging.observation import Observation

_LONGEST_COMPLAINT = 300
_Ask = Callable[[dict[str, Any], float], list[Any]]


class PythonJudge:
    """Puts each look's actions to a function.

    Args:
        kind: the type, for the function's name and the deadline.
        material: its context.
        runtime: the town's runtime folder, None outside of any town: then there is no host.
        clock: where the time comes from.

    Attributes:
        host: the way to the process that gave the function; None for an installed one.
    """

    def __init__(self, kind: SidecarType, material: Context, runtime: Path | None, clock: Clock | None = None) -> None:
        self._kind, self._material = kind, material
        self._clock = clock or SystemClock()
        name = kind.function or kind.name
        self.host: HostLink | None = None
        if found := entries(JUDGES).get(name):
            self._ask: _Ask = _Installed(lambda: import_judge(found)).ask
        else:
            self.host = HostLink(runtime, name)
            self._ask = self.host.ask

    def close(self) -> None:
        """Let go of the host."""
        if self.host:
            self.host.close()

    def sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        return [], list(seen)

    def judge(self, seen: Sequence[Observation], said: Sequence[str] = ()) -> list[Verdict]:
        if not seen:
            return []
        began = self._clock.monotonic()
        try:
            question = question_of(self._kind.name, self._material.documents, seen, said)
            first, *others = [read_report(each) for each in self._ask(question, self._kind.timeout)]
        except (OSError, ValueError, WitnessError) as error:
            first, others = Verdict(False, error=f"python: {' '.join(str(error).split())[:_LONGEST_COMPLAINT]}"), []
        return [replace(first, usage=Usage(seconds=self._clock.monotonic() - began)), *others]


class _Installed:
    """A function that is imported when it is first asked, in threads that nobody has to wait for.

    Args:
        load: imports it.
    """

    def __init__(self, load: Callable[[], JudgeFunction]) -> None:
        self._load = load
        self._function: JudgeFunction | None = None
        self._busy: threading.Thread | None = None

    def ask(self, question: dict[str, Any], seconds: float) -> list[Any]:
        """As ``HostLink.ask``.

        Raises:
            ValueError: it failed, or does not answer in time.
            WitnessError: it cannot be imported.
        """
        if self._busy and self._busy.is_alive():
            raise ValueError("it is still busy with an earlier action")
        answers: SimpleQueue[list[Any] | Exception] = SimpleQueue()
        self._busy = threading.Thread(target=self._work, args=(question, answers), daemon=True)
        self._busy.start()
        try:
            answer = answers.get(timeout=seconds)
        except Empty:
            raise ValueError(f"no answer within {seconds:g} s") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _work(self, question: dict[str, Any], answers: SimpleQueue[list[Any] | Exception]) -> None:
        try:
            self._function = self._function or self._load()
            answers.put(answer_to(self._function, question))
        except Exception as error:  # noqa: BLE001 - raised again by the thread that waits
            answers.put(error)
