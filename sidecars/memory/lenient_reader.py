"""Understanding a memory file of any age and origin.

A file that somebody else wrote, an older one, or one that was edited by hand is brought into today's form. Missing keys
are filled in silence; whatever had to be changed is told, so that the store can keep the original beside it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from sidecars.memory.bridges import markdown_memories
from sidecars.memory.record import (
    BOOKKEEPING_KEY,
    CONTENT_LIMIT,
    MEMORY_TYPES,
    OUTCOMES,
    RELATIONSHIPS,
    ROLES,
    Bookkeeping,
    DecisionEntry,
    Memory,
    Session,
    Sidecar,
    one_line,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """A file as it was understood.

    Args:
        sidecar: its content in today's form.
        repairs: what had to be changed to get there, one line each; missing keys are no repair.
    """

    sidecar: Sidecar
    repairs: tuple[str, ...]


def parse(data: bytes) -> dict[str, Any]:
    """Read the bytes of a memory file as a JSON object.

    Raises:
        ValueError: they are none; the file is corrupt.
    """
    try:
        raw = json.loads(data.decode("utf-8-sig"), parse_constant=lambda name: None)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(raw, dict):
        raise ValueError("not a JSON object")
    return raw


def read_sidecar(raw: Mapping[str, Any], agent: str, now: str) -> Reading:
    """Understand a memory file of any age and origin.

    Args:
        raw: the JSON object.
        agent: whose file it is, by its name; it wins over what the file says.
        now: ISO date for times that the file does not give.
    """
    repairs: list[str] = []
    sessions = as_count(raw.get("sessions_participated"), 0, "sessions_participated", repairs)
    created = as_text(raw.get("created_at"), now)
    memories = []
    for index, item in enumerate(as_list(raw.get("memories"), "memories", repairs)):
        memory = read_memory(item, f"memories[{index}]", sessions, created, repairs)
        if memory is not None:
            memories.append(memory)
    decisions = []
    for index, item in enumerate(as_list(raw.get("decision_history"), "decision_history", repairs)):
        entry = _read_decision(item, f"decision_history[{index}]", repairs)
        if entry is not None:
            decisions.append(entry)
    return Reading(
        Sidecar(
            agent=agent,
            display_name=one_line(as_text(raw.get("displayName"), agent)) or agent,
            created_at=created,
            last_updated=as_text(raw.get("last_updated"), created),
            sessions_participated=sessions,
            memories=_with_own_ids(memories, repairs),
            relationships=_read_relationships(raw.get("relationships"), repairs),
            decision_history=tuple(decisions),
            books=_read_books(raw.get(BOOKKEEPING_KEY)),
            extra={key: value for key, value in raw.items() if key not in _SIDECAR_KEYS},
        ),
        tuple(repairs),
    )


_SIDECAR_KEYS = (
    "agent",
    "displayName",
    "created_at",
    "last_updated",
    "sessions_participated",
    "memories",
    "relationships",
    "decision_history",
    BOOKKEEPING_KEY,
)
_BOOKS_KEYS = frozenset(("applied", "sessions", "evidence", "forgotten", "faded_on"))
_MEMORY_KEYS = frozenset(each.name for each in fields(Memory)) - {"extra"}
_DECISION_KEYS = frozenset(each.name for each in fields(DecisionEntry)) - {"extra"}


def read_memory(item: Any, where: str, sessions: int, now: str, repairs: list[str]) -> Memory | None:
    """Understand one memory; None when nothing in it can be read.

    Args:
        item: a JSON object, or a plain string as the oldest files have.
        where: its place in the file, for the repairs.
        sessions: the file's count of sessions; a memory that does not say when it was last reinforced starts from here,
            so that reading a foreign file does not age everything in it at once.
        now: ISO date for times that it does not give.
        repairs: what had to be changed is added to it.
    """
    if isinstance(item, str):
        repairs.append(f"{where}: a plain text, taken as an observation")
        item = {"content": item}
    content = one_line(item["content"]) if isinstance(item, dict) and isinstance(item.get("content"), str) else ""
    if not content:
        repairs.append(f"{where}: has no content, left out")
        return None
    if len(content) > CONTENT_LIMIT:
        repairs.append(f"{where}.content: cut to {CONTENT_LIMIT} characters")
        content = content[: CONTENT_LIMIT - 1].rstrip() + "…"
    tags = item.get("tags")
    return Memory(
        id=one_line(as_text(item.get("id"), ""))[:64],
        type=as_choice(item.get("type"), MEMORY_TYPES, "observation", f"{where}.type", repairs),
        content=content,
        source_session=one_line(as_text(item.get("source_session"), "")) or "unknown",
        confidence=as_confidence(item.get("confidence"), f"{where}.confidence", repairs),
        created_at=as_text(item.get("created_at"), now),
        last_reinforced_session=_session_of(item, sessions, f"{where}.last_reinforced_session", repairs),
        tags=tuple(one_line(tag) for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
        evidence=one_line(as_text(item.get("evidence"), "")),
        reinforced_in=as_text(item.get("reinforced_in"), ""),
        history=_read_history(item.get("history")),
        extra={key: value for key, value in item.items() if key not in _MEMORY_KEYS},
    )


def _read_history(raw: Any) -> tuple[dict[str, Any], ...]:
    # Another writer's key of that name, in another form, would be lost here; MDAN has none.
    entries = raw if isinstance(raw, list) else []
    return tuple(
        {**each, "content": one_line(each["content"])[:CONTENT_LIMIT]}
        for each in entries
        if isinstance(each, dict) and isinstance(each.get("content"), str)
    )


def _session_of(item: Mapping[str, Any], sessions: int, where: str, repairs: list[str]) -> int:
    count = as_count(item.get("last_reinforced_session"), sessions, where, repairs)
    if count > sessions:
        # It would not fade until the file has that many.
        repairs.append(f"{where}: {count} is more than the file's {sessions} sessions, taken as {sessions}")
    return min(count, sessions)


def _with_own_ids(memories: list[Memory], repairs: list[str]) -> tuple[Memory, ...]:
    seen: set[str] = set()
    result = []
    for index, memory in enumerate(memories):
        if memory.id and memory.id in seen:
            repairs.append(f"memories[{index}].id: {memory.id} stands twice, given a new one")
        own = memory if memory.id and memory.id not in seen else replace(memory, id=_fresh(memory.content, seen))
        seen.add(own.id)
        result.append(own)
    return tuple(result)


def _fresh(content: str, seen: set[str]) -> str:
    # The same whenever and wherever the file is read: an id that was shown can be named, and two branches of one file
    # give a memory that came without an id the same one.
    made = hashlib.sha256(content.encode()).hexdigest()
    return next(each for at in range(len(made) - 8) if (each := made[at : at + 8]) not in seen)


def _read_decision(item: Any, where: str, repairs: list[str]) -> DecisionEntry | None:
    dr_id = one_line(as_text(item.get("dr_id"), "")) if isinstance(item, dict) else ""
    if not dr_id:
        repairs.append(f"{where}: has no dr_id, left out")
        return None
    return DecisionEntry(
        dr_id=dr_id,
        role=as_choice(item.get("role"), ROLES, "participant", f"{where}.role", repairs),
        position=one_line(as_text(item.get("position"), ""))[:CONTENT_LIMIT],
        outcome=as_choice(item.get("outcome"), OUTCOMES, "compromised", f"{where}.outcome", repairs),
        extra={key: value for key, value in item.items() if key not in _DECISION_KEYS},
    )


def _read_relationships(raw: Any, repairs: list[str]) -> dict[str, tuple[str, ...]]:
    if raw is not None and not isinstance(raw, dict):
        repairs.append("relationships: not an object, left out")
    given = raw if isinstance(raw, dict) else {}
    result: dict[str, Any] = {}
    for kind in RELATIONSHIPS:
        names = given.get(kind, [])
        if isinstance(names, str):
            names = [names]
        if not isinstance(names, list):
            repairs.append(f"relationships.{kind}: not a list, left out")
            names = []
        texts = [one_line(name) for name in names if isinstance(name, str)]
        if len(texts) != len(names):
            repairs.append(f"relationships.{kind}: has entries that are no names, left out")
        result[kind] = tuple(dict.fromkeys(name for name in texts if name))
    # A kind that we do not know is carried along as it stands.
    return {**result, **{kind: value for kind, value in given.items() if kind not in RELATIONSHIPS}}


def _read_books(raw: Any) -> Bookkeeping:
    # Our own key: whatever in it is not as we write it was damaged by hand and only costs what it said.
    if not isinstance(raw, dict):
        return Bookkeeping()
    sessions = {}
    names = {each.name for each in fields(Session)}
    for name, item in as_object(raw.get("sessions")).items():
        if isinstance(item, dict) and {"holder", "opened_at"} <= item.keys():
            kept = {key: value for key, value in item.items() if key in names}
            kept["new"] = as_count(kept.get("new"), 0, "", [])
            sessions[name] = Session(**kept)
    evidence = {
        kind: {other: times for other, times in as_object(counts).items() if isinstance(times, int)}
        for kind, counts in as_object(raw.get("evidence")).items()
        if kind in RELATIONSHIPS
    }
    forgotten = raw.get("forgotten")
    batches = forgotten if isinstance(forgotten, list) else []
    applied = raw.get("applied")
    return Bookkeeping(
        applied=tuple(each for each in applied if isinstance(each, str)) if isinstance(applied, list) else (),
        sessions=sessions,
        evidence=evidence,
        forgotten=tuple(
            tuple(each for each in batch if isinstance(each, dict)) for batch in batches if isinstance(batch, list)
        ),
        faded_on=as_text(raw.get("faded_on"), ""),
        extra={key: value for key, value in raw.items() if key not in _BOOKS_KEYS},
    )


# Single values of a memory file that somebody else wrote: understood where they can be, told where they changed.

# What a memory is worth whose writer did not say: the protocol's value for an inference.
DEFAULT_CONFIDENCE = 0.5
_WORDS_FOR_CONFIDENCE = {"high": 0.8, "medium": 0.6, "low": 0.5}


def as_object(value: Any) -> dict[str, Any]:
    """The value when it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any, where: str, repairs: list[str]) -> list[Any]:
    """The value when it is a list; none for a missing one, and a repair for anything else."""
    if value is None:
        return []
    if isinstance(value, list):
        return value
    repairs.append(f"{where}: not a list, left out")
    return []


