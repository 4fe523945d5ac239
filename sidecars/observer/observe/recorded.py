"""Recorded sessions: an event spool, a client's transcript, or captured screens."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from witness.errors import UsageError
from witness.events.spool_reader import SpooledEvent, parse_record
from witness.files import lines_of, open_project, parse_json, read_project

# Bytes: a transcript's line may hold a picture.
_LONGEST_LINE = 32 << 20
# What a tool's answer may hold.
_DEPTH = 200
# The event of a call of which a transcript holds no result.
UNFINISHED = "PreToolUse"
# Between two captured screens in one file.
FRAME = "\f"


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One thing that was recorded.

    Args:
        time: wall clock in seconds.
        id: unique in the recording.
        payload: what a hook was given; None for a screen.
        screen: the pane's text; None for an event.
        event: the event as it stands in a spool, with what was seen of the call; None for others.
    """

    time: float
    id: str
    payload: Mapping[str, Any] | None = field(default=None, repr=False)
    screen: str | None = field(default=None, repr=False)
    event: SpooledEvent | None = field(default=None, repr=False)


def read_events(path: Path) -> list[RecordedEvent]:
    """The events of a spool, oldest first.

    Args:
        path: one of its files, or its folder for all of them.

    Raises:
        UsageError: it cannot be read, or holds none.
    """
    events = []
    try:
        for each in sorted(path.glob("events*.jsonl")) if path.is_dir() else [path]:
            with os.fdopen(open_project(each), "rb") as file:
                found = (parse_record(line) for line in lines_of(file, _LONGEST_LINE))
                events += [RecordedEvent(event.time, event.id, event.payload, event=event) for event in found if event]
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    return _sorted(events, path)


def read_transcript(path: Path) -> list[RecordedEvent]:
    """The completed tool calls of a Claude Code transcript, as its hooks would have told them.

    Its subagents' transcripts are read with it, where they stand beside it: ``SESSION/subagents/agent-*.jsonl`` or
    ``agent-*.jsonl`` of the same session.

    Raises:
        UsageError: it cannot be read, or holds none.
    """
    moments: list[RecordedEvent] = []
    for each in (path, *_subagents(path)):
        calls: dict[str, _Begun] = {}
        try:
            with os.fdopen(open_project(each), "rb") as file:
                for line in lines_of(file, _LONGEST_LINE):
                    moments += _entry(line, calls)
        except OSError as error:
            raise UsageError(f"{each} cannot be read: {error}") from error
        moments += [
            RecordedEvent(call.time, f"{id}-unfinished", {"hook_event_name": UNFINISHED, "tool_name": call.tool})
            for id, call in calls.items()
        ]
    return _sorted(moments, path)


@dataclass(frozen=True, slots=True)
class _Begun:
    """A call whose result has not come yet."""

    time: float
    tool: str
    given: Any


def _subagents(path: Path) -> list[Path]:
    beside = [each for each in path.parent.glob("agent-*.jsonl") if each != path and _session_of(each) == path.stem]
    return sorted([*(path.with_suffix("") / "subagents").glob("*.jsonl"), *beside])


def _session_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return str(parse_json(file.readline(1 << 20), _DEPTH).get("sessionId", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def _entry(line: bytes, calls: dict[str, _Begun]) -> Iterator[RecordedEvent]:
    try:
        entry = parse_json(line, _DEPTH)
        blocks = entry["message"]["content"]
    except (ValueError, KeyError, TypeError):
        return
    if isinstance(blocks, str):
        if entry.get("type") == "user" and not entry.get("isMeta"):
            payload = {"hook_event_name": "UserPromptSubmit", "prompt": blocks}
            yield RecordedEvent(_time(entry), str(entry.get("uuid", "")), payload)
        return
    for block in blocks if isinstance(blocks, list) else ():
        if not isinstance(block, dict):
            continue
        if block.get("type") == "tool_use":
            calls[str(block.get("id"))] = _Begun(_time(entry), str(block.get("name", "")), block.get("input"))
        elif block.get("type") == "tool_result" and (call := calls.pop(str(block.get("tool_use_id")), None)):
            yield RecordedEvent(_time(entry), str(block["tool_use_id"]), _payload(entry, block, call))


def _payload(entry: Mapping[str, Any], block: Mapping[str, Any], call: _Begun) -> dict[str, Any]:
    payload = {
        "hook_event_name": "PostToolUseFailure" if block.get("is_error") else "PostToolUse",
        "session_id": entry.get("sessionId", ""),
        "cwd": entry.get("cwd", ""),
        "tool_name": call.tool,
        "tool_input": call.given,
        "tool_response": entry.get("toolUseResult", block.get("content")),
        "tool_use_id": block.get("tool_use_id"),
    }
    if entry.get("isSidechain"):
        payload["agent_id"] = str(entry.get("agentId") or "sidechain")
    return payload


def _time(entry: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(entry.get("timestamp", "")).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


def read_screens(paths: Iterable[Path], interval: float) -> list[RecordedEvent]:
    """Captured screens, one a file or several in one file with form feeds between them.

    Args:
        paths: in the order in which they were captured.
        interval: seconds between two screens.

    Raises:
        UsageError: a file cannot be read.
    """
    frames: list[str] = []
    for path in paths:
        try:
            frames += read_project(path).decode("utf-8", "replace").split(FRAME)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error}") from error
    return [RecordedEvent(index * interval, f"screen-{index}", screen=frame) for index, frame in enumerate(frames)]


def _sorted(moments: list[RecordedEvent], path: Path) -> list[RecordedEvent]:
    if not moments:
        raise UsageError(f"{path} holds no recorded event")
    return sorted(moments, key=lambda moment: moment.time)
