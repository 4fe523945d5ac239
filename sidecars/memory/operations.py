"""The rules about single memories: what may be added, what reinforces, what goes when there are too many.

The numbers are those of MDAN's memory protocol.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sidecars.memory.lenient_reader import read_memory
from sidecars.memory.record import (
    CONTENT_LIMIT,
    CONTENT_TARGET,
    MEMORY_TYPES,
    Applied,
    Dropped,
    Entry,
    Memory,
    RuleError,
    Session,
    Sidecar,
    memory_to_json,
    one_line,
    sameness,
)
from sidecars.memory.same_subject import Relation, is_fuller, nearest
from sidecars.memory.secret_rules import find_secret
from witness.errors import NotFoundError

# How sure an agent may be, by what a memory rests on.
CONFIDENCE = {"explicit": 1.0, "unchallenged": 0.8, "observed": 0.6, "inferred": 0.5}

NEW_PER_SESSION = 5
MEMORY_CAP = 50
REINFORCE_STEP = 0.1
# Enough to undo a slip; what should be gone for good is purged.
UNDO_KEPT = 10
# What a memory said before; what is older is in the archive.
HISTORY_KEPT = 5


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
    if found := nearest(content, ((each, each.content) for each in sidecar.memories)):
        old, how = found
        if how is Relation.RESTATES:
            return _restated(sidecar, old, entry, content, CONFIDENCE[basis])
        if basis != "inferred" or old.confidence <= CONFIDENCE[basis]:
            new = _fresh(sidecar, entry, kind, content, basis, evidence, (*old.tags, *tags))
            return _replaced(sidecar, old, new, entry.at)
    session = sidecar.books.sessions.get(entry.session) or Session("manual", entry.at)
    if session.new >= NEW_PER_SESSION:
        way = "forget one of them first, or keep this for later"
        if session.holder == "manual":
            way = f"'gt memory save {sidecar.agent}' ends it and begins the next, or forget one of them first"
        raise RuleError(f"this session has added its {NEW_PER_SESSION} memories: {way}")
    memory = _fresh(sidecar, entry, kind, content, basis, evidence, tags)
    sessions = {**sidecar.books.sessions, entry.session: replace(session, new=session.new + 1)}
    sidecar = replace(sidecar, books=replace(sidecar.books, sessions=sessions))
    sidecar = replace(sidecar, memories=(*sidecar.memories, memory))
    sidecar = capped(sidecar, {memory.id, *_ids_of_session(sidecar, entry.session)}, entry.at)
    note = "remembered"
    if len(content) > CONTENT_TARGET:
        note += f" ({len(content)} characters: {CONTENT_TARGET} are the aim)"
    if found:
        note += f"; it contradicts {found[0].id} ({found[0].content}), which is surer: both stand, forget one"
    return Applied(sidecar, note, memory)


def _fresh(
    sidecar: Sidecar, entry: Entry, kind: str, content: str, basis: str, evidence: str, tags: tuple[str, ...]
) -> Memory:
    return Memory(
        id=entry.id[:8],
        type=kind,
        content=content,
        source_session=entry.session,
        confidence=CONFIDENCE[basis],
        created_at=entry.at,
        last_reinforced_session=sidecar.sessions_participated,
        tags=tuple(dict.fromkeys(tags)),
        evidence=evidence,
    )


def _replaced(sidecar: Sidecar, old: Memory, new: Memory, at: str) -> Applied:
    # A correction is not one of a session's new memories: what is wrong must not stand because five were added.
    new = replace(new, history=_history(old, at))
    place = next(index for index, each in enumerate(sidecar.memories) if each.id == old.id)
    sidecar = without(sidecar, {old.id}, f"replaced by {new.id}", at)
    memories = (*sidecar.memories[:place], new, *sidecar.memories[place:])
    return Applied(replace(sidecar, memories=memories), f"replaces {old.id}: {old.content}", new)


def _restated(sidecar: Sidecar, old: Memory, entry: Entry, content: str, confidence: float) -> Applied:
    kept = replace(old, confidence=max(old.confidence, confidence))
    if is_fuller(content, old.content):
        kept = replace(kept, content=content, history=_history(old, entry.at))
        return _reinforced(sidecar, kept, entry, f"restates {old.id}, which has these words now: {old.content}")
    return _reinforced(sidecar, kept, entry, f"known already, and more of it: {old.content}")


def _history(old: Memory, at: str) -> tuple[Mapping[str, Any], ...]:
    was = {"id": old.id, "content": old.content, "confidence": old.confidence, "until": at}
    return (*old.history, was)[-HISTORY_KEPT:]


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


def capped(sidecar: Sidecar, newest: Collection[str], at: str) -> Sidecar:
    """At most ``MEMORY_CAP`` memories: the least confident go, the older of two equals first, the newest never.

    Args:
        sidecar: the memory; what goes is in its ``dropped`` afterwards.
        newest: ids that are safe.
        at: ISO date.
    """
    memories = sidecar.memories
    surplus = len(memories) - MEMORY_CAP
    if surplus <= 0:
        return sidecar
    order = sorted(
        (index for index, memory in enumerate(memories) if memory.id not in newest),
        key=lambda index: (memories[index].confidence, memories[index].last_reinforced_session, index),
    )
    gone = {memories[index].id for index in order[:surplus]}
    return without(sidecar, gone, f"beyond the {MEMORY_CAP} that are kept", at)


def without(sidecar: Sidecar, ids: Collection[str], why: str, at: str) -> Sidecar:
    """The memory without some of its memories, which go into the archive.

    Args:
        sidecar: the memory.
        ids: of those that go.
        why: in a few words.
        at: ISO date.
    """
    gone = tuple(Dropped(memory, why, at) for memory in sidecar.memories if memory.id in ids)
    kept = tuple(memory for memory in sidecar.memories if memory.id not in ids)
    return replace(sidecar, memories=kept, dropped=(*sidecar.dropped, *gone))


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
        batches = (*books.forgotten, batch)
        books = replace(books, forgotten=batches[-UNDO_KEPT:])
        sidecar = _archived(sidecar, batches[:-UNDO_KEPT], entry.at)
    for memory in gone:
        session = books.sessions.get(memory.source_session)
        if session is not None and session.is_open:
            # What this very session added and took back does not count against its limit.
            changed = replace(session, new=max(0, session.new - 1))
            books = replace(books, sessions={**books.sessions, memory.source_session: changed})
    kept = tuple(memory for memory in sidecar.memories if memory.id not in ids)
    if entry.data.get("purge"):
        also = {*ids, *map(str, entry.data.get("archived") or ())}
        kept = tuple(
            replace(memory, history=tuple(was for was in memory.history if was.get("id") not in also))
            for memory in kept
        )
    return Applied(replace(sidecar, memories=kept, books=books), f"{len(gone)} forgotten")


def _archived(sidecar: Sidecar, batches: Iterable[Iterable[Any]], at: str) -> Sidecar:
    # What --undo can no longer bring back was never purged: it can still be restored.
    read = (read_memory(raw, "", sidecar.sessions_participated, at, []) for batch in batches for raw in batch)
    gone = tuple(Dropped(memory, "forgotten", at) for memory in read if memory is not None)
    return replace(sidecar, dropped=(*sidecar.dropped, *gone))


def restore(sidecar: Sidecar, entry: Entry) -> Applied:
    """Bring back what was forgotten last, or the memories from the archive that the entry holds."""
    if given := entry.data.get("memories"):
        merged, taken = merge_memories(sidecar, given, entry, safe=True)
        return Applied(merged, f"{taken.new + taken.known} restored")
    if not sidecar.books.forgotten:
        raise RuleError("nothing was forgotten that could be brought back")
    back = sidecar.books.forgotten[-1]
    sidecar = replace(sidecar, books=replace(sidecar.books, forgotten=sidecar.books.forgotten[:-1]))
    merged, taken = merge_memories(sidecar, back, entry, safe=True)
    return Applied(merged, f"{taken.new + taken.known} brought back")


@dataclass(slots=True)
class Taken:
    """What became of memories that were written elsewhere.

    Args:
        new: how many stand in the memory that did not before.
        known: how many were known already.
        archived: how many went into the archive, as there are too many.
        left_out: one line for each that was not taken at all.
        cut: one line for each that was changed to fit.
    """

    new: int = 0
    known: int = 0
    archived: int = 0
    left_out: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)

    def told(self) -> str:
        """In words, one line."""
        parts = [f"{self.new + self.known + self.archived} taken in, {self.new} of them new"]
        if self.archived:
            parts.append(f"{self.archived} in the archive, as {MEMORY_CAP} are kept")
        if self.left_out:
            parts.append(f"{len(self.left_out)} left out")
        return ", ".join(parts)


def merge_memories(sidecar: Sidecar, given: Any, entry: Entry, *, safe: bool = False) -> tuple[Sidecar, Taken]:
    """Take in memories that were written elsewhere; the cap holds, the five a session do not.

    Args:
        sidecar: the memory that takes them in.
        given: the memories as JSON; what cannot be read or holds a secret is left out.
        entry: the journal entry that brings them.
        safe: whether they stay whatever their confidence; as many of them as there may be memories at all.

    Returns:
        The memory, and what became of each.
    """
    memories, taken, fresh = list(sidecar.memories), Taken(), list[str]()
    places = {sameness(each.content): index for index, each in enumerate(memories)}
    ids = {each.id for each in memories}
    for number, raw in enumerate(given, start=1):
        repairs: list[str] = []
        memory = read_memory(raw, f"memory {number}", sidecar.sessions_participated, entry.at, repairs)
        if memory is None or (kind := find_secret(f"{memory.content}\n{memory.evidence}")):
            taken.left_out.append(repairs[-1] if memory is None else f"memory {number}: holds a secret ({kind})")
            continue
        taken.cut += repairs
        index = places.get(sameness(memory.content), -1)
        if index >= 0:
            same = memories[index]
            memories[index] = replace(same, confidence=max(same.confidence, memory.confidence))
            taken.known += 1
            continue
        own = memory.id if memory.id and memory.id not in ids else f"{entry.id[:6]}{number:02x}"
        memory = replace(memory, id=own, last_reinforced_session=sidecar.sessions_participated)
        places[sameness(memory.content)] = len(memories)
        memories.append(memory)
        ids.add(own)
        fresh.append(own)
    before = len(sidecar.dropped)
    kept = set(fresh[:MEMORY_CAP]) if safe else _ids_of_session(sidecar, entry.session)
    sidecar = capped(replace(sidecar, memories=tuple(memories)), kept, entry.at)
    gone = {each.memory.id for each in sidecar.dropped[before:]}
    taken.new, taken.archived = len(set(fresh) - gone), len(gone)
    return sidecar, taken
