"""Reading the record of a party, strictly, as ``docs/schemas/party-record.schema.json`` has it.

A record that cannot be meant is refused whole, with every fault named, before anybody's memory changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sidecars.memory.operations import CONFIDENCE
from sidecars.memory.record import MEMORY_TYPES, RELATIONSHIPS, ROLES
from sidecars.party.record import CARRIED_BY, MODES, Contribution, PartyDecision, PartyRecord, is_decision_id
from witness.errors import DeclarationError, Problem


def read_record(data: bytes, file: str) -> PartyRecord:
    """Read the record of a party.

    Args:
        data: the file's bytes.
        file: how it is named in the problems.

    Raises:
        DeclarationError: it is not one; all faults at once.
    """
    try:
        raw = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DeclarationError([Problem(f"not JSON: {error}", file)]) from error
    if not isinstance(raw, dict):
        raise DeclarationError([Problem("must be a JSON object", file)])
    problems = [Problem(message, file, 0, key) for key, message in _faults(raw)]
    if problems:
        raise DeclarationError(problems)
    known = ("topic", "mode", "agents", "contributions", "decisions", "memories")
    return PartyRecord(
        topic=raw["topic"],
        mode=raw["mode"],
        agents=tuple(raw["agents"]),
        contributions=tuple(_contribution(each) for each in raw["contributions"]),
        decisions=tuple(_decision(each) for each in raw.get("decisions", [])),
        memories=tuple(raw.get("memories", [])),
        extra={key: value for key, value in raw.items() if key not in known},
    )


def _contribution(raw: Mapping[str, Any]) -> Contribution:
    return Contribution(
        agent=raw["agent"],
        round=raw.get("round", 1),
        role=raw.get("role", "participant"),
        type=raw.get("type", "reaction"),
        content=raw["content"],
        relations={kind: tuple(raw[kind]) for kind in RELATIONSHIPS if raw.get(kind)},
    )


def _decision(raw: Mapping[str, Any]) -> PartyDecision:
    texts = ("rationale", "dissent", "proponent", "opponent", "arbitrator")
    return PartyDecision(
        id=raw.get("id", ""),
        decision=raw["decision"],
        outcome=raw["outcome"],
        confidence=float(raw.get("confidence", 0.5)),
        positions=dict(raw.get("positions", {})),
        **{key: raw.get(key, "") for key in texts},
    )


def _faults(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not _is_text(raw.get("topic")):
        yield "topic", "must be a text that is not empty"
    if raw.get("mode") not in MODES:
        yield "mode", f"must be one of {', '.join(MODES)}"
    agents = raw.get("agents")
    if not isinstance(agents, list) or not agents or not all(map(_is_text, agents)) or len({*agents}) != len(agents):
        yield "agents", "must be a list of different agents' names, at least one"
        agents = None
    checks = (("contributions", _contribution_faults), ("decisions", _decision_faults), ("memories", _memory_faults))
    for key, check in checks:
        items = raw.get(key, [] if key != "contributions" else None)
        if not isinstance(items, list):
            yield key, "must be a list"
            continue
        for index, item in enumerate(items):
            if isinstance(item, dict):
                yield from ((f"{key}[{index}].{name}", message) for name, message in check(item, agents))
            else:
                yield f"{key}[{index}]", "must be an object"


def _contribution_faults(item: Mapping[str, Any], agents: list[str] | None) -> Iterator[tuple[str, str]]:
    yield from _agent_faults(item, "agent", agents, required=True)
    if not _is_text(item.get("content")):
        yield "content", "must be a text that is not empty"
    number = item.get("round", 1)
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        yield "round", "must be a whole number from 1"
    if item.get("role", "participant") not in ROLES:
        yield "role", f"must be one of {', '.join(ROLES)}"
    if not _is_text(item.get("type", "reaction")):
        yield "type", "must be a text that is not empty"
    for kind in RELATIONSHIPS:
        names = item.get(kind, [])
        if not isinstance(names, list) or not all(map(_is_text, names)):
            yield kind, "must be a list of agents' names"


def _decision_faults(item: Mapping[str, Any], agents: list[str] | None) -> Iterator[tuple[str, str]]:
    if not _is_text(item.get("decision")):
        yield "decision", "must be a text that is not empty"
    if item.get("outcome") not in CARRIED_BY:
        yield "outcome", f"must be one of {', '.join(CARRIED_BY)}"
    if not is_decision_id(item.get("id", "DR-001")):
        yield "id", "must look like DR-001"
    confidence = item.get("confidence", 0.5)
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        yield "confidence", "must be a number from 0 to 1"
    for key in ("rationale", "dissent"):
        if not isinstance(item.get(key, ""), str):
            yield key, "must be a text"
    for role in ("proponent", "opponent", "arbitrator"):
        yield from _agent_faults(item, role, agents, required=False)
    positions = item.get("positions", {})
    if not isinstance(positions, dict) or not all(isinstance(text, str) for text in positions.values()):
        yield "positions", "must be an object of texts by agent"


def _memory_faults(item: Mapping[str, Any], agents: list[str] | None) -> Iterator[tuple[str, str]]:
    yield from _agent_faults(item, "agent", agents, required=True)
    if not _is_text(item.get("content")):
        yield "content", "must be a text that is not empty"
    if item.get("type", "observation") not in MEMORY_TYPES:
        yield "type", f"must be one of {', '.join(MEMORY_TYPES)}"
    if item.get("basis", "observed") not in tuple(CONFIDENCE):
        yield "basis", f"must be one of {', '.join(CONFIDENCE)}"


def _agent_faults(
    item: Mapping[str, Any], key: str, agents: list[str] | None, *, required: bool
) -> Iterator[tuple[str, str]]:
    name = item.get(key)
    if name is None and not required:
        return
    if not _is_text(name):
        yield key, "must be an agent's name"
    elif agents is not None and name not in agents:
        yield key, f"{name!r} is not one of the party's agents"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
