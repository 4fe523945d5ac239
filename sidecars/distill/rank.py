"""Lines of a text ranked for a question, in one pass and in little memory.

BM25, as in every search engine, but turned round: libraries for it (bm25s, rank-bm25) and SQLite's FTS5 first copy the
whole corpus into an index, which costs minutes and gigabytes for a log that is asked one question. Here the terms of
the one question are known, so the file is searched for them: an Aho-Corasick automaton goes through it once, whatever
the number of terms, and lets the other cores work. Frequencies come from that same pass.

How a line gets from the file to the reader: hits → groups of like lines, of which only a few are kept each → scores →
windows (the line and what belongs to it). Memory is bounded by the number of groups, not by that of hits.
"""

from __future__ import annotations

import math
import re
import threading
from collections import Counter
from dataclasses import dataclass, field

from sidecars.distill.decompress import PIECE
from sidecars.distill.errors import TimeoutSpentError
from sidecars.distill.layout import Layout, shape_of
from sidecars.distill.question import KIN, Matcher, Question, Term
from sidecars.distill.request import Deadline
from sidecars.distill.text import ANSI, LARGE, Text

# BM25's usual constants; b is low because a long log line is no worse than a short one.
_K1, _B = 1.2, 0.3

# What two pieces share, so that a term on their border is found: longer than any term.
_OVERLAP = 1024

# In a line longer than this (generated JSON on one line), hits further apart than this are not one place.
_SEGMENT = 2048

# Hits that one pass may bring, per 200 MB. A term more frequent than that tells little about where to look; it still
# counts in the lines that other terms have found.
MOST_HITS = 60_000
# A number that is asked for is counted exactly up to here; each hit costs about half a microsecond.
_MOST_COUNTED = 5_000_000
_SAMPLES, _SAMPLE = 48, 32 << 10

_MOST_GROUPS = 4096
_FIRST, _LAST = 3, 2
# Lines with the same terms that one piece gives; the others are only counted.
_MOST_OF_A_KIND = 48
_MOST_CANDIDATES = 150

# A word with a digit in it varies: a time, an address, the name of a case.
_VARYING = re.compile(rb"[\w:.-]*[0-9][\w:.-]*")
# Up to this size letters are compared without regard to case; it takes as long again as the search itself.
FOLDED = 64 << 20
_SUMMARY = re.compile(rb"(?i)\b(?:total|summary|passed|failed|results?|overall|finished|\d+\s*(?:/|of|out of)\s*\d+)\b")


@dataclass(slots=True)
class Occurrence:
    """One line, or one part of an overlong line, that holds terms.

    Args:
        text: index of its text among those that were ranked.
        line: one-based line number.
        offset: where the first hit is.
        mask: which terms it holds, one bit each.
        loud: whether a hit stands in capitals.
        score: how much it says, by its terms.
        lonely: 1 for the only one of its kind, less where there are many.
    """

    text: int
    line: int
    offset: int
    mask: int
    loud: bool = False
    score: float = 0.0
    lonely: float = 1.0


@dataclass(slots=True)
class _Group:
    """Lines that are alike but for their numbers."""

    count: int = 0
    first: list[Occurrence] = field(default_factory=list)
    last: list[Occurrence] = field(default_factory=list)

    def add(self, place: Occurrence) -> None:
        self.count += 1
        if len(self.first) < _FIRST:
            self.first.append(place)
        else:
            self.last.append(place)
            if len(self.last) > _LAST:
                del self.last[0]


@dataclass(slots=True)
class Count:
    """How often a term stands in the artifacts.

    Args:
        lines: in how many lines (in how many places of an overlong line).
        exact: False when it was estimated from a sample.
    """

    term: Term
    lines: int
    exact: bool


@dataclass(slots=True)
class Ranking:
    """What a pass has found.

    Args:
        places: the best lines, best first, like ones but once.
        alike: for each place, in words, how many lines are like it; empty when it is the only one.
        counts: for each term.
        lines: how many lines were searched.
        complete: False when the time was up before the end.
    """

    places: list[Occurrence]
    alike: dict[int, str]
    counts: list[Count]
    lines: int
    complete: bool


@dataclass(frozen=True, slots=True)
class _Sample:
    """What a sample tells of a text: for each term, how many hits its search will bring, and how many will count."""

    cost: list[float]
    hits: list[float]


