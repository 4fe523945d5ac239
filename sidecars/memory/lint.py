"""Checking a memory file against the published format, strictly, as ``docs/schemas/agent-sidecar.schema.json`` has it.

Loading is tolerant; this tells what loading would have to repair, and what stands in a file that should not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sidecars.memory.join import has_conflict_marks
from sidecars.memory.lenient_reader import parse
from sidecars.memory.operations import MEMORY_CAP
from sidecars.memory.record import (
    CONTENT_LIMIT,
    CONTENT_TARGET,
    MEMORY_TYPES,
    OUTCOMES,
    RELATIONSHIPS,
    ROLES,
    one_line,
    sameness,
)
from sidecars.memory.same_subject import pairs
from sidecars.memory.secret_rules import find_secret
from witness.errors import Problem

# A memory is data. One that is worded as an order to its reader was perhaps planted by what the agent once read.
_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:instructions?|rules?|prompts?|memor(?:y|ies)|above|previous)\b"
    r"|\byou (?:are now|must now|will now)\b|\bsystem prompt\b|^\s*(?:system|assistant|human|user)\s*:|</?[a-z-]+>",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Findings:
    """What the check found.

    Args:
        errors: where the file is not in the published format, or holds a secret.
        warnings: what is allowed but should be looked at.
    """

    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def lint(data: bytes, file: str, agent: str = "") -> Findings:
    """Check the bytes of a memory file.

    Args:
        data: the file's bytes.
        file: how it is named in the findings.
        agent: whose file it should be, empty when that is not known.
    """
    if has_conflict_marks(data):
        return Findings((Problem("has conflict marks of git: 'gt memory merge' joins both sides", file),), ())
    try:
        raw = parse(data)
    except ValueError as error:
        return Findings((Problem(f"not readable: {error}", file),), ())
    errors = [Problem(message, file, 0, key) for key, message in _errors(raw, agent)]
    warnings = [Problem(message, file, 0, key) for key, message in _warnings(raw)]
    return Findings(tuple(errors), tuple(warnings))


def _errors(raw: Mapping[str, Any], agent: str) -> Iterator[tuple[str, str]]:
    for key in ("agent", "displayName", "created_at", "last_updated"):
        if not isinstance(raw.get(key), str) or not raw[key]:
            yield key, "must be a text that is not empty"
    if agent and isinstance(raw.get("agent"), str) and raw["agent"] != agent:
        yield "agent", f"is {raw['agent']!r}, but the file is {agent}'s"
    if not _is_count(raw.get("sessions_participated")):
        yield "sessions_participated", "must be a whole number from 0"
    yield from _each(raw, "memories", _memory_errors)
    relationships = raw.get("relationships")
    if not isinstance(relationships, dict):
        yield "relationships", "must be an object"
    else:
        for kind in RELATIONSHIPS:
            names = relationships.get(kind)
            if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
                yield f"relationships.{kind}", "must be a list of agents' names"
    yield from _each(raw, "decision_history", _decision_errors)


def _each(raw: Mapping[str, Any], key: str, check: Any) -> Iterator[tuple[str, str]]:
    items = raw.get(key)
    if not isinstance(items, list):
        yield key, "must be a list"
        return
    for index, item in enumerate(items):
        if isinstance(item, dict):
            yield from ((f"{key}[{index}].{name}", message) for name, message in check(item))
        else:
            yield f"{key}[{index}]", "must be an object"


def _memory_errors(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if item.get("type") not in MEMORY_TYPES:
        yield "type", f"must be one of {', '.join(MEMORY_TYPES)}"
    content = item.get("content")
    if not isinstance(content, str) or not content:
        yield "content", "must be a text that is not empty"
    else:
        if len(content) > CONTENT_LIMIT:
            yield "content", f"has {len(content)} characters, at most {CONTENT_LIMIT}"
        if kind := find_secret(content):
            yield "content", f"holds what looks like a secret ({kind}): it is never told; forget it with --purge"
    if not isinstance(item.get("source_session"), str) or not item["source_session"]:
        yield "source_session", "must be a text that is not empty"
    confidence = item.get("confidence")
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        yield "confidence", "must be a number from 0 to 1"


def _decision_errors(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not isinstance(item.get("dr_id"), str) or not item["dr_id"]:
        yield "dr_id", "must be a text that is not empty"
    if item.get("role") not in ROLES:
        yield "role", f"must be one of {', '.join(ROLES)}"
    if not isinstance(item.get("position"), str):
        yield "position", "must be a text"
    if item.get("outcome") not in OUTCOMES:
        yield "outcome", f"must be one of {', '.join(OUTCOMES)}"


def _warnings(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    memories = raw.get("memories")
    if not isinstance(memories, list):
        return
    if len(memories) > MEMORY_CAP:
        yield "memories", f"{len(memories)} of them: the next addition keeps {MEMORY_CAP} and archives the rest"
    yield from _side_by_side(memories)
    seen: dict[str, int] = {}
    for index, item in enumerate(memories):
        content = item.get("content") if isinstance(item, dict) else None
        if not isinstance(content, str):
            continue
        where = f"memories[{index}].content"
        if CONTENT_TARGET < len(content) <= CONTENT_LIMIT:
            yield where, f"has {len(content)} characters: {CONTENT_TARGET} are the aim"
        if content != one_line(content):
            yield where, "has line breaks or characters that cannot be seen"
        if _ORDER.search(content):
            yield where, "is worded as an order or as markup: it is told as quoted data only"
        if (first := seen.setdefault(sameness(content), index)) != index:
            yield where, f"says the same as memories[{first}]"


def _side_by_side(memories: list[Any]) -> Iterator[tuple[str, str]]:
    contents = [item.get("content") if isinstance(item, dict) else None for item in memories]
    texts = [one_line(content) if isinstance(content, str) else "" for content in contents]
    for earlier, later, how in pairs(texts):
        if sameness(texts[earlier]) != sameness(texts[later]):
            yield f"memories[{later}].content", f"{how.value} memories[{earlier}]: {texts[earlier][:CONTENT_TARGET]}"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
