"""Joining two versions of one memory file, as a merge in git asks for.

Memories are joined by their id, decisions by that of their record, sessions by their name: what only one side changed
is taken, what both added is there once, what one side took away and the other left alone is gone. Where both sides
changed the same memory, the side that was written later has the text and the higher confidence stands. No rule of
remembering is applied here: nothing of either side may get lost in a merge, the next addition keeps to the cap.

A file with conflict marks holds both sides in full; ``sides_of`` takes it apart again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from sidecars.memory.record import Bookkeeping, DecisionEntry, Memory, Session, Sidecar, sameness

_V = TypeVar("_V")
_MARK = re.compile(rb"^(<{7}|\|{7}|={7}|>{7})(?:[ \r\n]|$)", re.MULTILINE)


def has_conflict_marks(data: bytes) -> bool:
    """Whether git has left both sides of a merge in a file; no JSON text can hold these lines."""
    marks = [match[1][:1] for match in _MARK.finditer(data)]
    return b"<" in marks and b"=" in marks and b">" in marks


def sides_of(data: bytes) -> tuple[bytes, bytes]:
    """Both versions of a file with conflict marks: ours and theirs.

    Raises:
        ValueError: the marks do not fit together.
    """
    ours, theirs, where = bytearray(), bytearray(), b""
    follows = {b"": b"<", b"<": b"|=", b"|": b"=", b"=": b">"}
    for line in data.splitlines(keepends=True):
        if mark := _MARK.match(line):
            sign = mark[1][:1]
            if sign not in follows[where]:
                raise ValueError("the conflict marks do not fit together")
            where = b"" if sign == b">" else sign
            continue
        if where in (b"", b"<"):
            ours += line
        if where in (b"", b"="):
            theirs += line
    if where:
        raise ValueError("the last conflict has no end")
    return bytes(ours), bytes(theirs)


def join(base: Sidecar, ours: Sidecar, theirs: Sidecar) -> Sidecar:
    """Join two versions of a memory.

    Args:
        base: what both come from; an empty memory where that is not known.
        ours: one version.
        theirs: the other.
    """
    later = theirs if theirs.last_updated > ours.last_updated else ours

    def both_memories(mine: Memory, other: Memory) -> Memory:
        newer, older = (other, mine) if later is theirs else (mine, other)
        return replace(
            newer,
            confidence=max(mine.confidence, other.confidence),
            last_reinforced_session=max(mine.last_reinforced_session, other.last_reinforced_session),
            tags=tuple(dict.fromkeys((*mine.tags, *other.tags))),
            extra={**older.extra, **newer.extra},
        )

    memories = _joined(_by_id(base), _by_id(ours), _by_id(theirs), both_memories)
    decisions = _joined(
        _decisions(base), _decisions(ours), _decisions(theirs), lambda mine, other: other if later is theirs else mine
    )
    kinds = dict.fromkeys((*ours.relationships, *theirs.relationships))
    return replace(
        ours,
        display_name=later.display_name,
        created_at=min(ours.created_at, theirs.created_at),
        last_updated=later.last_updated,
        sessions_participated=_sum(*(side.sessions_participated for side in (base, ours, theirs))),
        memories=_said_once(memories.values()),
        relationships={
            kind: _names(*(side.relationships.get(kind, ()) for side in (base, ours, theirs))) for kind in kinds
        },
        decision_history=tuple(decisions.values()),
        books=_books(base.books, ours.books, theirs.books),
        extra=_joined(base.extra, ours.extra, theirs.extra, lambda mine, other: other if later is theirs else mine),
    )


def _by_id(side: Sidecar) -> dict[str, Memory]:
    return {each.id: each for each in side.memories}


def _decisions(side: Sidecar) -> dict[str, DecisionEntry]:
    return {each.dr_id: each for each in side.decision_history}


def _joined(
    base: Mapping[str, _V], ours: Mapping[str, _V], theirs: Mapping[str, _V], both: Callable[[_V, _V], _V]
) -> dict[str, _V]:
    found: dict[str, _V] = {}
    for key in dict.fromkeys((*ours, *theirs)):
        if key in ours and key in theirs:
            mine, other = ours[key], theirs[key]
            if mine == other or base.get(key) == other:
                found[key] = mine
            else:
                found[key] = other if base.get(key) == mine else both(mine, other)
            continue
        kept = ours[key] if key in ours else theirs[key]
        # Taken away on the other side: gone, unless this side has changed it meanwhile.
        if key not in base or base[key] != kept:
            found[key] = kept
    return found


def _said_once(memories: Iterable[Memory]) -> tuple[Memory, ...]:
    # Two branches may have learned the same under two ids.
    found: dict[str, Memory] = {}
    for memory in memories:
        known = found.get(sameness(memory.content))
        best = memory if known is None else replace(known, confidence=max(known.confidence, memory.confidence))
        found[sameness(memory.content)] = best
    return tuple(found.values())


def _sum(base: int, ours: int, theirs: int) -> int:
    # What each side added; from a base that is not known only the larger is certain.
    return max(ours, theirs, ours + theirs - base) if base else max(ours, theirs)


def _names(base: Any, ours: Any, theirs: Any) -> Any:
    if not isinstance(ours, tuple) or not isinstance(theirs, tuple):
        return ours or theirs
    gone = {name for name in base if name not in ours or name not in theirs} if isinstance(base, tuple) else set()
    return tuple(name for name in dict.fromkeys((*ours, *theirs)) if name not in gone)


def _books(base: Bookkeeping, ours: Bookkeeping, theirs: Bookkeeping) -> Bookkeeping:
    kinds = dict.fromkeys((*ours.evidence, *theirs.evidence))
    return Bookkeeping(
        applied=tuple(dict.fromkeys((*ours.applied, *theirs.applied))),
        sessions=_joined(base.sessions, ours.sessions, theirs.sessions, _further),
        evidence={kind: _counts(*(each.evidence.get(kind, {}) for each in (base, ours, theirs))) for kind in kinds},
        forgotten=(*ours.forgotten, *(each for each in theirs.forgotten if each not in ours.forgotten)),
        faded_on=max(ours.faded_on, theirs.faded_on),
        extra={**theirs.extra, **ours.extra},
    )


def _further(mine: Session, other: Session) -> Session:
    return other if mine.is_open and not other.is_open else replace(mine, new=max(mine.new, other.new))


def _counts(base: Mapping[str, int], ours: Mapping[str, int], theirs: Mapping[str, int]) -> dict[str, int]:
    names = dict.fromkeys((*ours, *theirs))
    return {name: _sum(base.get(name, 0), ours.get(name, 0), theirs.get(name, 0)) for name in names}
