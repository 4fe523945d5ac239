"""The rules about single memories: what may be added, what reinforces, what goes when there are too many.

The numbers are those of MDAN's memory protocol.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sidecars.memory.lenient_reader import read_memory
from sidecars.memory.record import (
    CONTENT_LIMIT,
    CONTENT_TARGET,
    MEMORY_TYPES,
    Applied,
    Entry,
    Memory,
    RuleError,
    Session,
    Sidecar,
    memory_to_json,
    one_line,
    sameness,
)
from sidecars.memory.secret_rules import find_secret
from witness.errors import NotFoundError

# How sure an agent may be, by what a memory rests on.
CONFIDENCE = {"explicit": 1.0, "unchallenged": 0.8, "observed": 0.6, "inferred": 0.5}

NEW_PER_SESSION = 5
MEMORY_CAP = 50
REINFORCE_STEP = 0.1
# Enough to undo a slip; what should be gone for good is purged.
UNDO_KEPT = 10


def add(sidecar: Sidecar, entry: Entry) -> Applied:
    """Remember something new; what is known already is reinforced instead.

    Raises:
        RuleError: it breaks a rule.
    """
    content, kind, basis, evidence, tags = _checked(entry)
    same = next((each for each in sidecar.memories if sameness(each.content) == sameness(content)), None)
    if same is not None:
        at_least = replace(same, confidence=max(same.confidence, CONFIDENCE[basis]))
        return _reinforced(sidecar, at_least, entry, "known already: reinforced")
    session = sidecar.books.sessions.get(entry.session) or Session("manual", entry.at)
    if session.new >= NEW_PER_SESSION:
        raise RuleError(
            f"this session has added its {NEW_PER_SESSION} memories: forget one of them first, or keep this for later"
        )
    memory = Memory(
        id=entry.id[:8],
        type=kind,
        content=content,
        source_session=entry.session,
        confidence=CONFIDENCE[basis],
        created_at=entry.at,
        last_reinforced_session=sidecar.sessions_participated,
        tags=tags,
        evidence=evidence,
    )
    sessions = {**sidecar.books.sessions, entry.session: replace(session, new=session.new + 1)}
    sidecar = replace(sidecar, books=replace(sidecar.books, sessions=sessions))
    kept = capped((*sidecar.memories, memory), newest={memory.id, *_ids_of_session(sidecar, entry.session)})
    note = "remembered"
    if len(content) > CONTENT_TARGET:
        note += f" ({len(content)} characters: {CONTENT_TARGET} are the aim)"
    return Applied(replace(sidecar, memories=kept), note, memory)


def _checked(entry: Entry) -> tuple[str, str, str, str, tuple[str, ...]]:
    content = check_content(str(entry.data.get("content") or ""))
    kind = str(entry.data.get("type") or "observation")
    if kind not in MEMORY_TYPES:
        raise RuleError(f"{kind!r} is not a type of memory: one of {', '.join(MEMORY_TYPES)}")
    basis = str(entry.data.get("basis") or "observed")
    if basis not in CONFIDENCE:
        raise RuleError(f"{basis!r} is not what a memory can rest on: one of {', '.join(CONFIDENCE)}")
    evidence = one_line(str(entry.data.get("evidence") or ""))[:CONTENT_LIMIT]
    tags = tuple(dict.fromkeys(filter(None, (one_line(str(tag)) for tag in entry.data.get("tags") or ()))))
    refuse_secrets(evidence, *tags)
    return content, kind, basis, evidence, tags


def check_content(text: str) -> str:
    """The content of a memory on one line.

    Raises:
        RuleError: it is empty, too long, or holds a secret.
    """
    content = one_line(text)
    if not content:
        raise RuleError("a memory needs a content")
    if len(content) > CONTENT_LIMIT:
        raise RuleError(
            f"the memory has {len(content)} characters: at most {CONTENT_LIMIT}, and {CONTENT_TARGET} are the aim"
        )
    refuse_secrets(content)
    return content


def refuse_secrets(*texts: str) -> None:
    """Raise when one of the texts holds a secret.

    Raises:
        RuleError: one does; the text is not repeated.
    """
    for text in texts:
        if kind := find_secret(text):
            raise RuleError(f"this looks like a secret ({kind}): say where it is kept, not what it is")


def capped(memories: tuple[Memory, ...], newest: set[str]) -> tuple[Memory, ...]:
    """At most ``MEMORY_CAP`` memories: the least confident go, the older of two equals first, the newest never.

    Args:
        memories: in the order of the file.
        newest: ids that are safe.
    """
    surplus = len(memories) - MEMORY_CAP
    if surplus <= 0:
        return memories
    order = sorted(
        (index for index, memory in enumerate(memories) if memory.id not in newest),
        key=lambda index: (memories[index].confidence, memories[index].last_reinforced_session, index),
    )
    gone = set(order[:surplus])
    return tuple(memory for index, memory in enumerate(memories) if index not in gone)


def _ids_of_session(sidecar: Sidecar, session: str) -> set[str]:
    return {memory.id for memory in sidecar.memories if memory.source_session == session}


def use(sidecar: Sidecar, entry: Entry) -> Applied:
    """Reinforce a memory that was used again."""
    return _reinforced(sidecar, find_memory(sidecar, str(entry.data.get("id") or "")), entry, "reinforced")


def find_memory(sidecar: Sidecar, given: str) -> Memory:
    """The memory whose id is, or alone begins with, what was given.

    Raises:
        NotFoundError: none, or several.
    """
    exact = [memory for memory in sidecar.memories if memory.id == given]
    found = exact or [memory for memory in sidecar.memories if given and memory.id.startswith(given)]
    if len(found) != 1:
        hint = "several begin so" if found else f"'gt memory show {sidecar.agent}' lists the ids"
        raise NotFoundError("memory", given, hint)
    return found[0]


def _reinforced(sidecar: Sidecar, memory: Memory, entry: Entry, note: str) -> Applied:
    # Once a session: an agent that says the same thing ten times is not ten times as right.
    if memory.reinforced_in != entry.session:
        memory = replace(
            memory,
            confidence=min(1.0, round(memory.confidence + REINFORCE_STEP, 4)),
            last_reinforced_session=sidecar.sessions_participated,
            reinforced_in=entry.session,
        )
    memories = tuple(memory if each.id == memory.id else each for each in sidecar.memories)
    return Applied(replace(sidecar, memories=memories), note, memory)


def forget(sidecar: Sidecar, entry: Entry) -> Applied:
    """Forget memories, kept for undo unless they are purged."""
    ids = [find_memory(sidecar, str(given)).id for given in entry.data.get("ids") or ()]
    gone = tuple(memory for memory in sidecar.memories if memory.id in ids)
    books = sidecar.books
    if gone and not entry.data.get("purge"):
        batch = tuple(memory_to_json(memory) for memory in gone)
        books = replace(books, forgotten=(*books.forgotten, batch)[-UNDO_KEPT:])
    for memory in gone:
        session = books.sessions.get(memory.source_session)
        if session is not None and session.is_open:
            # What this very session added and took back does not count against its limit.
            changed = replace(session, new=max(0, session.new - 1))
            books = replace(books, sessions={**books.sessions, memory.source_session: changed})
    kept = tuple(memory for memory in sidecar.memories if memory.id not in ids)
    return Applied(replace(sidecar, memories=kept, books=books), f"{len(gone)} forgotten")


def restore(sidecar: Sidecar, entry: Entry) -> Applied:
    """Bring back what was forgotten last."""
    if not sidecar.books.forgotten:
        raise RuleError("nothing was forgotten that could be brought back")
    back = sidecar.books.forgotten[-1]
    sidecar = replace(sidecar, books=replace(sidecar.books, forgotten=sidecar.books.forgotten[:-1]))
    merged, count = merge_memories(sidecar, back, entry)
    return Applied(merged, f"{count} brought back")


def merge_memories(sidecar: Sidecar, given: Any, entry: Entry) -> tuple[Sidecar, int]:
    """Take in memories that were written elsewhere; the cap holds, the five a session do not.

    Args:
        sidecar: the memory that takes them in.
        given: the memories as JSON; what cannot be read or holds a secret is left out.
        entry: the journal entry that brings them.

    Returns:
        The memory, and how many were taken in.
    """
    memories, newest, count = list(sidecar.memories), set(), 0
    for raw in given:
        memory = read_memory(raw, "", sidecar.sessions_participated, entry.at, [])
        if memory is None or find_secret(memory.content) or find_secret(memory.evidence):
            continue
        count += 1
        index = next((i for i, each in enumerate(memories) if sameness(each.content) == sameness(memory.content)), -1)
        if index >= 0:
            same = memories[index]
            memories[index] = replace(same, confidence=max(same.confidence, memory.confidence))
            continue
        taken = {each.id for each in memories}
        own = memory.id if memory.id and memory.id not in taken else f"{entry.id[:6]}{count:02x}"
        memories.append(replace(memory, id=own, last_reinforced_session=sidecar.sessions_participated))
        newest.add(own)
    return replace(sidecar, memories=capped(tuple(memories), newest)), count
