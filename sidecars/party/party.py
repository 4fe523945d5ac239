"""Party mode: several agents with their memories around one topic, from the start to what each takes home."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from sidecars.memory.briefing import memory_block
from sidecars.memory.paths import STATE, check_agent
from sidecars.memory.protocol import PARTY
from sidecars.memory.record import Sidecar, one_line
from sidecars.memory.secret_rules import without_secret
from sidecars.memory.sessions import Saved, SessionId, load, save
from sidecars.memory.store import MemoryStore, append_line, write_file
from sidecars.party.reading import read_record
from sidecars.party.record import MODES, PartyDecision, PartyRecord, write_decision
from sidecars.style import STYLE_BLOCK
from witness.errors import NotFoundError, UsageError
from witness.files import parse_json, read_project
from witness.journal.records import Usage

PARTIES = STATE / "parties"
MOST_ROUNDS = 3

# Who has which part, in the order in which the agents are named.
_ROLES = ("proponent", "opponent", "arbitrator")
_FEWEST = {"discussion": 2, "debate": 3, "consensus": 2}
_TASKS = {
    "proponent": "You argue for the proposition.",
    "opponent": "You argue against it, or for an alternative.",
    "arbitrator": "You take no side; you sum up, and in the end you rule.",
    "participant": "You speak for your own field.",
}


@dataclass(frozen=True, slots=True)
class Party:
    """A party that was started.

    Args:
        id: its name, by which it is ended.
        topic: what it is about.
        mode: one of ``MODES``.
        agents: who takes part, in the order of their parts.
        started_at: ISO date.
        ended_at: ISO date, empty while it is on.
        decisions: ids of the records that its end has written so far, in order.
        rounds: how many it may have.
        dollars: what its model has cost so far.
        failed: why it broke off, empty when it did not.
    """

    id: str
    topic: str
    mode: str
    agents: tuple[str, ...]
    started_at: str
    ended_at: str = ""
    decisions: tuple[str, ...] = ()
    rounds: int = MOST_ROUNDS
    dollars: float = 0.0
    failed: str = ""

    def role(self, agent: str) -> str:
        """Which part an agent has."""
        place = self.agents.index(agent)
        return _ROLES[place] if self.mode == "debate" and place < len(_ROLES) else "participant"

    @property
    def session(self) -> SessionId:
        """The session that all its agents are in."""
        return SessionId(self.id, PARTY)


def start_party(
    store: MemoryStore, agents: tuple[str, ...], topic: str, mode: str, rounds: int = MOST_ROUNDS
) -> tuple[Party, dict[str, str]]:
    """Start a party: load each agent's memory.

    Args:
        store: the project's memories.
        agents: who takes part; in a debate the first three are proponent, opponent and arbitrator.
        topic: what it is about.
        mode: one of ``MODES``.
        rounds: at most so many.

    Returns:
        The party, and each agent's briefing.

    Raises:
        UsageError: too few agents, one named twice or not usable, or no such mode; nothing was started.
    """
    if mode not in MODES:
        raise UsageError(f"{mode!r} is not a mode: one of {', '.join(MODES)}")
    for agent in agents:
        check_agent(agent)
    if len(set(agents)) != len(agents):
        raise UsageError("an agent is named twice")
    if len(agents) < _FEWEST[mode]:
        need = "a proponent, an opponent and an arbitrator" if mode == "debate" else "at least two agents"
        raise UsageError(f"a {mode} needs {need}: {len(agents)} named")
    if not one_line(topic):
        raise UsageError("a party needs a topic")
    stamp = store.now[:19].replace("-", "").replace(":", "")
    party = Party(f"party-{stamp}-{uuid4().hex[:6]}", one_line(topic), mode, agents, store.now, rounds=rounds)
    briefings = _briefings(store, party)
    _write(store.root, party)
    return party, briefings


def _briefings(store: MemoryStore, party: Party) -> dict[str, str]:
    return {agent: party_briefing(load(store, agent, party.session), party) for agent in party.agents}


def resume_party(store: MemoryStore, party: Party) -> tuple[Party, dict[str, str], PartyRecord]:
    """Go on with a party that broke off.

    Returns:
        The party, each agent's briefing, and the record of what was said until then.

    Raises:
        UsageError: it has ended, or nothing of it was recorded.
    """
    if party.ended_at:
        raise UsageError(f"{party.id} has ended: 'gt party run' holds another")
    path = record_path(store.root, party.id)
    try:
        record = read_record(read_project(path), str(path))
    except FileNotFoundError:
        record = PartyRecord(party.topic, party.mode, party.agents)
    party = replace(party, failed="")
    _write(store.root, party)
    return party, _briefings(store, party), record


def broke_off(store: MemoryStore, party: Party, why: str) -> Party:
    """Note that a party broke off: it is no session of anybody, so no memory fades by it."""
    party = replace(party, failed=one_line(why))
    _write(store.root, party)
    for agent in party.agents:
        store.change(agent, "cancel", party.session.name)
        store.fold(agent)
    return party


def note_costs(root: Path, party: Party, usage: Usage, at: str) -> Party:
    """Add what a party's model has cost to the party and to the ledger of all parties, ``parties/costs.jsonl``.

    Args:
        root: the project's root.
        party: whose.
        usage: what was spent since this was noted last.
        at: ISO date.
    """
    if not usage.calls:
        return party
    party = replace(party, dollars=round(party.dollars + usage.dollars, 6))
    _write(root, party)
    line = {"time": at, "party": party.id, **asdict(usage)}
    append_line(root / PARTIES / "costs.jsonl", f"{json.dumps(line)}\n".encode())
    return party


def all_parties(root: Path) -> list[Party]:
    """The parties of a project, the oldest first; what is no state of one is passed over."""
    folder = root / PARTIES
    files = sorted(folder.glob("party-*.json")) if folder.is_dir() else []
    found = []
    for path in files:
        if not path.name.endswith(".record.json"):
            with suppress(UsageError):
                found.append(_read(path))
    return found


def party_briefing(sidecar: Sidecar, party: Party) -> str:
    """What an agent is told when a party starts."""
    role = party.role(sidecar.agent)
    others = ", ".join(f"{agent} ({party.role(agent)})" for agent in party.agents if agent != sidecar.agent)
    frame = (
        f"You are {sidecar.display_name}, in a {party.mode} with {others}.\n"
        f"Topic: {json.dumps(party.topic, ensure_ascii=False)}\n"
        f"Your part: {role}. {_TASKS[role]}"
    )
    block = memory_block(sidecar, party.topic)
    return "\n\n".join(part for part in (frame, block, STYLE_BLOCK) if part)


def end_party(store: MemoryStore, party: Party, record: PartyRecord) -> tuple[Party, dict[str, Saved]]:
    """End a party: write its decision records, save every agent's memory.

    Safe to tell again after a crash: records are written once and each memory gains once.

    Raises:
        UsageError: the record is of another party, or names an id that another decision has.
    """
    if set(record.agents) != set(party.agents):
        raise UsageError(
            f"the record is of {', '.join(record.agents)}, but {', '.join(party.agents)} sat in {party.id}"
        )
    decisions: list[PartyDecision] = []
    for index, decision in enumerate(record.decisions):
        known = party.decisions[index] if index < len(party.decisions) else ""
        number = known or write_decision(store.root, decision_content(party, record, decision), decision.id)
        decisions.append(replace(decision, id=number))
        party = replace(party, decisions=tuple(each.id for each in decisions))
        _write(store.root, party)
    record = replace(record, decisions=tuple(decisions))
    saved = {agent: save(store, agent, party.session, record.gains(agent)) for agent in party.agents}
    party = replace(party, ended_at=party.ended_at or store.now, failed="")
    _write(store.root, party)
    return party, saved


def decision_content(party: Party, record: PartyRecord, decision: PartyDecision) -> dict[str, Any]:
    """A decision as its own file holds it, without its id; these files go into git, so no secret may."""
    parts = {role: getattr(decision, role) for role in _ROLES if getattr(decision, role)}
    participants: dict[str, Any] = {role: {"name": name, "displayName": name} for role, name in parts.items()}
    rest = [agent for agent in record.agents if agent not in parts.values()]
    if rest:
        participants["participants"] = [{"name": agent, "displayName": agent} for agent in rest]
    return {
        "topic": record.topic,
        "mode": record.mode,
        "participants": participants,
        "rounds": [
            {
                "round": each.round,
                "speaker": each.agent,
                "role": each.role,
                "type": each.type,
                "content": without_secret(each.content),
            }
            for each in record.contributions
        ],
        "decision": without_secret(decision.decision),
        "rationale": without_secret(decision.rationale),
        "confidence": decision.confidence,
        "dissent": without_secret(decision.dissent),
        "outcome": decision.outcome,
        "date": party.started_at,
        "party": party.id,
        "registered_in_graph": False,
    }


# -- files ------------------------------------------------------------------------------------------------------------


def record_path(root: Path, party: str) -> Path:
    """Where the record of a party that we run is written, turn by turn."""
    return root / PARTIES / f"{check_agent(party)}.record.json"


def write_record(root: Path, party: Party, record: PartyRecord) -> Path:
    """Write what is known of a running party so far; a crash loses at most the turn that was being spoken."""
    path = record_path(root, party.id)
    write_file(path, _json(record.to_json()))
    return path


def find_party(root: Path, given: str = "") -> Party:
    """The party of that id; the only one that is on when none is given.

    Raises:
        NotFoundError: no such party, or none is on.
        UsageError: several are on.
    """
    if given:
        path = root / PARTIES / f"{check_agent(given)}.json"
        if not path.is_file():
            raise NotFoundError("party", given)
        return _read(path)
    folder = root / PARTIES
    files = sorted(folder.glob("party-*.json")) if folder.is_dir() else []
    on = [party for path in files if not path.name.endswith(".record.json") and not (party := _read(path)).ended_at]
    if not on:
        raise NotFoundError("party", "", "none is on: 'gt party start' begins one")
    if len(on) > 1:
        raise UsageError(f"several parties are on: say which, {' or '.join(party.id for party in on)}")
    return on[0]


def _read(path: Path) -> Party:
    try:
        raw: Mapping[str, Any] = parse_json(read_project(path))
        return Party(**{**raw, "agents": tuple(raw["agents"]), "decisions": tuple(raw["decisions"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path} is not the state of a party: {error}") from error


def _write(root: Path, party: Party) -> None:
    written = {name: getattr(party, name) for name in Party.__slots__}
    write_file(root / PARTIES / f"{party.id}.json", _json(written))


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
