"""What anybody could write in five lines, to be held beside our own search: grep by distinct words, and BM25.

``rank_bm25`` and ``bm25s`` are laid into ``.cache/bench-retrieval`` by ``.ci/need-peers``; they are no dependency.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.bench.distill_corpus import Quote, readable

_LONG = 2_000
_BEST = 400
_SMALL_WORDS = (
    " a an and any are as at be before by can did do does else for from had has have how in into is it its long many "
    "me more much must no not of on one or say says so than that the their then there they this to was were what when "
    "where which who whom whose why will with you your "
)

Ranker = Callable[[list[str], str], list[int]]


@lru_cache(maxsize=4)
def passages(path: Path) -> list[Quote]:
    """What a baseline ranks: the lines with their numbers; of JSON on overlong lines the values with their pointers."""
    lines = readable(path)
    if path.suffix == ".json" and max(map(len, lines)) > _LONG:
        return [Quote(text, pointer) for pointer, text in _values(json.loads(path.read_text()), "", "")]
    return [Quote(line, f"L{number}") for number, line in enumerate(lines, 1) if line.strip()]


def _values(value: object, pointer: str, key: str) -> Iterator[tuple[str, str]]:
    shown = f"{json.dumps(key)}: " if key else ""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _values(each, f"{pointer}/{name}", name)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _values(each, f"{pointer}/{number}", "")
    else:
        yield pointer, shown + json.dumps(value)


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return re.findall(r"\w+", text.lower())


def grep(texts: list[str], question: str) -> list[int]:
    """Lines that hold a word of the question, those with the most distinct ones first."""
    wanted = {word for word in words(question) if f" {word} " not in _SMALL_WORDS and len(word) > 1}
    scores = [sum(word in low for word in wanted) for low in _lowered(texts)]
    return sorted((at for at, score in enumerate(scores) if score), key=lambda at: -scores[at])[:_BEST]


_memory: dict[tuple[str, int], tuple[list[str], object]] = {}


def _once(name: str, texts: list[str], make: Callable[[], Any]) -> Any:
    """What was made of these texts; kept for one collection of each name, since questions come artifact by artifact."""
    for (kept, _), (of, found) in list(_memory.items()):
        if kept == name and of is texts:
            return found
        if kept == name:
            del _memory[kept, id(of)]
    found = make()
    _memory[name, id(texts)] = (texts, found)
    return found


def _lowered(texts: list[str]) -> list[str]:
    found = _once("lowered", texts, lambda: [text.lower() for text in texts])
    assert isinstance(found, list)
    return found


def rank_bm25(texts: list[str], question: str) -> list[int]:
    """BM25Okapi of rank-bm25 over lower case words."""
    from rank_bm25 import BM25Okapi

    index = _once("rank_bm25", texts, lambda: BM25Okapi([words(text) or [""] for text in texts]))
    scores = index.get_scores(words(question))
    return [int(at) for at in (-scores).argsort(kind="stable")[:_BEST] if scores[at] > 0]


def bm25s(texts: list[str], question: str) -> list[int]:
    """bm25s as its manual shows it, with its English stop words."""
    import bm25s as library

    def make() -> Any:
        index = library.BM25()
        index.index(library.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
        return index

    index = _once("bm25s", texts, make)
    asked = library.tokenize([question], stopwords="en", show_progress=False)
    best = min(_BEST, len(texts))
    found, scores = index.retrieve(asked, k=best, show_progress=False)
    return [int(at) for at, score in zip(found[0], scores[0], strict=True) if score > 0]


def rapidfuzz(texts: list[str], question: str) -> list[int]:
    """rapidfuzz' token_set_ratio, the best of its scorers for texts of unequal length."""
    from rapidfuzz import fuzz, process, utils

    found = process.extract(question, texts, scorer=fuzz.token_set_ratio, processor=utils.default_process, limit=10)
    return [at for _, _, at in found]


def within(ranked: list[Quote], characters: int, numbered: bool) -> list[Quote]:
    """The best passages that fit, in their order; one that does not fit whole is cut.

    Args:
        ranked: best first.
        characters: how many there may be in all.
        numbered: whether ``L12:`` before the text and the end of the line count too.
    """
    kept, left = [], characters
    for each in ranked:
        left -= len(each.locator) + 2 if numbered else 0
        if left <= 0:
            break
        kept.append(Quote(each.text[:left], each.locator))
        left -= len(each.text)
    return kept