def as_text(value: Any, default: str) -> str:
    """The value when it is a text that is not empty."""
    return value if isinstance(value, str) and value else default


def as_count(value: Any, default: int, where: str, repairs: list[str]) -> int:
    """The value as a whole number from 0."""
    if value is None:
        return default
    try:
        number = int(float(value)) if not isinstance(value, bool) else -1
    except (TypeError, ValueError, OverflowError):
        number = -1
    if number < 0:
        repairs.append(f"{where}: {value!r} is not a count, taken as {default}")
        return default
    return number


def as_choice(value: Any, allowed: tuple[str, ...], default: str, where: str, repairs: list[str]) -> str:
    """The value when it is one of those allowed, in any case of letters."""
    plain = value.strip().lower() if isinstance(value, str) else ""
    if plain in allowed:
        return plain
    repairs.append(f"{where}: {value!r} is not one of {', '.join(allowed)}, taken as {default}")
    return default


def as_confidence(value: Any, where: str, repairs: list[str]) -> float:
    """The value as a number from 0 to 1; words and percentages are understood."""
    if value is None:
        return DEFAULT_CONFIDENCE
    if isinstance(value, str) and value.strip().lower() in _WORDS_FOR_CONFIDENCE:
        return _WORDS_FOR_CONFIDENCE[value.strip().lower()]
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if 1 < number <= 100:
        repairs.append(f"{where}: {value!r} taken as a percentage")
        number /= 100
    if not 0 <= number <= 1:
        repairs.append(f"{where}: {value!r} is not between 0 and 1, taken as {DEFAULT_CONFIDENCE}")
        return DEFAULT_CONFIDENCE
    return round(number, 4)


# Reading what is to be taken into a memory: a memory file, a JSON list of memories, or a markdown text.


def read_import(data: bytes) -> dict[str, Any]:
    """Read a file that is to be taken into a memory.

    Returns:
        What a ``merge`` takes: memories, relationships and decision_history.

    Raises:
        ValueError: it is none of the three forms.
    """
    try:
        raw = parse(b'{"memories": ' + data + b"}") if data.lstrip().startswith(b"[") else parse(data)
    except ValueError as error:
        points = markdown_memories(data.decode("utf-8-sig"))
        if not points:
            raise ValueError(f"neither a memory file, nor a list of memories in JSON or markdown: {error}") from error
        raw = {"memories": points}
    read = read_sidecar(raw, "", "").sidecar
    return {
        # As they stand: each is understood by the rules when it is taken in.
        "memories": raw.get("memories") or [],
        "relationships": {kind: list(read.relationships[kind]) for kind in RELATIONSHIPS},
        "decision_history": [
            {"dr_id": each.dr_id, "role": each.role, "position": each.position, "outcome": each.outcome}
            for each in read.decision_history
        ],
    }
