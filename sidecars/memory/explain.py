"""Where a memory came from, and why it ranks where it does."""

from __future__ import annotations

from typing import Any

from sidecars.memory.briefing import MOST_MEMORIES
from sidecars.memory.protocol import DECAY_AFTER, DECAY_STEP, FORGOTTEN_UNDER
from sidecars.memory.ranking import Ranked, rank
from sidecars.memory.record import Memory, Sidecar


def explained(sidecar: Sidecar, task: str = "") -> list[dict[str, Any]]:
    """One view of each memory, the first to be told first.

    Args:
        sidecar: the memory.
        task: what the ranking is for.

    Returns:
        For each its numbers and, under ``lines``, the same in words.
    """
    return [_view(place, each, sidecar) for place, each in enumerate(rank(sidecar, task), start=1)]


def sessions_left(memory: Memory, sessions: int) -> int:
    """After how many more sessions without being reinforced the memory is gone.

    Args:
        memory: the memory.
        sessions: the count of sessions so far.
    """
    if memory.confidence < FORGOTTEN_UNDER:
        return 1
    # The first session that takes something away, and the number that must.
    first = max(1, memory.last_reinforced_session + DECAY_AFTER + 1 - sessions)
    confidence, steps = memory.confidence, 0
    while confidence >= FORGOTTEN_UNDER:
        confidence, steps = round(confidence - DECAY_STEP, 4), steps + 1
    return first + steps - 1


def _view(place: int, each: Ranked, sidecar: Sidecar) -> dict[str, Any]:
    memory, sessions = each.memory, sidecar.sessions_participated
    left = sessions_left(memory, sessions)
    session = sidecar.books.sessions.get(memory.source_session)
    source = memory.source_session + (f" ({session.holder})" if session and session.holder else "")
    told = each.withheld or ("told" if place <= MOST_MEMORIES else f"not told: only the first {MOST_MEMORIES} are")
    lines = [
        f"{place}. {memory.id} [{memory.type}] {memory.content}",
        f"   from {source}, {memory.created_at}" + (f"; evidence: {memory.evidence}" if memory.evidence else ""),
        f"   score {each.score:g}: relevance {each.relevance:g}"
        + (f" (shares {', '.join(each.shared)})" if each.shared else "")
        + f", then confidence {memory.confidence:g}, recency {each.recency:g}",
        f"   {told}; gone after {left} more session(s) unless it is used again",
    ]
    return {
        "id": memory.id,
        "place": place,
        "content": memory.content,
        "source_session": memory.source_session,
        "holder": session.holder if session else "",
        "created_at": memory.created_at,
        "evidence": memory.evidence,
        "score": each.score,
        "confidence": memory.confidence,
        "recency": each.recency,
        "relevance": each.relevance,
        "shared": list(each.shared),
        "told": not each.withheld and place <= MOST_MEMORIES,
        "sessions_left": left,
        "lines": lines,
    }
