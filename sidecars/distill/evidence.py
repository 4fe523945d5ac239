"""Whether a quote stands where it is said to stand.

A right quote with a wrong line number is the commonest fault of models, an invented quote beside a right number the
worst. So the text decides, not the number: a quote that is not at its locator is looked for everywhere, and one that is
found in a single other place is moved there. Compared are characters: colour codes are taken out, runs of blanks are
one blank, and what could not be decoded matches what could not be decoded.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sidecars.distill.answer import Claim, Evidence, Lines, Pointer, lines_of, parse_locator
from sidecars.distill.decompress import PIECE
from sidecars.distill.errors import UnreadableError
from sidecars.distill.pointer import NotJsonError
from sidecars.distill.text import ANSI, Text
from sidecars.distill.text_pool import TextPool

LONGEST_QUOTE = 2000

# A quote shorter than this stands everywhere, so that finding it somewhere else proves nothing.
_SHORTEST_MOVED = 6
# A locator over more lines than this is narrowed to where the quote is.
_WIDEST = 60
# Places of a quote that are no text match anything like it; a quote of many such is no quote.
_MOST_WILD = 16
# Blanks and colour codes inside a quote are not counted in it, but they are in the text.
SLACK = 4096


@dataclass(frozen=True, slots=True)
class Checked:
    """One claim after the check, and what is to be said about it among the gaps."""

    evidence: Evidence
    gap: str = ""


class Quote:
    """A quote as a pattern."""

    def __init__(self, quote: str) -> None:
        self.length = len(quote.encode("utf-8", "replace"))
        # Not split(): other blanks than these are characters that must be there.
        words = [_word(word) for word in re.split(r"[ \t\n\f\r]+", quote) if word]
        self._pattern: Any = _compiled(rb"[ \t\n\f\r]+".join(words), "\ufffd" in quote) if words else None

    def spans(self, text: Text, start: int, end: int, most: int = 2) -> list[tuple[int, int]]:
        """Where it stands between two offsets, the first ``most`` times."""
        if self._pattern is None:
            return []
        found: list[tuple[int, int]] = []
        overlap = 2 * self.length + SLACK

        def search(offset: int) -> list[tuple[int, int]]:
            low, high = max(offset, start), min(offset + PIECE + overlap, end)
            own = min(offset + PIECE, end)
            inside = _matches(self._pattern, text.read(low, high), most) if low < own else []
            return [(low + a, low + b) for a, b in inside if low + a < own]

        for spans in text.each_piece(search, start, end):
            found += spans
            if len(found) >= most:
                break
        return [span for span in found[:most] if span[0] < end]


def _word(word: str) -> bytes:
    # What readers are shown as U+FFFD was bytes that are no text, or a control character.
    return rb"[^\x20-\x7e]+".join(re.escape(part.encode("utf-8", "replace")) for part in re.split("\ufffd+", word))


def _compiled(pattern: bytes, wild: bool) -> Any:
    if not wild:
        # Words and blanks have nothing in common, so that no text makes this slow; re is quick to load and to search.
        return re.compile(pattern)
    try:
        import re2
    except ImportError:  # our own expression: slower on a text that is made for it, and right
        return re.compile(pattern)

    options = re2.Options()
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1  # bytes are compared, whatever they are
    options.max_mem = 32 << 20
    return re2.compile(pattern, options)


def _matches(pattern: Any, data: bytes, most: int) -> list[tuple[int, int]]:
    if b"\x1b" not in data:
        return _first(pattern, data, most)
    # Search without the colour codes, then say where that was with them.
    starts, shifts, parts, at, clean = [0], [0], [], 0, 0
    for code in ANSI.finditer(data):
        parts.append(data[at : code.start()])
        clean += code.start() - at
        at = code.end()
        starts.append(clean)
        shifts.append(at - clean)
    parts.append(data[at:])

    def raw(offset: int, last: bool) -> int:
        where = bisect_right(starts, offset - last) - 1
        return offset + shifts[max(0, where)]

    return [(raw(a, False), raw(b, True)) for a, b in _first(pattern, b"".join(parts), most)]


def _first(pattern: Any, data: bytes, most: int) -> list[tuple[int, int]]:
    found = []
    for match in pattern.finditer(data):
        found.append((match.start(), match.end()))
        if len(found) >= most:
            break
    return found


class Checker:
    """Checks claims against the texts.

    Args:
        shelf: where the texts are.
    """

    def __init__(self, shelf: TextPool) -> None:
        self._shelf = shelf

    def check_all(self, claims: Iterable[Claim]) -> list[Checked]:
        """Check each claim; like ones once.

        Raises:
            TimeoutSpentError: the time was up before all were checked.
        """
        checked: dict[tuple[str, str, str], Checked] = {}
        for claim in claims:
            one = self.check(claim)
            checked.setdefault((one.evidence.path, one.evidence.locator, one.evidence.quote), one)
        return list(checked.values())

    def check(self, claim: Claim) -> Checked:
        """Check one claim: keep it, move it, or mark it unverified."""
        quote = claim.quote[:LONGEST_QUOTE].strip()
        try:
            text = self._shelf.meant(claim.path)
        except UnreadableError as error:
            return _unverified(claim, quote, claim.path, f"{claim.path!r} {error.reason}")
        if not quote.replace("\ufffd", "").strip():
            return _unverified(claim, quote, text.name, f"{text.name} {claim.locator}: no text was quoted")
        if len(re.findall("\ufffd+", quote)) > _MOST_WILD:
            return _unverified(claim, quote, text.name, f"{text.name} {claim.locator}: most of the quote is no text")
        pattern = Quote(quote)
        locator = lines_of(claim.locator, text.places) if text.places else parse_locator(claim.locator)
        span = self._span(text, locator)
        if span and (found := pattern.spans(text, *span, most=1)):
            return Checked(Evidence(text.name, self._kept(text, locator, found[0]), quote, claim.reason, True))
        return self._elsewhere(claim, quote, text, pattern)

    def _span(self, text: Text, locator: Lines | Pointer | None) -> tuple[int, int] | None:
        if isinstance(locator, Lines):
            return text.span(locator.first, locator.last)
        if isinstance(locator, Pointer):
            try:
                return self._shelf.json(text).span(locator)
            except NotJsonError:
                return None
        return None

    def _kept(self, text: Text, locator: Lines | Pointer | None, found: tuple[int, int]) -> str:
        if text.places or (isinstance(locator, Lines) and locator.last - locator.first > _WIDEST):
            return self._shelf.place(text, *found)
        if isinstance(locator, Lines):
            return str(Lines(locator.first, min(locator.last, max(locator.first, text.lines))))
        return str(locator)

    def _elsewhere(self, claim: Claim, quote: str, text: Text, pattern: Quote) -> Checked:
        where = f"{text.name} {claim.locator}".strip()
        if len("".join(quote.split())) < _SHORTEST_MOVED:
            return _unverified(claim, quote, text.name, f"{where}: {quote!r} is not there, and too short to look for")
        spans = pattern.spans(text, 0, text.size, most=4)
        if len(spans) == 1:
            return Checked(Evidence(text.name, self._shelf.place(text, *spans[0]), quote, claim.reason, True))
        if not spans:
            return _unverified(claim, quote, text.name, f"{where}: the quote {_short(quote)} is nowhere in it")
        lines = ", ".join(self._shelf.place(text, span[0], span[0]) for span in spans[:3]) + (
            "…" if len(spans) > 3 else ""
        )
        problem = f"{where}: the quote {_short(quote)} is not there, but in several other places ({lines})"
        return _unverified(claim, quote, text.name, problem)


def _unverified(claim: Claim, quote: str, name: str, gap: str) -> Checked:
    return Checked(Evidence(name, claim.locator, quote, claim.reason, False), gap)


def _short(quote: str) -> str:
    plain = re.sub(r"\s+", " ", quote)
    return repr(plain if len(plain) <= 60 else plain[:59] + "…")


# Whether the sentences of an answer are carried by the quotes beside it: their numbers, names and negations.
#
# What a sentence means is not looked into. What it can be caught at is what it must have from somewhere: a number, a
# name, a word in quotation marks, a "not". What the question said itself needs no quote.

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
