"""Whether a new memory says again, or says against, what an old one says.

Both are told only where it can be seen in the words; a wrong answer replaces a true memory, so what is unclear is
neither. Two memories **restate** each other when the one holds all that the other says: the same words in any form and
order, the same numbers, the same negation. They **contradict** each other when they have the same subject and another
value: all words alike but

- a *not*, or a pair of opposites (*enabled*, *disabled*);
- which of two comes first (*tabs over spaces*, *spaces over tabs*);
- a number that stands as a value (*port 80*, *after 30 s*), not as a name (*issue 12*);
- the one piece that follows *is*, *uses*, *=*, *lives in* and their like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from functools import lru_cache
from typing import TypeVar

from sidecars.memory.words import COMMON_WORDS, stem

_T = TypeVar("_T")
_TOKEN = re.compile(r"[^\W_](?:[\w./-]*\w)?%?|[=:]")
_NEGATIONS = frozenset(("not", "no", "never", "without", "neither", "nor"))
_SHORT = re.compile(r"\b(ca|wo|do|does|did|is|are|was|were|has|have|must|should|could|would)n['’]?t\b|\bcannot\b")
_ARTICLES = frozenset(("the", "a", "an", "this", "that", "these", "those", "our", "their", "its"))
_IS = frozenset(("is", "are", "was", "be", "=", ":", "uses", "use", "using", "named", "called", "via", "equals"))
# A place or a target is the value only after a verb that has one of it.
_TO = frozenset(("to", "in", "at", "on", "by", "from", "with"))
_PLACED = frozenset(
    map(
        stem,
        re.findall(
            r"\w+", "default set move rename switch pin point live stay run locate keep store deploy host own write"
        ),
    )
)
_ORDERED = frozenset(("over", "than", "instead", "before", "after"))
_COUNTED = _IS | frozenset(
    re.findall(
        r"\w+",
        """to at above below under over than after every each max min maximum minimum limit limited port version timeout
        python node java go ruby up least most exactly about within""",
    )
)
_UNIT = re.compile(
    r"%|(?:milli|micro)?seconds?|ms|secs?|s|minutes?|min|hours?|h|days?|weeks?|months?|years?|[kmgt]i?b|bytes?|times?"
    r"|retries|attempts?|workers?|threads?|connections?|requests?|rows?|lines?|cents?|euros?|dollars?|characters?"
)
_NUMBER = re.compile(r"v?\d[\w.]*%?")
_OPPOSITES = (
    "enabled disabled,enable disable,on off,allowed forbidden,allow forbid,always never,required optional,"
    "public private,synchronous asynchronous,sync async,true false,works fails,slow fast,safe unsafe,first last,"
    "increase decrease,open closed,before after,mutable immutable,default custom,stable unstable,mandatory optional"
)
# Of all words so many must be common, and at least so many in number.
_ALIKE, _FEWEST = 0.75, 2
_FEWEST_RESTATED = 3
_LONGEST_VALUE = 4


class Relation(Enum):
    """What one memory is to another."""

    RESTATES = "restates"
    CONTRADICTS = "contradicts"


@dataclass(frozen=True, slots=True)
class _Said:
    # Tokens in order, as stems and without articles; the words that carry the matter, without numbers and negations.
    tokens: tuple[str, ...]
    words: frozenset[str]
    numbers: frozenset[str]
    negated: bool


@lru_cache(maxsize=20_000)
def _said(content: str) -> _Said:
    plain = _SHORT.sub(lambda match: f"{match[1] or 'can'} not", content.casefold())
    raw = [token for token in _TOKEN.findall(plain) if token not in _ARTICLES]
    tokens = tuple(map(_token, raw))
    negations = sum(token in _NEGATIONS for token in raw)
    words = frozenset(
        token
        for token, given in zip(tokens, raw, strict=True)
        if given not in COMMON_WORDS and not _is_kept(given) and given not in _NEGATIONS
    )
    return _Said(tokens, words, frozenset(filter(_NUMBER.fullmatch, raw)), negations % 2 == 1)


def _is_kept(token: str) -> bool:
    return bool(_NUMBER.fullmatch(token)) or token in _IS or token in _TO or token in _ORDERED or token in _NEGATIONS


def _token(word: str) -> str:
    return word if _is_kept(word) else stem(word)


_OPPOSED = frozenset(frozenset(map(_token, pair.split())) for pair in _OPPOSITES.split(","))


def relation(new: str, old: str) -> Relation | None:
    """What a new memory's content is to an old one's; None when it is another matter.

    Args:
        new: the new content.
        old: the old one.
    """
    one, two = _said(new), _said(old)
    common = one.words & two.words
    if len(common) < _FEWEST:
        return None
    if _is_against(one, two, common):
        return Relation.CONTRADICTS
    less, more = sorted((one, two), key=lambda said: (len(said.words), len(said.numbers)))
    holds_all = less.words <= more.words and less.numbers <= more.numbers and one.negated == two.negated
    enough = len(common) >= _FEWEST_RESTATED and len(less.words) >= len(more.words) / 2
    return Relation.RESTATES if holds_all and enough else None


def is_fuller(new: str, old: str) -> bool:
    """Whether of two that restate each other the new one says more, or the same in new words."""
    one, two = _said(new), _said(old)
    return len(one.words) + len(one.numbers) >= len(two.words) + len(two.numbers)


def _is_against(one: _Said, two: _Said, common: frozenset[str]) -> bool:
    only_one, only_two = one.words - common, two.words - common
    alike = len(common) / max(len(one.words), len(two.words))
    if one.negated != two.negated:
        return alike >= _ALIKE and one.numbers == two.numbers
    if one.words == two.words and one.numbers == two.numbers:
        if frozenset(set(one.tokens) ^ set(two.tokens)) in _OPPOSED:
            return True
        ordered = set(one.tokens) & set(two.tokens) & _ORDERED
        return bool(ordered) and _sides(one, ordered) == tuple(reversed(_sides(two, ordered)))
    opposed = [pair for pair in _OPPOSED if len(pair & only_one) == 1 and len(pair & only_two) == 1]
    if opposed and len(only_one) == len(only_two) == 1:
        return True
    return _another_value(one, two)


def _sides(said: _Said, ordered: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    # What stands directly before and after the word that orders two things.
    at = next(index for index, token in enumerate(said.tokens) if token in ordered)
    near = [token for token in said.tokens[max(0, at - 1) : at + 2] if token in said.words]
    return frozenset(near[:1]), frozenset(near[-1:])


def _another_value(one: _Said, two: _Said) -> bool:
    spans = [
        (a, b, c, d)
        for tag, a, b, c, d in SequenceMatcher(None, one.tokens, two.tokens, autojunk=False).get_opcodes()
        if tag != "equal"
    ]
    if not spans:
        return False
    if all(_is_count(one.tokens, a, b) and _is_count(two.tokens, c, d) for a, b, c, d in spans):
        return True
    if len(spans) > 1:
        return False
    a, b, c, d = spans[0]
    values = one.tokens[a:b], two.tokens[c:d]
    subject = [token for token in one.tokens[:a] if token in one.words]
    if len(subject) < _FEWEST or not all(0 < len(value) <= _LONGEST_VALUE for value in values):
        return False
    if any(token in _IS or token in _ORDERED for value in values for token in value):
        return False
    return _leads_to_a_value(one.tokens[:a])


def _is_count(tokens: tuple[str, ...], begin: int, end: int) -> bool:
    if end - begin != 1 or not _NUMBER.fullmatch(tokens[begin]):
        return False
    before, after = tokens[begin - 1] if begin else "", tokens[end] if end < len(tokens) else ""
    later = any(token in ("is", "are", "was") for token in tokens[end:])
    stems = {stem(word) for word in _COUNTED}
    return not later and (before in _COUNTED or before in stems or bool(_UNIT.fullmatch(after)))


def _leads_to_a_value(before: tuple[str, ...]) -> bool:
    last = before[-1]
    if last in _IS:
        return True
    return last in _TO and len(before) > 1 and before[-2] in _PLACED


# -- among many -------------------------------------------------------------------------------------------------------


def nearest(content: str, others: Iterable[tuple[_T, str]]) -> tuple[_T, Relation] | None:
    """The first of many that a new content contradicts, else the first that it restates.

    Args:
        content: the new content.
        others: anything, with its content.
    """
    restated = None
    words = _said(content).words
    for other, said in others:
        if len(words & _said(said).words) < _FEWEST:
            continue
        found = relation(content, said)
        if found is Relation.CONTRADICTS:
            return other, found
        if found is not None and restated is None:
            restated = (other, found)
    return restated


def pairs(contents: list[str]) -> Iterator[tuple[int, int, Relation]]:
    """All that restate or contradict each other, by their places; the earlier one first.

    Args:
        contents: of the memories.
    """
    holders: dict[str, list[int]] = {}
    for later, content in enumerate(contents):
        shared: dict[int, int] = {}
        for word in _said(content).words:
            for earlier in holders.get(word, ()):
                shared[earlier] = shared.get(earlier, 0) + 1
            holders.setdefault(word, []).append(later)
        for earlier in sorted(shared):
            # Two of a few words in common are looked at, two of many are not: thousands are checked in a second.
            few = min(len(_said(content).words), len(_said(contents[earlier]).words))
            if shared[earlier] >= max(_FEWEST, few // 2) and (found := relation(content, contents[earlier])):
                yield earlier, later, found
