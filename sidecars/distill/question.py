"""What of a question can be looked for in a text without understanding it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise


def word_set(text: str) -> frozenset[str]:
    """The words of a text, which is a list of words."""
    return frozenset(text.split())


# Words that stand in nearly every question and say nothing about where its answer is. Other languages need no list:
# what is frequent in the artifact weighs little anyway.
_STOP = word_set(
    """a about all also an and any anything are as at be been but by because can could did do does doing done each every
    few find for from get give given had happen happened has have how i if in into is it its just last
    many may me might more most much must my no not of on one only or our out please seen shall she
    should show so some such tell than that the their them then there these they this those to together told too
    using was we were what when where whether which while who whom whose why will with would you your"""
)
# These say a little: they are so frequent in questions that they may mean the artifact and not what is in it.
_FAINT = word_set(
    """artifact call called document file files kind line lines list log logs name named names text thing things use
    used uses"""
)

# Names of what is counted, which stand in no line of it.
GLUE = word_set(
    """line entry entries record row item time event message request response service component module level status code
    state case kind type field value occurrence one call log"""
)

# What stands where people ask with another word. Kin weigh less than what was asked.
_KIN: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (
        word_set("fail failed failing failure failures fails error errors wrong broke broken crash crashed why"),
        ("fail", "error", "exception", "traceback", "panic", "fatal", "assert", "not ok", "✗", "✘", "❌"),
    ),
    (word_set("pass passed passes passing succeed succeeded success ok green"), ("pass", "succe", "ok", "fail")),
    (word_set("timeout timeouts late hang hung hanging"), ("timeout", "timed out", "deadline")),
    (word_set("warn warning warnings"), ("warn",)),
    (word_set("skip skipped skips ignored"), ("skip", "ignore")),
    (word_set("memory oom"), ("out of memory", "oom", "memory")),
    (word_set("slow slowest duration"), ("elapsed", "duration", "seconds", "slow")),
    (word_set("flag option switch parameter argument setting"), ("flag", "option", "parameter", "argument", "--")),
    (word_set("maximum max largest biggest longest highest limit most"), ("max", "limit", "at most", "up to")),
    (word_set("minimum min smallest shortest lowest least"), ("min", "at least")),
    (word_set("off disable disabled disables deactivate deactivated"), ("disabl", "false", "off")),
    (word_set("on enable enabled enables activate activated"), ("enabl", "true")),
    (word_set("tls ssl https certificate"), ("tls", "ssl", "cert")),
    (word_set("postgres postgresql"), ("postgres", "pg", "pg_", "psql")),
    (word_set("folder folders directory directories"), ("director", "folder", "dir")),
    (word_set("environment env"), ("environ", "env")),
    (word_set("raise raised raises throw throws thrown"), ("raise", "throw")),
    (word_set("delete deleted remove removed drop dropped removes deletes drops"), ("delet", "remov", "drop")),
    (word_set("severity level"), ("severity", "level")),
    (word_set("holiday holidays vacation leave"), ("holiday", "vacation", "leave", "days off")),
    (word_set("cost costs price prices expensive pay paid"), ("cost", "price", "fee", "amount", "paid", "pay")),
    (word_set("salary earn earns wage"), ("salary", "earn", "wage", "pay")),
    (word_set("phone telephone"), ("phone", "tel", "extension")),
    (word_set("begin began begins start started starts"), ("begin", "start", "since")),
    (word_set("end ended ends finish finished"), ("end", "finish", "until")),
    (word_set("replace replaced replaces instead"), ("replac", "instead", "in place of")),
    (word_set("deprecated obsolete"), ("deprecat", "obsolete", "no longer")),
    (word_set("required requires need needs needed mandatory"), ("requir", "must", "need", "mandatory")),
    (word_set("version versions release"), ("version", "release")),
    (word_set("author wrote written maintainer"), ("author", "maintain", "written by")),
    (word_set("retry retries retried attempts"), ("retry", "retri", "attempt")),
)
# A question for a quantity is answered by a line with a number.
_QUANTITY = re.compile(
    r"\bhow (?:long|many|much|often|large|big|fast|old|far|high|deep|wide|small|similar)\b"
    r"|\b(?:size|number|limit|amount|maximum|minimum|percent\w*|rate|budget|price|cost|threshold|default|port|version|seed|date|when)\b",
    re.IGNORECASE,
)
_UNITS = (
    (re.compile(r"\bhow long\b", re.IGNORECASE), ("second", "minute", "hour", "days", "characters", "length")),
    (re.compile(r"\bwhen\b|\bdate\b", re.IGNORECASE), ("date", "since")),
    (re.compile(r"\bhow much\b", re.IGNORECASE), ("amount", "total")),
)
_HIGHEST = re.compile(r"\b(?:best|highest|largest|longest|biggest|maximum|greatest|most|slowest|max|top)\b", re.I)
_LOWEST = re.compile(r"\b(?:best|lowest|smallest|shortest|minimum|least|fastest|fewest|worst|min)\b", re.I)

_QUOTED = re.compile(r"[`\"“”«]([^`\"“”«»]{2,200})[`\"“”»]|'([^']{3,200})'(?!\w)")
_WORD = re.compile(r"[\w$@#/\\.:+\-]*\w", re.UNICODE)
_COUNTING = re.compile(r"\bhow (?:many|much|often)\b|\bnumber of\b|\bcount\b|\bcombien\b|\bwie ?viele?\b|\bcuánt", re.I)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ENDINGS = ("ations", "ation", "ures", "ure", "ings", "ing", "ied", "ies", "ed", "es", "s")

PHRASE, IDENTIFIER, NUMBER, WORD, FAINT, KIN = 3.0, 2.5, 2.0, 1.0, 0.5, 0.4


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for, in any case of letters.

    Args:
        text: what to look for, in lower case; a word's stem matches its forms.
        weight: how much of the question it is.
        whole: it counts only where no letter or digit touches it.
        typed: as it stands in the question, when that is another spelling.
    """

    text: str
    weight: float
    whole: bool = False
    typed: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question taken apart.

    Args:
        text: as it was asked.
        terms: what to look for, the weightiest first.
        counting: whether it asks for a number of lines or records.
        quantity: whether a number answers it.
        highest, lowest: of what it asks for the one of many with the highest or lowest number; empty when it does not.
    """

    text: str
    terms: tuple[Term, ...]
    counting: bool = False
    quantity: bool = False
    highest: str = ""
    lowest: str = ""


def stem(word: str) -> str:
    """The part of an English word that its forms begin with: ``failed``, ``failing`` and ``failure`` give ``fail``."""
    for ending in _ENDINGS:
        kept = word.removesuffix(ending)
        if kept != word and len(kept) >= 4 and not (ending == "s" and kept[-1] in "sui"):
            return kept[:-1] if len(kept) > 4 and kept[-1] == kept[-2] and kept[-1] not in "slz" else kept
    return word


def _terms_of(token: str) -> list[Term]:
    token = token.strip("/\\.:+-$@#") if not re.search(r"\d", token) else token.strip("\\.:+-")
    low = token.lower()
    if not low or low in _STOP:
        return []
    return _identifier(token, low) or [_word(low)]


def _word(low: str) -> Term:
    if low in _FAINT:
        return Term(stem(low), FAINT)
    return Term(low, WORD, whole=True) if len(low) <= 3 else Term(stem(low), WORD)


def _identifier(token: str, low: str) -> list[Term]:
    """The terms of what is no plain word; none when it is one."""
    if re.fullmatch(r"\d+(?:[.,:]\d+)*%?", low):
        return [Term(low, NUMBER, whole=True)]
    if _CJK.search(low):
        return [Term(a + b, WORD) for a, b in pairwise(low)] or [Term(low, WORD)]
    parts = [part for part in re.split(r"[^\w]+|_|(?<=[a-z])(?=[A-Z])", token) if len(part) > 1]
    if len(parts) > 1 or re.search(r"\d|_", low):
        # An identifier is looked for as it is, and its words in case it is written otherwise.
        own = [part.lower() for part in parts if part.lower() not in _STOP]
        return [
            Term(low, IDENTIFIER, typed=token),
            *(Term(part, KIN, whole=len(part) <= 3 or part.isdigit()) for part in own),
        ]
    return []


def _extreme(pattern: re.Pattern[str], text: str) -> str:
    """What the word behind "highest" or "lowest" is, its stem."""
    found = pattern.search(text)
    after = _WORD.search(text, found.end()) if found else None
    return stem(after[0].lower()) if after and after[0].lower() not in _STOP else ""


def parse_question(text: str) -> Question:
    """Take a question apart. Never fails; a question of stop words has no terms."""
    best: dict[str, Term] = {}

    def add(term: Term) -> None:
        if term.text not in best or best[term.text].weight < term.weight:
            best[term.text] = term

    for found in _QUOTED.finditer(text):
        phrase = " ".join((found[1] or found[2]).split())
        add(Term(phrase.lower(), PHRASE, typed=phrase))
    words = set()
    for token in _WORD.findall(text):
        for term in _terms_of(token):
            add(term)
        words.add(token.lower().strip(".:"))
    for asked, kin in _KIN:
        if asked & words:
            for each in kin:
                add(Term(each, KIN, whole=len(each) <= 3 and each.isascii()))
    if all(term.weight == FAINT for term in best.values()):
        best.clear()
    for unit, kin in _UNITS:
        if best and unit.search(text):
            for each in kin:
                add(Term(each, KIN))
    terms = sorted(best.values(), key=lambda term: -term.weight)[:48]
    return Question(
        text,
        tuple(terms),
        bool(_COUNTING.search(text)),
        bool(_QUANTITY.search(text)),
        _extreme(_HIGHEST, text),
        _extreme(_LOWEST, text),
    )


# All terms of a question as one search.

# Some bytes → (number of the pattern, start, end) of each hit.
Finder = Callable[[bytes], Iterable[tuple[int, int, int]]]
_CODE_BEFORE = re.compile(rb"\x1b\[[0-9;]*m\Z")


class Matcher:
    """All terms of a question, found together.

    Args:
        terms: what to look for.
        fold: compare without regard to case. Else a term is found as typed, in lower case, in CAPITALS and
            Capitalised, which is all that logs use, in half the time.
    """

    def __init__(self, terms: Iterable[Term], *, fold: bool = True) -> None:
        self.terms = tuple(terms)
        self._fold = fold
        self._owner: list[int] = []
        patterns: dict[bytes, int] = {}
        for number, term in enumerate(self.terms):
            for form in {term.text, term.text.upper(), term.text.capitalize(), term.typed} - {""}:
                raw = form.encode("utf-8", "replace")
                patterns.setdefault(raw.lower() if fold else raw, number)
        self._owner = list(patterns.values())
        self._search = finder(list(patterns)) if patterns else None
        # A hit of the longest term is one of the terms inside it as well.
        self._inside = [
            tuple(
                other
                for other, shorter in enumerate(self.terms)
                if other != number and not shorter.whole and shorter.text in term.text
            )
            for number, term in enumerate(self.terms)
        ]
        # What was found of each term, the hits included that do not stand alone: it is they that cost time.
        self.touched = [0] * len(self.terms)

    def hits(self, data: bytes) -> Iterator[tuple[int, int]]:
        """(offset, number of the term) of each hit, in order."""
        if self._search is None:
            return
        for pattern, start, end in self._search(data.lower() if self._fold else data):
            number = self._owner[pattern]
            self.touched[number] += 1
            if not self.terms[number].whole or _stands_alone(data, start, end):
                yield start, number

    def inside(self, number: int) -> tuple[int, ...]:
        """The terms that every hit of this one contains."""
        return self._inside[number]


def finder(patterns: Sequence[bytes]) -> Finder:
    """Look for many things at once: leftmost first, of several that begin there the longest, none inside another.

    Args:
        patterns: each other than the others, none empty.
    """
    try:
        from ahocorasick_rs import BytesAhoCorasick, MatchKind
    except ImportError:
        return plain_finder(patterns)
    # Only with this kind of match does the library look at 32 bytes at a time (Teddy): seven times as quick.
    search: Finder = BytesAhoCorasick(list(patterns), matchkind=MatchKind.LeftmostLongest).find_matches_as_indexes
    return search


def plain_finder(patterns: Sequence[bytes]) -> Finder:
    """``finder`` without a library that is not there for every system (the extra ``fast``): the same hits, slower."""
    numbers = {pattern: number for number, pattern in enumerate(patterns)}
    # The first branch that fits is taken, so the longest stand first; nothing in a branch can be tried twice.
    expression = re.compile(b"|".join(map(re.escape, sorted(patterns, key=len, reverse=True))))

    def search(data: bytes) -> Iterator[tuple[int, int, int]]:
        return ((numbers[hit.group()], hit.start(), hit.end()) for hit in expression.finditer(data))

    return search


def _stands_alone(data: bytes, start: int, end: int) -> bool:
    """Whether no letter or digit touches these bytes. The end of a colour code is no letter."""
    if data[end : end + 1].isalnum():
        return False
    return not data[start - 1 : start].isalnum() or _CODE_BEFORE.search(data, max(0, start - 12), start) is not None
