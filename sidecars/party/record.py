"""The record of a party: who said what, what was decided, and what each agent gains from it.

Written by ``gt party run`` turn by turn, or by another program that held the party.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sidecars.memory.record import RELATIONSHIPS, one_line
from sidecars.memory.sessions import Gains
from witness.errors import UsageError
from witness.files import parse_json, read_project

MODES = ("discussion", "debate", "consensus")
# Who carried a decision: one side, both halfway, or everybody.
CARRIED_BY = ("proponent", "opponent", "compromise", "consensus")


@dataclass(frozen=True, slots=True)
class Contribution:
    """One turn.

    Args:
        agent: who spoke.
        round: in which round, from 1.
        role: as what, one of ``ROLES``.
        type: what kind of turn (proposition, rebuttal, position, …).
        content: what was said.
        relations: with whom the speaker agreed, disagreed, or whom it complemented.
    """

    agent: str
    round: int
    role: str
    type: str
    content: str
    relations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartyDecision:
    """One decision.

    Args:
        id: of its record (DR-001); empty before it has one.
        decision: what was decided.
        rationale: why.
        confidence: between 0 and 1.
        dissent: what the losing side still holds.
        proponent, opponent, arbitrator: who had these parts; empty where nobody had.
        outcome: one of ``CARRIED_BY``.
        positions: what each agent stood for.
    """

    id: str
    decision: str
    outcome: str
    rationale: str = ""
    confidence: float = 0.5
    dissent: str = ""
    proponent: str = ""
    opponent: str = ""
    arbitrator: str = ""
    positions: Mapping[str, str] = field(default_factory=dict)

    def role_of(self, agent: str) -> str:
        """Which part an agent had in it."""
        for role in ("proponent", "opponent", "arbitrator"):
            if getattr(self, role) == agent:
                return role
        return "participant"

    def outcome_for(self, agent: str) -> str:
        """What it was for an agent; the arbitrator has won where its ruling stands."""
        role = self.role_of(agent)
        if self.outcome in ("consensus", role):
            return "won"
        if self.outcome == "compromise" or role == "participant":
            return "compromised"
        return "won" if role == "arbitrator" else "lost"


@dataclass(frozen=True, slots=True)
class PartyRecord:
    """Everything that is kept of a party."""

    topic: str
    mode: str
    agents: tuple[str, ...]
    contributions: tuple[Contribution, ...] = ()
    decisions: tuple[PartyDecision, ...] = ()
    memories: tuple[Mapping[str, Any], ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def gains(self, agent: str) -> Gains:
        """What an agent takes home: its own memories, the decisions, and with whom it agreed how often."""
        memories: list[Mapping[str, Any]] = [
            {
                "type": "decision",
                "content": _fitting(f"{decision.id}: {decision.decision}"),
                "basis": "explicit",
                "evidence": decision.id,
            }
            for decision in self.decisions
        ]
        memories += [
            {key: value for key, value in memory.items() if key != "agent"}
            for memory in self.memories
            if memory["agent"] == agent
        ]
        relations = tuple(
            (kind, other)
            for contribution in self.contributions
            if contribution.agent == agent
            for kind in RELATIONSHIPS
            for other in contribution.relations.get(kind, ())
            if other != agent
        )
        decisions = tuple(
            {
                "dr_id": decision.id,
                "role": decision.role_of(agent),
                "position": decision.positions.get(agent) or self._first_words(agent),
                "outcome": decision.outcome_for(agent),
            }
            for decision in self.decisions
        )
        return Gains(memories=tuple(memories), relations=relations, decisions=decisions)

    def _first_words(self, agent: str) -> str:
        return next((_fitting(each.content, 200) for each in self.contributions if each.agent == agent), "")

    def to_json(self) -> dict[str, Any]:
        """As it stands in a file; ``read_record`` reads it back."""
        return {
            **self.extra,
            "topic": self.topic,
            "mode": self.mode,
            "agents": list(self.agents),
            "contributions": [_contribution_to_json(each) for each in self.contributions],
            "decisions": [_decision_to_json(each) for each in self.decisions],
            "memories": [dict(memory) for memory in self.memories],
        }


def _fitting(text: str, limit: int = 500) -> str:
    line = one_line(text)
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _contribution_to_json(each: Contribution) -> dict[str, Any]:
    written: dict[str, Any] = {
        "agent": each.agent,
        "round": each.round,
        "role": each.role,
        "type": each.type,
        "content": each.content,
    }
    return written | {kind: list(names) for kind, names in each.relations.items() if names}


def _decision_to_json(each: PartyDecision) -> dict[str, Any]:
    written: dict[str, Any] = {"decision": each.decision, "outcome": each.outcome}
    for key in ("id", "rationale", "dissent", "proponent", "opponent", "arbitrator"):
        if getattr(each, key):
            written[key] = getattr(each, key)
    return written | {"confidence": each.confidence, "positions": dict(each.positions)}


# Decision records, `mdan_output/decisions/DR-NNN.json`: numbered, written once, never overwritten.

FOLDER = Path("mdan_output") / "decisions"
_ID = re.compile(r"DR-(\d{3,9})")


def is_decision_id(value: Any) -> bool:
    """Whether it may name a record: it becomes a file name, so nothing else may stand in it."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def write_decision(root: Path, content: Mapping[str, Any], given: str = "") -> str:
    """Write a record.

    Args:
        root: the project's root.
        content: the record without its id.
        given: the id that it must have; the next free one when empty.

    Returns:
        Its id.

    Raises:
        UsageError: ``given`` is no id, or another record has it.
    """
    if given and not is_decision_id(given):
        raise UsageError(f"{given!r} is not the id of a decision record: write it like DR-001")
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    # The end of a party that crashed is told again: what it has written already is not written twice.
    if not given and (known := _same(folder, content)):
        return known
    while True:
        name = given or _next(folder)
        path = folder / f"{name}.json"
        data = (json.dumps({"id": name, **content}, ensure_ascii=False, indent=2) + "\n").encode()
        try:
            _create(path, data)
        except FileExistsError:
            if not given:
                continue  # somebody took the number meanwhile
            if read_project(path, len(data) + 1, cut=True) == data:
                return name
            raise UsageError(f"{path} is another decision: leave the id out to get the next free one") from None
        return name


def _next(folder: Path) -> str:
    taken = [
        int(match[1]) for path in folder.iterdir() if (match := _ID.fullmatch(path.stem)) and path.suffix == ".json"
    ]
    return f"DR-{max(taken, default=0) + 1:03d}"


def _same(folder: Path, content: Mapping[str, Any]) -> str:
    for path in sorted(folder.glob("DR-*.json")):
        try:
            raw = parse_json(read_project(path))
        except (OSError, ValueError):
            continue
        if isinstance(raw, dict) and {**raw, "id": ""} == {"id": "", **content}:
            return path.stem
    return ""


def _create(path: Path, data: bytes) -> None:
    # Whole or not at all: a link fails where the name is taken, a rename would overwrite it.
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
