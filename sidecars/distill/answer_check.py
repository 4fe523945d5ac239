"""Whether the sentences of an answer are carried by the quotes beside it: their numbers, names and negations.

What a sentence means is not looked into. What it can be caught at is what it must have from somewhere: a number, a
name, a word in quotation marks, a "not". What the question said itself needs no quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'`(])|\n+")
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)*(?![\w]|\.\d)")
# What somebody has named: a word with a digit, a mark or a capital inside, or a capital where no sentence begins.
_NAME = re.compile(
    r"[`\"'“]([^`\"'”\n]{2,80})[`\"'”]"
    r"|\b(\w*(?:[a-z][A-Z]|[A-Za-z]\d|\d[A-Za-z]|_|::|\w\.[a-z](?=\w)|/\w+/)[\w./:-]*\w)"
    r"|(?<=[a-z,;:] )([A-Z]\w{2,})"
)
_NEGATION = re.compile(r"\b(?:no|not|never|none|nothing|nobody|neither|nor|without|cannot)\b|n't\b", re.IGNORECASE)
_DENYING = re.compile(
    r"\b(?:no|not|never|none|null|nil|nothing|nobody|neither|nor|without|cannot|false|0|zero|off|fail\w*|refus\w*|den\w+|"
    r"miss\w*|absen\w*|disabl\w*|reject\w*|invalid|error\w*|un\w+|in\w+able|lack\w*|empty|only|skip\w*|exclud\w*|void)\b"
    r"|n't\b",
    re.IGNORECASE,
)


def uncarried(answer: str, question: str, quotes: Iterable[str]) -> list[tuple[str, str]]:
    """The sentences that no quote carries, each with what is missing.

    Args:
        answer: what was answered.
        question: what was asked.
        quotes: what was quoted, and found where it was said to be.
    """
    known = "\n".join([*quotes, question])
    # Inside of a stamp or an identifier a number counts as known too.
    numbers = {*_numbers(known), *re.findall(r"\d+", known), *re.findall(r"\d+\.\d+", known)}
    plain = _plain(known)
    found = []
    for sentence in _SENTENCE.split(answer):
        missing = [each for each in _numbers(sentence) if each not in numbers]
        missing += [each for each in _names(sentence) if _plain(each) not in plain]
        if not missing and _NEGATION.search(sentence) and not _DENYING.search(known):
            missing = ["not"]
        if missing:
            found.append((sentence.strip(), ", ".join(dict.fromkeys(missing))))
    return found


def marked(answer: str, sentences: Iterable[str]) -> str:
    """The answer, with a mark behind each of these sentences."""
    for each in dict.fromkeys(sentences):
        answer = answer.replace(each, f"{each} [not in the quotes]")
    return answer


def _numbers(text: str) -> list[str]:
    # 48,213 and 48213 are one number, and so are 7 and 7.0.
    plain = [each.replace(",", "") for each in _NUMBER.findall(re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", text))]
    # A unit may stand without a blank: 120ms, 31.5kg.
    plain += [each.replace(",", "") for each in re.findall(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)(?=[a-zA-Z%]{1,3}\b)", text)]
    return [each.rstrip("0").rstrip(".") if "." in each else each for each in plain]


def _names(text: str) -> list[str]:
    names = [next(filter(None, each)) for each in _NAME.findall(text)]
    return [each for each in names if not re.fullmatch(r"\d[\d.,]*\w{0,3}", each)]


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()
