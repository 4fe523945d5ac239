"""The words of a text, by which memories are ranked, searched and compared."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_WORD = re.compile(r"[^\W_]{2,}")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# The words that stand in every English sentence tell nothing about what it is about.
COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        """about after all also always and any are because been before but can could does done each for from get had has
        have her him his how if in into is it its just make more most must never new not now of off on once one only or
        other our out over per should so some still such than that the their them then there these they this to too
        under until up use used uses using very was we were what when where which while who why will with without would
        you your""",
    )
)


def words(text: str) -> frozenset[str]:
    """The words that say what a text is about; ``parseDuration`` and ``parse_duration`` give the same two."""
    return frozenset(stem(word) for word in split(text) if word not in COMMON_WORDS)


def stems(text: str) -> frozenset[str]:
    """The different stems of a text, common words included."""
    return frozenset(all_stems(text))


def all_stems(text: str) -> list[str]:
    """The stems of a text in order."""
    return [stem(word) for word in split(text)]


def split(text: str) -> list[str]:
    """The words of a text in order, without regard to case; identifiers are taken apart."""
    return [word.casefold() for word in _WORD.findall(_CAMEL.sub(" ", text))]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """A word without its endings."""
    return str(_stemmer().stemWord(word))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    # English, as nearly all memories of coding agents are; on other languages it does little, and to both sides alike.
    from snowballstemmer.english_stemmer import EnglishStemmer

    return EnglishStemmer()
