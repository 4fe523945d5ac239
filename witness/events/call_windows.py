"""Which call of which agent a change belongs to: the one in whose time it fell, or none.

Every run whose agent works in the tree has a record here of the calls it has made and may be making. A client tells
when a call is over, and how long it took or when it began; that another run's call is under way just now is seen by its
client's processes, where the system shows them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from witness.events.tree_watch import Change
from witness.files import read_bytes
from witness.process.table import read_table

# Between the end of a tool and our hook lie the client and the start of an interpreter, on a busy machine too.
_SLACK = 0.5
# The file system's clock is a few milliseconds late.
_TICK = 0.02
_CLOSED_CALLS = 256
_OPEN_CALLS = 64
_ACTORS = 256
# Bytes of a process and when it began, as a spool names its client.
_IDENTITY = 100


@dataclass(slots=True)
class _Actor:
    """The main agent of a session or one of its subagents: when it was heard last, and where it was then."""

    last: float
    cwd: str


@dataclass(frozen=True, slots=True)
class Window:
    """When and where one call ran.

    Args:
        start, end: wall clock; no start where nobody can tell it.
        cwd_before: where it began, empty when that is not known.
    """

    start: float | None
    end: float
    cwd_before: str


@dataclass(slots=True)
class RunCalls:
    """The calls of one run.

    Args:
        spool: its spool, which names the client's process.
    """

    spool: Path
    _actors: dict[tuple[str, str], _Actor] = field(default_factory=dict)
    _open: dict[str, tuple[float, str]] = field(default_factory=dict)
    _closed: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_CLOSED_CALLS))
    _resting: frozenset[int] = frozenset()
    _last: float = 0.0

    def begin(self, payload: dict[str, Any], time: float) -> None:
        """A client has told that a call begins."""
        while len(self._open) >= _OPEN_CALLS:  # denied ones never end
            del self._open[next(iter(self._open))]
        self._open[_call(payload)] = (time, _text(payload.get("cwd")))

    def hear(self, payload: dict[str, Any], time: float) -> None:
        """A client has told of anything."""
        key = (_text(payload.get("session_id")), _text(payload.get("agent_id")))
        if key not in self._actors and len(self._actors) >= _ACTORS:
            del self._actors[next(iter(self._actors))]
        self._actors[key] = _Actor(time, _text(payload.get("cwd")))
        self._last = time

    def end(self, payload: dict[str, Any], time: float) -> Window:
        """A client has told that a call is over.

        Args:
            payload: what it gave to its hook.
            time: when.
        """
        actor = self._actors.get((_text(payload.get("session_id")), _text(payload.get("agent_id"))))
        begun, cwd = self._open.pop(_call(payload), (None, ""))
        seconds = payload.get("duration_ms")
        if begun is None and isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0:
            begun = time - seconds / 1000 - _SLACK
        if actor is not None:
            begun = max(begun, actor.last - _TICK) if begun is not None else None
            cwd = cwd or actor.cwd
        if begun is not None:
            self._closed.append((begun, time))
        self.hear(payload, time)
        return Window(begun, time, cwd)

    def rest(self) -> None:
        """Put down which processes the client has while no call is under way: servers, and what runs in background."""
        self._resting = _below(self._client())

    def may_have_made(self, change: Change) -> bool:
        """Whether a call of this run was under way when something changed."""
        if any(start <= change.time <= end for start, end in self._closed):
            return True
        if any(begun <= change.time for begun, _ in self._open.values()):
            return True
        return change.time >= self._last and self._works()

    def _works(self) -> bool:
        return bool(_below(self._client()) - self._resting)

    def _client(self) -> int:
        with suppress(OSError, ValueError, IndexError):
            return int(read_bytes(self.spool / "client", _IDENTITY).split()[0])
        return 0


def alone(changes: Sequence[Change], others: Iterable[RunCalls]) -> list[Change]:
    """The changes that no call of another run can have made."""
    others = list(others)
    return [change for change in changes if not any(run.may_have_made(change) for run in others)]


def _below(pid: int) -> frozenset[int]:
    """All descendants of a process."""
    if pid <= 0:
        return frozenset()
    children: dict[int, list[int]] = {}
    for row in read_table().values():
        if not row.defunct:
            children.setdefault(row.parent, []).append(row.process.pid)
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        new = [each for each in children.get(waiting.pop(), ()) if each not in found]
        found.update(new)
        waiting += new
    return frozenset(found)


def _call(payload: dict[str, Any]) -> str:
    return _text(payload.get("tool_use_id")) or _text(payload.get("session_id"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
