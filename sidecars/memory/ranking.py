"""Which memories an agent is told at the start of a session, and why those."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sidecars.memory.protocol import DECAY_AFTER
from sidecars.memory.record import Memory, Sidecar
from sidecars.memory.secret_rules import find_secret

# What each view of a memory counts. Confidence leads: a sure memory that has nothing to do with the task still beats an
# unsure one that shares a word with it.
_WEIGHT_CONFIDENCE, _WEIGHT_RELEVANCE, _WEIGHT_RECENCY = 0.5, 0.3, 0.2
# Words shared with the task that make a memory wholly relevant.
_ENOUGH_WORDS = 3
_WORD = re.compile(r"[^\W_]{2,}")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# The words that stand in every English sentence tell nothing about what it is about.
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """about after all also always and any are because been before but can could does done each for from get had has
        have her him his how if in into is it its just make more most must never new not now of off on once one only or
        other our out over per should so some still such than that the their them then there these they this to too
        under until up use used uses using very was we were what when where which while who why will with without would
        you your""",
    )
)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A memory and what speaks for it.

    Args:
        memory: the memory.
        score: between 0 and 1; the briefing is in this order.
        recency: 1 when it was reinforced in the last session, half of that every ``DECAY_AFTER`` sessions.
        relevance: how much it shares with the task.
        shared: the words that it shares with the task.
        withheld: why it is never told, empty when it may be.
    """

    memory: Memory
    score: float
    recency: float
    relevance: float
    shared: tuple[str, ...]
    withheld: str = ""


def rank(sidecar: Sidecar, task: str = "") -> tuple[Ranked, ...]:
    """All memories, the most useful for the task first.

    Args:
        sidecar: the memory.
        task: what the session is about; without it, confidence and recency decide.
    """
    about = words(task)
    ranked = [_view(memory, sidecar.sessions_participated, about) for memory in sidecar.memories]
    # The later of two equals was learned later.
    order = sorted(range(len(ranked)), key=lambda index: (bool(ranked[index].withheld), -ranked[index].score, -index))
    return tuple(ranked[index] for index in order)


def _view(memory: Memory, sessions: int, about: frozenset[str]) -> Ranked:
    idle = max(0, sessions - memory.last_reinforced_session)
    recency = 0.5 ** (idle / DECAY_AFTER)
    shared = tuple(sorted(words(f"{memory.content} {' '.join(memory.tags)}") & about))
    relevance = min(1.0, len(shared) / _ENOUGH_WORDS)
    score = _WEIGHT_CONFIDENCE * memory.confidence + _WEIGHT_RELEVANCE * relevance + _WEIGHT_RECENCY * recency
    kind = find_secret(memory.content)
    return Ranked(
        memory, round(score, 4), round(recency, 4), round(relevance, 4), shared, f"holds a {kind}" * bool(kind)
    )


def words(text: str) -> frozenset[str]:
    """The words that say what a text is about; ``parseDuration`` and ``parse_duration`` give the same two."""
    return _stems(text) - _COMMON


def _stems(text: str) -> frozenset[str]:
    return frozenset(_stem(word.casefold()) for word in _WORD.findall(_CAMEL.sub(" ", text)))


def _stem(word: str) -> str:
    # Plurals alone: "test" must find "tests". More would need a language.
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def matching(sidecar: Sidecar, query: str) -> tuple[Memory, ...]:
    """The memories that hold every word of a query, in any form of case and plural."""
    asked = _stems(query)
    if not asked:
        return ()
    return tuple(each for each in sidecar.memories if asked <= _stems(f"{each.content} {' '.join(each.tags)}"))
