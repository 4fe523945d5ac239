"""The end of a run's spool: what the agent's client reported last."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness.events.spool_reader import SpooledEvent, parse_record
from witness.events.spool_writer import CURRENT
from witness.files import open_regular

_COMPLETED = frozenset({"PostToolUse", "PostToolUseFailure", "AfterTool"})
# Other agents' ends say nothing of the main one.
_OF_OTHERS = frozenset({"SubagentStop", "SubagentStart", "SessionEnd"})
_TAILS = (1 << 16, 2 << 20)
_WANTED = 8
_LONGEST = 160
_SUBJECTS = ("file_path", "path", "notebook_path", "command", "pattern", "url", "query", "description", "prompt")


@dataclass(frozen=True, slots=True)
class ReportedEvent:
    """One event of the main agent.

    Args:
        name: the client's name of it.
        time: wall clock.
        payload: the client's JSON.
    """

    name: str
    time: float
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LastEvents:
    """What was reported last.

    Args:
        last: the newest event, None when there is none.
        actions: the newest completed calls, oldest first.
    """

    last: ReportedEvent | None = None
    actions: tuple[ReportedEvent, ...] = ()


def last_events(spool: Path) -> LastEvents:
    """Read the end of a spool; nothing where it cannot be read."""
    for size in _TAILS:
        found, whole = _read(spool, size)
        if whole or len(found) >= _WANTED:
            break
    completed = [event for event in found if event.name in _COMPLETED]
    return LastEvents(found[-1] if found else None, tuple(completed[-_WANTED:]))


def _read(spool: Path, size: int) -> tuple[list[ReportedEvent], bool]:
    try:
        with os.fdopen(open_regular(spool / CURRENT, below=spool.parent.parent), "rb") as file:
            end = file.seek(0, os.SEEK_END)
            begin = file.seek(max(end - size, 0))
            lines = file.read(size).split(b"\n")
    except OSError:
        return [], True
    return list(_main_events(lines[1:] if begin else lines)), begin == 0


def _main_events(lines: list[bytes]) -> Iterator[ReportedEvent]:
    for line in lines:
        event: SpooledEvent | None = parse_record(line) if line else None
        name = event.payload.get("hook_event_name") if event else None
        if event and isinstance(name, str) and name not in _OF_OTHERS and not event.payload.get("agent_id"):
            yield ReportedEvent(name, event.time, event.payload)


def action_text(payload: dict[str, Any]) -> str:
    """A call in one line: the tool and what it was used on."""
    tool, given = str(payload.get("tool_name") or "a tool"), payload.get("tool_input")
    if isinstance(given, dict):
        subject = next((given[key] for key in _SUBJECTS if isinstance(given.get(key), str) and given[key]), "")
    else:
        subject = given if isinstance(given, str) else ""
    text = " ".join("".join(each if each.isprintable() else " " for each in f"{tool} {subject}"[:4000]).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
