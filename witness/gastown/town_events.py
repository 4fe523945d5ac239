"""What a Gas Town tells in ``.events.jsonl``: who was started, who is done, whose session ended."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from witness.config.town import Town
from witness.files import open_regular, parse_json

# One look reads no more than this; the rest is read by the next one.
_CHUNK = 4 * 1024 * 1024


class TownEventKind(StrEnum):
    """What an event means for a polecat."""

    STARTED = "started"
    DONE = "done"
    ENDED = "session-end"
    HANDOFF = "handoff"


_MEANING = {
    "spawn": TownEventKind.STARTED,
    "sling": TownEventKind.STARTED,
    "hook": TownEventKind.STARTED,
    "session_start": TownEventKind.STARTED,
    "done": TownEventKind.DONE,
    "unhook": TownEventKind.DONE,
    "session_end": TownEventKind.ENDED,
    "session_death": TownEventKind.ENDED,
    "mass_death": TownEventKind.ENDED,
    "kill": TownEventKind.ENDED,
    "handoff": TownEventKind.HANDOFF,
}


@dataclass(frozen=True, slots=True)
class TownEvent:
    """One event that concerns one polecat.

    Args:
        told: what it means.
        rig, polecat: which polecat it concerns.
        time: wall clock, whole seconds as Gas Town writes it.
    """

    told: TownEventKind
    rig: str
    polecat: str
    time: float


def read_events(town: Town, position: str) -> tuple[list[TownEvent], str]:
    """Read what was written since ``position``.

    Args:
        town: the town.
        position: what the last call returned; empty begins at the end, because what lies before is history.

    Returns:
        (the events, the new position). A line that is not whole yet is left for the next call; one that is no event is
        skipped.
    """
    path = town.root / ".events.jsonl"
    try:
        handle = open_regular(path, owners=())
        try:
            status = os.fstat(handle)
            inode, _, offset_text = position.partition(":")
            offset = int(offset_text or 0)
            if not position:
                offset = status.st_size
            elif inode != str(status.st_ino) or offset > status.st_size:
                offset = 0  # rotated, or cut: a new file is read from its beginning
            data = os.pread(handle, _CHUNK, offset)
        finally:
            os.close(handle)
    except (OSError, ValueError):
        return [], position
    whole = data.rfind(b"\n") + 1
    if not whole and len(data) == _CHUNK:
        whole = len(data)  # no event is so long: skip over it
    events = [event for line in data[:whole].splitlines() for event in _events(town, line)]
    return events, f"{status.st_ino}:{offset + whole}"


def begin(town: Town) -> str:
    """The position that reads a file from its beginning when none is there yet."""
    try:
        status = (town.root / ".events.jsonl").stat()
    except OSError:
        return "0:0"
    return f"{status.st_ino}:{status.st_size}"


def _events(town: Town, line: bytes) -> Iterator[TownEvent]:
    try:
        raw: Any = parse_json(line)
    except ValueError:
        return
    if not isinstance(raw, dict) or not isinstance(kind := raw.get("type"), str) or kind not in _MEANING:
        return
    payload = raw.get("payload")
    payload = payload if isinstance(payload, dict) else {}
    time = _time(raw.get("ts"))
    for rig, polecat in dict.fromkeys(_concerned(town, kind, str(raw.get("actor", "")), payload)):
        yield TownEvent(_MEANING[kind], rig, polecat, time)


def _concerned(town: Town, kind: str, actor: str, payload: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Which agent an event is about; who did it counts only where an agent tells of itself."""
    names: list[str] = []
    rig, polecat = payload.get("rig"), payload.get("polecat") or payload.get("target")
    if isinstance(rig, str) and isinstance(polecat, str):
        names.append(polecat if "/" in polecat else f"{rig}/{polecat}")
    elif isinstance(payload.get("target"), str):
        names.append(payload["target"])
    names += [str(payload[key]) for key in ("agent", "session", "role") if payload.get(key)]
    if isinstance(payload.get("sessions"), list):
        names += map(str, payload["sessions"])
    if kind in ("done", "unhook", "hook", "handoff", "session_start", "session_end"):
        names.append(actor)
    for name in names:
        yield from _polecat(town, name)


def _polecat(town: Town, name: str) -> Iterable[tuple[str, str]]:
    """(rig, polecat) of an address or a session; nothing for mayor, crew and other agents."""
    parts = name.strip("/").split("/")
    if len(parts) == 3 and parts[1] == "polecats":
        return [(parts[0], parts[2])]
    if len(parts) == 2 and parts[0] in town.rigs and parts[1] not in ("witness", "refinery", "crew", "polecats"):
        return [(parts[0], parts[1])]
    if len(parts) == 1 and (parsed := town.parse_session(name)) and parsed[1] == "polecat":
        return [(parsed[0], parsed[2])]
    return []


def _time(text: object) -> float:
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
