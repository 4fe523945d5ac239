"""What an agent's memory file holds, and how it is read from and written to JSON.

The format is that of the MDAN agent sidecar. Its published keys are fields here. The further keys that MDAN's own
program adds to a memory (``id``, ``tags``, ``created_at``, ``last_reinforced_session``) are always written: it sorts
and decays by them. What else stands in a file is carried along untouched. Our own bookkeeping is one key,
``gt_witness``, which others ignore and keep.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from witness.errors import UsageError
from witness.files import parse_json, typed

MEMORY_TYPES = ("observation", "preference", "context", "decision")
RELATIONSHIPS = ("agrees_with", "disagrees_with", "complements")
ROLES = ("proponent", "opponent", "arbitrator", "participant")
OUTCOMES = ("won", "lost", "compromised")

CONTENT_LIMIT = 500
CONTENT_TARGET = 100
BOOKKEEPING_KEY = "gt_witness"


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing that an agent remembers.

    Args:
        id: eight hex digits, unique in its file.
        type: one of ``MEMORY_TYPES``.
        content: one line of text.
        source_session: the session (a run, a party, or a date) that it was learned in.
        confidence: between 0 and 1.
        created_at: ISO date.
        last_reinforced_session: the count of sessions when it was last found true.
        tags: free words.
        evidence: what it rests on, in the words of its author; empty when nobody said.
        reinforced_in: the session that last reinforced it, so that one session does so once.
        history: what it said before, as ``{"id", "content", "confidence", "until"}``, the oldest first.
        extra: keys of other writers.
    """

    id: str
    type: str
    content: str
    source_session: str
    confidence: float
    created_at: str
    last_reinforced_session: int
    tags: tuple[str, ...] = ()
    evidence: str = ""
    reinforced_in: str = ""
    history: tuple[Mapping[str, Any], ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DecisionEntry:
    """One decision that the agent had a part in."""

    dr_id: str
    role: str
    position: str
    outcome: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """One session of an agent, open until it is saved.

    Args:
        holder: who sits in it (``rig/polecat``, ``party``, ``manual``); a holder has one open session at a time.
        opened_at: ISO date.
        new: how many memories it has added.
        closed_at: ISO date, empty while it is open.
        crashed: it was closed by the next start of its holder, not by its own end.
        gained: what it brought at its end was taken in.
    """

    holder: str
    opened_at: str
    new: int = 0
    closed_at: str = ""
    crashed: bool = False
    gained: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it was not saved yet."""
        return not self.closed_at


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """What the protocol needs to know besides the published keys.

    Args:
        applied: ids of the journal entries that the last fold put into the file.
        sessions: the open sessions and the last closed ones, by id.
        evidence: how often an interaction was seen, ``{relationship: {other agent: times}}``.
        forgotten: what was forgotten, newest last, each batch as the memories' JSON, for undo.
        faded_on: the day (ISO date) on which memories faded last; they do so once a day.
        extra: keys of later versions.
    """

    applied: tuple[str, ...] = ()
    sessions: Mapping[str, Session] = field(default_factory=dict)
    evidence: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    forgotten: tuple[tuple[dict[str, Any], ...], ...] = ()
    faded_on: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A memory that no longer stands in the file; it goes into the archive.

    Args:
        memory: as it stood.
        why: in a few words.
        at: ISO date.
    """

    memory: Memory
    why: str
    at: str


@dataclass(frozen=True, slots=True)
class Sidecar:
    """Everything that one agent remembers.

    Args:
        dropped: what the entries applied since the file was read have dropped. No part of the file: the fold takes it
            into the archive.
    """

    agent: str
    display_name: str
    created_at: str
    last_updated: str
    sessions_participated: int = 0
    memories: tuple[Memory, ...] = ()
    relationships: Mapping[str, Any] = field(default_factory=lambda: dict.fromkeys(RELATIONSHIPS, ()))
    decision_history: tuple[DecisionEntry, ...] = ()
    books: Bookkeeping = field(default_factory=Bookkeeping)
    extra: Mapping[str, Any] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()


def iso(seconds: float) -> str:
    """A wall clock time as JavaScript writes it: ``2026-11-30T12:00:00.000Z``."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def one_line(text: str) -> str:
    """The text in normal form on one line, without control and direction characters."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    spaced = "".join(" " if char.isspace() else char for char in unicodedata.normalize("NFC", text))
    return " ".join("".join(char for char in spaced if _is_shown(char)).split())


def _is_shown(char: str) -> bool:
    # The two joiners are part of Indic and Persian spelling. All else that cannot be seen could carry text past the
    # eyes of the reader of the memory (tag characters, direction marks); lone surrogates cannot be written as UTF-8.
    return char in "\u200c\u200d" or unicodedata.category(char) not in ("Cc", "Cf", "Cs")


def sameness(content: str) -> str:
    """What two contents have in common when they say the same thing in the same words."""
    return one_line(content).casefold().rstrip(".!; ")


def empty_sidecar(agent: str, now: str, display_name: str = "") -> Sidecar:
    """The memory of an agent that has none yet."""
    return Sidecar(agent, display_name or agent, now, now)


def memory_to_json(memory: Memory) -> dict[str, Any]:
    """A memory as it stands in the file."""
    written: dict[str, Any] = {
        "id": memory.id,
        "type": memory.type,
        "content": memory.content,
        "source_session": memory.source_session,
        "confidence": memory.confidence,
        "tags": list(memory.tags),
        "created_at": memory.created_at,
        "last_reinforced_session": memory.last_reinforced_session,
    }
    if memory.evidence:
        written["evidence"] = memory.evidence
    if memory.reinforced_in:
        written["reinforced_in"] = memory.reinforced_in
    if memory.history:
        written["history"] = [dict(was) for was in memory.history]
    return {**written, **memory.extra}


def sidecar_to_json(sidecar: Sidecar) -> dict[str, Any]:
    """The whole file as one JSON object; the published keys come first and in their published order."""
    return {
        "agent": sidecar.agent,
        "displayName": sidecar.display_name,
        "created_at": sidecar.created_at,
        "last_updated": sidecar.last_updated,
        "sessions_participated": sidecar.sessions_participated,
        "memories": [memory_to_json(memory) for memory in sidecar.memories],
        # Kinds of other writers stand here as they were read, whatever they are.
        "relationships": {
            kind: list(names) if isinstance(names, tuple) else names for kind, names in sidecar.relationships.items()
        },
        "decision_history": [
            {
                "dr_id": entry.dr_id,
                "role": entry.role,
                "position": entry.position,
                "outcome": entry.outcome,
                **entry.extra,
            }
            for entry in sidecar.decision_history
        ],
        **sidecar.extra,
        BOOKKEEPING_KEY: _books_to_json(sidecar.books),
    }


def _books_to_json(books: Bookkeeping) -> dict[str, Any]:
    return {
        **books.extra,
        "applied": list(books.applied),
        "sessions": {name: _session_to_json(session) for name, session in books.sessions.items()},
        "evidence": {kind: dict(counts) for kind, counts in books.evidence.items()},
        "forgotten": [list(batch) for batch in books.forgotten],
        **({"faded_on": books.faded_on} if books.faded_on else {}),
    }


def _session_to_json(session: Session) -> dict[str, Any]:
    return {each.name: getattr(session, each.name) for each in fields(Session)}


def dump(sidecar: Sidecar) -> bytes:
    """The bytes of the file: a memory is one line, so that a difference of two versions reads well."""
    content = sidecar_to_json(sidecar)
    try:
        return _dumped(content, escaped=False).encode()
    except UnicodeEncodeError:
        # Another writer's key holds half a character, which JSON can escape and UTF-8 cannot write.
        return _dumped(content, escaped=True).encode()


def _dumped(content: Mapping[str, Any], *, escaped: bool) -> str:
    # With an indent Python's own encoder is used, five times as slow as the other one on thousands of memories.
    lines = ",\n".join(f"    {json.dumps(each, ensure_ascii=escaped, allow_nan=False)}" for each in content["memories"])
    rest = json.dumps({**content, "memories": []}, ensure_ascii=escaped, indent=2, allow_nan=False)
    # No text in JSON holds a line break, so this stands at the top level alone.
    if lines:
        rest = rest.replace('\n  "memories": []', f'\n  "memories": [\n{lines}\n  ]', 1)
    return f"{rest}\n"


# One line of an agent's journal, and what it makes of a memory.


class RuleError(UsageError):
    """What was asked for breaks a rule of the memory protocol; nothing was written."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal.

    Args:
        id: unique; an entry is applied once.
        at: ISO date.
        session: in which session it happened.
        op: one of ``OPERATIONS``.
        data: what the operation needs.
    """

    id: str
    at: str
    session: str
    op: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Applied:
    """What an entry made of a memory.

    Args:
        sidecar: the memory after it.
        note: one line about what happened, for the person or agent that asked.
        memory: the memory that was added or reinforced, if the entry was about one.
        refused: what of several things broke a rule and was left out, one line each.
    """

    sidecar: Sidecar
    note: str = ""
    memory: Memory | None = None
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """An entry of the journal that no longer fits the memory, and why."""

    entry: Entry
    reason: str


def entry_to_line(entry: Entry) -> bytes:
    """The entry as the journal holds it: between two newlines, so that a torn line spoils only itself.

    Plain ASCII: what a shell hands over need not be UTF-8, and half a character must not stop an addition.
    """
    return f"\n{json.dumps(asdict(entry))}\n".encode()


def entries_of(data: bytes) -> tuple[Entry, ...]:
    """Read a journal; lines that were torn by a crash are skipped."""
    entries = []
    for line in data.splitlines():
        try:
            raw = parse_json(line)
            id, at, session, op = (typed(raw, key, str) for key in ("id", "at", "session", "op"))
            entries.append(Entry(id, at, session, op, typed(raw, "data", dict, {})))
        except (ValueError, KeyError, TypeError):
            continue
    return tuple(entries)
