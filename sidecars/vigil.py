"""A sidecar's watch over one agent: what it holds open while it lives, and one look."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Self

from sidecars.assembly import Parts
from sidecars.heartbeat import Heartbeat
from sidecars.observe.life import AgentLife
from sidecars.observe.observation import Observation
from sidecars.observe.spooled import EventWatch
from witness.assignment import Assignment
from witness.clock import Clock, SystemClock
from witness.journal import Journal
from witness.transport.event_spool import WakeSocket


class Vigil:
    """Looks when it is woken, and at every poll; a context manager.

    Args:
        parts: the sidecar.
        assignment: whom it observes.
        clock: where the time comes from.
    """

    def __init__(self, parts: Parts, assignment: Assignment, clock: Clock | None = None) -> None:
        self._parts, self._assignment = parts, assignment
        self._clock = clock or SystemClock()
        self._stack = ExitStack()
        # Actions that wait for a slow judge, and since when.
        self._gathered: list[Observation] = []
        self._since = 0.0

    def __enter__(self) -> Self:
        kind, assignment, enter = self._parts.kind, self._assignment, self._stack.enter_context
        try:
            self._journal = enter(Journal(Path(assignment.journal)))
            self._agent = enter(AgentLife(assignment.agent))
            self._beat = enter(Heartbeat(assignment.heartbeat, self._clock))
            assignment.spool.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._wakes = enter(WakeSocket(assignment.spool, assignment.name, asked=kind.instant))
        except BaseException:
            self._stack.close()
            raise
        position = self._journal.decisions.cursor(assignment.group.run, assignment.name)
        self._events = EventWatch(kind, assignment, position)
        self._observer = self._parts.observer(assignment, self._journal, self._clock)
        self._observer.recover()
        self._beat.beat()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def sources(self) -> list[int]:
        """Descriptors whose readability is a reason to look."""
        return [file for file in (self._agent.fileno(), self._wakes.fileno()) if file >= 0]

    @property
    def agent_ended(self) -> bool:
        return self._agent.ended

    @property
    def patience(self) -> float:
        """Seconds that may pass before the next look if nothing wakes us."""
        if self._gathered:
            return max(0.0, min(self._since + self._parts.kind.batch - self._clock.monotonic(), self._parts.kind.poll))
        return self._parts.kind.poll

    def look(self) -> None:
        """Read what is new, consider it, and only then let the hooks go that wait for it."""
        self._beat.beat()
        wakes = self._wakes.accept()
        try:
            self._read()
        finally:
            for wake in wakes:
                wake.answer()

    def _read(self) -> None:
        if self._parts.kind.instant:
            while (seen := self._events.look()) is not None:
                self._observer.consider(seen, self._events.position)
            return
        while (seen := self._events.look()) is not None:
            if seen and not self._gathered:
                self._since = self._clock.monotonic()
            self._gathered += seen
        if self._gathered and self._clock.monotonic() - self._since >= self._parts.kind.batch:
            seen, self._gathered = self._gathered, []
            self._observer.consider(seen, self._events.position)