class Ranker:
    """Ranks the lines of several texts for one question.

    Args:
        question: what is asked.
        deadline: a pass that is not through by then ends early and says so.
    """

    def __init__(self, question: Question, deadline: Deadline) -> None:
        self.question = question
        self._deadline = deadline
        self._terms = question.terms
        self._seen = [0] * len(self._terms)
        self._exact = [True] * len(self._terms)
        self._groups: dict[tuple[int, bytes], _Group] = {}
        # Sets of terms of which some lines were counted without a look at their template.
        self._uncounted: set[int] = set()
        self._matchers: dict[tuple[tuple[int, ...], bool], Matcher] = {}
        self._lines = 0
        self._complete = True

    # -- one pass ------------------------------------------------------------------------------------------------

    def scan(self, number: int, text: Text) -> None:
        """Go through one text once: find the terms, count the lines, hash the file.

        Only when none of the rare terms is there it is gone through again, for a frequent one.
        """
        if not self._terms or not text.size:
            self._lines += text.lines
            return
        sample = self._sample(text)
        ordered = sorted(range(len(self._terms)), key=lambda each: sample.cost[each])
        chosen: list[int] = []
        room = max(MOST_HITS, MOST_HITS * text.size / 200e6)
        while ordered and (not chosen or sample.cost[ordered[0]] <= room):
            room -= sample.cost[ordered[0]]
            chosen.append(ordered.pop(0))
        found = self._pass(number, text, chosen)
        while not found and ordered and self._complete:
            found = self._pass(number, text, [ordered.pop(0)])
        self._count(text, ordered, sample)
        self._lines += text.lines

    def _sample(self, text: Text) -> _Sample:
        """How frequent each term is in a sample of a large text; of a small one nothing needs to be known."""
        sample = _Sample([0.0] * len(self._terms), [0.0] * len(self._terms))
        if text.size <= 2 * LARGE:
            return sample
        matcher = Matcher(self._terms, fold=text.size <= FOLDED)
        step = max(_SAMPLE, text.size // _SAMPLES)
        looked = 0
        for offset in range(0, text.size, step):
            data = text.read(offset, offset + _SAMPLE)
            looked += len(data)
            for _, term in matcher.hits(data):
                for each in (term, *matcher.inside(term)):
                    sample.hits[each] += 1
        scale = text.size / max(1, looked)
        return _Sample([count * scale for count in matcher.touched], [count * scale for count in sample.hits])

    def _count(self, text: Text, terms: list[int], sample: _Sample) -> None:
        """The frequent terms' counts: exact where a number is asked for and can be had in time, else estimated."""
        asked = [
            each
            for each in terms
            if self.question.counting and self._terms[each].weight > KIN and sample.cost[each] <= _MOST_COUNTED
        ]
        for each in terms:
            if each not in asked:
                self._seen[each] += round(sample.hits[each])
                self._exact[each] = False
        if not asked or not self._complete:
            return
        matcher = Matcher((self._terms[each] for each in asked), fold=text.size <= FOLDED)
        try:
            for counts in text.each_piece(lambda offset: _count_lines(text, matcher, offset)):
                for each, count in zip(asked, counts, strict=True):
                    self._seen[each] += count
        except TimeoutSpentError:
            self._complete = False

    def _pass(self, number: int, text: Text, chosen: list[int]) -> bool:
        matcher = self._matcher(tuple(chosen), text.size <= FOLDED)
        stop = threading.Event()
        digest: list[str] = []
        hasher = None
        # A small file is hashed when it is quoted, and not for having been looked at.
        if not text.digest and text.size >= LARGE:
            hasher = threading.Thread(target=lambda: digest.append(text.hash_disk(stop.is_set)), daemon=True)
            hasher.start()
        newlines: list[int] = []
        found = through = False
        before = 0
        known = text.indexed
        try:
            for piece in text.each_piece(_Search(text, matcher, chosen)):
                if known:
                    before = text.newlines_before(len(newlines))
                newlines.append(piece.newlines)
                for place, template in piece.lines:
                    found = True
                    self._take(number, place, before, template)
                for mask, count in piece.more.items():
                    self._see(mask, count)
                    self._uncounted.add(mask)
                before += piece.newlines
            through = True
        except TimeoutSpentError:
            self._complete = False
        finally:
            if not through:
                stop.set()
            if hasher:
                hasher.join()
        if not known:
            # Also when the time was up: what was read can still be quoted by its lines.
            text.take_index(newlines, digest[0] if digest and through else "")
        return found

    def _matcher(self, chosen: tuple[int, ...], fold: bool) -> Matcher:
        """One for each choice of terms: a folder of thousands of small files makes the same choice every time."""
        key = (chosen, fold)
        if key not in self._matchers:
            self._matchers[key] = Matcher((self._terms[each] for each in chosen), fold=fold)
        return self._matchers[key]

    def _take(self, number: int, place: Occurrence, before: int, template: bytes) -> None:
        place.text = number
        place.line += before
        self._see(place.mask, 1)
        key = (place.mask, template)
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= _MOST_GROUPS:
                key = (place.mask, b"")
            group = self._groups.setdefault(key, _Group())
        group.add(place)

    def _see(self, mask: int, lines: int) -> None:
        while mask:
            bit = mask & -mask
            self._seen[bit.bit_length() - 1] += lines
            mask ^= bit

    # -- scores -------------------------------------------------------------------------------------------------

    def ranking(self) -> Ranking:
        """The result of all scans so far."""
        total = max(1, self._lines)
        rarity = [math.log(1 + (total - min(seen, total) + 0.5) / (seen + 0.5)) for seen in self._seen]
        places: list[Occurrence] = []
        alike: dict[int, str] = {}
        for group in self._groups.values():
            for place in (*group.first, *group.last):
                # A line of which there are thousands says less than one of its kind.
                place.lonely = 1 / (1 + 0.15 * math.log2(group.count))
                place.score = self._score(place, rarity) * place.lonely
                places.append(place)
                least = "at least " if place.mask in self._uncounted else ""
                alike[id(place)] = f"one of {least}{group.count} alike" if group.count > 1 else ""
        places.sort(key=lambda place: (-place.score, place.text, place.offset))
        counts = [Count(term, self._seen[each], self._exact[each]) for each, term in enumerate(self._terms)]
        return Ranking(places[:_MOST_CANDIDATES], alike, counts, self._lines, self._complete)

    def _score(self, place: Occurrence, rarity: list[float]) -> float:
        score = 0.0
        for each, term in enumerate(self._terms):
            if place.mask >> each & 1:
                # One occurrence a line is the rule, so that BM25's frequency part is the same for all.
                score += term.weight * rarity[each] * (_K1 + 1) / (1 + _K1 * (1 - _B + _B))
        return score * (1.15 if place.loud else 1.0)


@dataclass(slots=True)
class _Piece:
    """What one piece of a text holds.

    Args:
        newlines: how many newlines; up to the last line that is kept only, when the text's index is known.
        lines: the lines that are kept, numbered from the piece's beginning, each with its template.
        more: how many lines with which terms were only counted.
    """

    newlines: int = 0
    lines: list[tuple[Occurrence, bytes]] = field(default_factory=list)
    more: Counter[int] = field(default_factory=Counter)


class _Search:
    """Looks through pieces of a text for the lines that hold terms. Its calls may run in several threads.

    Args:
        text: the text.
        matcher: the terms.
        chosen: for each of its terms, the term's number in the question.
    """

    def __init__(self, text: Text, matcher: Matcher, chosen: list[int]) -> None:
        self._text, self._matcher = text, matcher
        # In JSON on overlong lines an object is what a line is elsewhere.
        heap = shape_of(text).layout is Layout.HEAP and text.read(0, 256).lstrip()[:1] in (b"{", b"[")
        self._end = b"}" if heap else b"\n"
        self._bits = [
            sum(1 << chosen[each] for each in (number, *matcher.inside(number))) for number in range(len(chosen))
        ]

    def __call__(self, offset: int) -> _Piece:
        data = self._text.read(offset, offset + PIECE + _OVERLAP)
        own = min(PIECE, len(data))
        found = _Piece()
        kept: Counter[int] = Counter()
        counted = 0

        def finish() -> None:
            nonlocal counted
            if kept[mask] >= _MOST_OF_A_KIND:
                found.more[mask] += 1
                return
            kept[mask] += 1
            found.newlines += data.count(b"\n", counted, first)
            counted = first
            before = max(0, first - _SEGMENT)
            begin = data.rfind(self._end, before, first) + 1 or before
            place = Occurrence(0, found.newlines + 1, offset + first, mask, loud)
            found.lines.append((place, template(data[begin : min(end, first + 160)])))

        first, end, mask, loud = 0, -1, 0, False
        for start, number in self._matcher.hits(data):
            if start >= own:
                break
            if start >= end or start - first > _SEGMENT:
                if mask:
                    finish()
                first, mask, loud = start, 0, False
                end = data.find(self._end, start)
                end = len(data) if end < 0 else end
            mask |= self._bits[number]
            loud = loud or data[start : start + 4].isupper()
        if mask:
            finish()
        if not self._text.indexed:
            found.newlines += data.count(b"\n", counted, own)
        return found


def _count_lines(text: Text, matcher: Matcher, offset: int) -> list[int]:
    """For each term, in how many lines of one piece it is. A line across two pieces may count in both."""
    data = text.read(offset, offset + PIECE + _OVERLAP)
    own = min(PIECE, len(data))
    counts, ends = [0] * len(matcher.terms), [0] * len(matcher.terms)
    for start, number in matcher.hits(data):
        if start >= own:
            break
        for each in (number, *matcher.inside(number)):
            if start >= ends[each]:
                counts[each] += 1
                end = data.find(b"\n", start)
                ends[each] = end if end >= 0 else len(data)
    return counts


def template(line: bytes) -> bytes:
    """A line without what varies from one of its kind to the next."""
    plain = ANSI.sub(b"", line[-320:]) if b"\x1b" in line else line[-320:]
    return _VARYING.sub(b"#", plain)[:160]


def bonus(line: bytes, question: Question, place: float) -> float:
    """What lets a line that sums up stand above one that only mentions.

    Args:
        line: its text.
        question: what is asked.
        place: how far down in the file it is, from 0 to 1.
    """
    factor = 1.0
    if _SUMMARY.search(line):
        factor *= 1.3 if question.counting else 1.1
    if question.quantity and re.search(rb"\d", line):
        factor *= 1.15
    # Logs end with what came of it.
    return factor * (1.1 if place > 0.95 else 1.0)
