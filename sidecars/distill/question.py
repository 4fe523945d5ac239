"""What of a question can be looked for in a text without understanding it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that stand in nearly every question and say nothing about where its answer is. Other languages need no list:
# what is frequent in the artifact weighs little anyway.
_STOP = _words(
    """a about all also an and any anything are as at be been but by can could did do does doing done each every
    few find for from get give given had happen happened has have how i if in into is it its just kind last list
    many may me might more most much must my name named no of on one only or our out please seen shall she
    should show so some such tell than that the their them then there these they this those to told use used
    using was we were what when where whether which while who whom whose why will with would you your artifact
    document file files line lines log logs text thing things"""
)

# What stands in logs where people ask with another word. Kin weigh less than what was asked.
_KIN: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (
        _words("fail failed failing failure failures fails error errors wrong broke broken crash crashed why"),
        ("fail", "error", "exception", "traceback", "panic", "fatal", "assert", "not ok", "✗", "✘", "❌"),
    ),
    (_words("pass passed passes passing succeed succeeded success ok green"), ("pass", "succe", "ok", "fail")),
    (_words("timeout timeouts late hang hung hanging"), ("timeout", "timed out", "deadline")),
    (_words("warn warning warnings"), ("warn",)),
    (_words("skip skipped skips"), ("skip",)),
    (_words("memory oom"), ("out of memory", "oom", "memory")),
    (_words("slow slowest long longest duration"), ("elapsed", "duration", "seconds", "slow")),
)

_QUOTED = re.compile(r"[`\"“”«]([^`\"“”«»]{2,200})[`\"“”»]|'([^']{3,200})'(?!\w)")
_WORD = re.compile(r"[\w$@#/\\.:+\-]*\w", re.UNICODE)
_COUNTING = re.compile(r"\bhow (?:many|much|often)\b|\bnumber of\b|\bcount\b|\bcombien\b|\bwie ?viele?\b|\bcuánt", re.I)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ENDINGS = ("ations", "ation", "ures", "ure", "ings", "ing", "ied", "ies", "ed", "es", "s")

PHRASE, IDENTIFIER, NUMBER, WORD, KIN = 3.0, 2.5, 2.0, 1.0, 0.4


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
        counting: whether it asks for a number.
    """

    text: str
    terms: tuple[Term, ...]
    counting: bool = False


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
    if len(low) <= 3:
        return [Term(low, WORD, whole=True)]
    return [Term(stem(low), WORD)]


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
    terms = sorted(best.values(), key=lambda term: -term.weight)[:48]
    return Question(text, tuple(terms), bool(_COUNTING.search(text)))
