"""What an agent does, from what its client reported and what its screen shows. Pure.

A dialog on the screen is a fact of this moment and comes first; else what the client reported; else the screen. A
silent screen that shows nothing known is unknown, never idle.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness.agents.screen import Prompt, PromptState, WaitsFor
from witness.events.spool_reader import SpooledEvent, parse_record
from witness.events.spool_writer import CURRENT
from witness.files import open_regular
from witness.state.records import ActivityKind, Waiting, rfc3339

_REST = frozenset({"Stop", "AfterAgent"})
_BEGINS = frozenset({"UserPromptSubmit", "BeforeAgent"})
_CALLS = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "AfterTool", "BeforeTool"})
_WORK = _BEGINS | _CALLS | {"PreCompact"}
# What a Notification is about, by the client's own word for it.
_NOTICES = {
    "permission_prompt": WaitsFor.PERMISSION,
    "elicitation_dialog": WaitsFor.MCP,
    "auth_required": WaitsFor.LOGIN,
}
_FAILURES = {
    "rate_limit": WaitsFor.LIMIT,
    "billing_error": WaitsFor.LIMIT,
    "authentication_failed": WaitsFor.LOGIN,
    "server_error": WaitsFor.NETWORK,
    "unknown": WaitsFor.NETWORK,
}
# The same call so often in a row is no progress.
_LOOP = 6


@dataclass(frozen=True, slots=True)
class Activity:
    """What an agent does.

    Args:
        kind: of it.
        since: wall clock, None when not known.
        why: what told so, or why it is unknown.
        waiting: what it waits for.
    """

    kind: ActivityKind
    since: float | None = None
    why: str = ""
    waiting: Waiting | None = None


@dataclass(frozen=True, slots=True)
class Screen:
    """What was seen of a living agent's screen.

    Args:
        prompt: what it shows.
        trouble: what it complains of, None when of nothing.
        changed: wall clock of its last change.
    """

    prompt: Prompt
    trouble: Prompt | None
    changed: float


def activity_of(events: LastEvents, screen: Screen | None) -> Activity:
    """What a living agent does.

    Args:
        events: what its client reported last.
        screen: what it shows; None where it could not be seen.
    """
    asked = _asked(events.last) if events.last else None
    state = screen.prompt.state if screen else PromptState.UNKNOWN
    if screen and state is PromptState.DIALOG:
        return _at_dialog(screen, asked)
    if state is PromptState.BUSY:
        return _at_work(events, "its screen")
    rests = state in (PromptState.IDLE, PromptState.TYPED)
    if asked and not rests:
        return asked
    reported = _reported(events)
    if screen and screen.trouble and (rests or not reported or reported.kind is ActivityKind.IDLE):
        return _waiting(screen.trouble.waits_for, screen.changed, screen.trouble.question, "its screen")
    if screen and rests:
        rested = reported.since if reported and reported.kind is ActivityKind.IDLE else None
        return Activity(ActivityKind.IDLE, rested or screen.changed, "its screen")
    return reported or _UNKNOWN


_UNKNOWN = Activity(ActivityKind.UNKNOWN, None, "its client reports nothing, and its screen shows nothing known")


def _reported(events: LastEvents) -> Activity | None:
    """What the client's newest event says of a turn; None when it says nothing of that."""
    last = events.last
    if last and last.name in _REST:
        return Activity(ActivityKind.IDLE, last.time, f"its client: {last.name}")
    if last and last.name in _WORK:
        return _at_work(events, f"its client: {last.name}")
    return None


def _at_dialog(screen: Screen, asked: Activity | None) -> Activity:
    seen = screen.prompt
    since, waits_for = screen.changed, seen.waits_for
    if asked and asked.waiting and waits_for in (WaitsFor.QUESTION, WaitsFor.PERMISSION):
        # The client has said what it is about and when it came up; the screen knows the words.
        since = asked.since or since
        waits_for = WaitsFor(asked.waiting.reason)
    return _waiting(waits_for, since, seen.question or (asked.waiting.question if asked and asked.waiting else ""), "its screen")  # noqa: E501 # fmt: skip


def _waiting(waits_for: WaitsFor | None, since: float, question: str, why: str) -> Activity:
    waiting = Waiting(str(waits_for or WaitsFor.QUESTION), rfc3339(since), question)
    return Activity(ActivityKind.WAITING, since, why, waiting)


def _asked(event: ReportedEvent) -> Activity | None:
    """What the newest event says that a person has to decide or mend; None when it says no such thing."""
    payload, why = event.payload, f"its client: {event.name}"
    if event.name == "PermissionRequest":
        tool = str(payload.get("tool_name", ""))
        kind = WaitsFor.QUESTION if tool == "AskUserQuestion" else WaitsFor.PERMISSION
        return _waiting(kind, event.time, _first_question(payload) or action_text(payload), why)
    if event.name == "Notification":
        notice = _NOTICES.get(str(payload.get("notification_type", "")))
        return _waiting(notice, event.time, _line(payload.get("message")), why) if notice else None
    if event.name == "StopFailure":
        kind = _FAILURES.get(str(payload.get("error", payload.get("error_type", ""))), WaitsFor.NETWORK)
        return _waiting(kind, event.time, _line(payload.get("error_message") or payload.get("error")), why)
    return None


def _first_question(payload: dict[str, object]) -> str:
    given = payload.get("tool_input")
    questions = given.get("questions") if isinstance(given, dict) else None
    first = questions[0] if isinstance(questions, list) and questions else None
    return _line(first.get("question")) if isinstance(first, dict) else ""


def _line(text: object) -> str:
    bare = "".join(each if each.isprintable() else " " for each in str(text or "")[:2000])
    return " ".join(bare.split())[:300]


def _at_work(events: LastEvents, why: str) -> Activity:
    latest = [json.dumps([each.payload.get("tool_name"), each.payload.get("tool_input")], sort_keys=True, default=str)
              for each in events.actions[-_LOOP:]]  # fmt: skip
    if len(latest) == _LOOP and len(set(latest)) == 1:
        began = events.actions[-_LOOP].time
        return Activity(ActivityKind.STUCK, began, f"the same call {_LOOP} times: {action_text(events.actions[-1].payload)}")  # noqa: E501 # fmt: skip
    last = events.last
    return Activity(ActivityKind.WORKING, last.time if last and last.name in _BEGINS else None, why)


# The end of a run's spool: what the agent's client reported last.

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
