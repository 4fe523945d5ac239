"""From ranked lines to what a reader is shown: the line, what belongs to it, and no two of a kind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from sidecars.distill.answer import Claim
from sidecars.distill.errors import TimeoutSpentError, UnreadableError
from sidecars.distill.question import KIN, Question
from sidecars.distill.rank import Occurrence, Ranking, bonus
from sidecars.distill.term_matcher import Matcher
from sidecars.distill.text import Text, rune_start, shown
from sidecars.distill.text_pool import TextPool

# A quote longer than this is cut to what is around its hits; more than so many lines are no quote but a page.
_LONGEST_LINE = 240
_MOST_LINES = 6
_LONGEST_WINDOW = 420

# A place that scores less than this part of the best is noise beside it.
_LEAST_SCORE = 0.1
# Each further window with the same terms is worth that much less.
_SAME_AGAIN = 0.8

# What a piece of evidence costs in JSON beside its strings.
_FRAME = len('{"path": "", "locator": "", "quote": "", "reason": "", "verified": false}, ')


@dataclass(frozen=True, slots=True)
class Window:
    """Some lines that are quoted together.

    Args:
        name: the artifact.
        start, end: the bytes of the quote.
        quote: them as text.
        mask: which terms stand in them.
        score: of the line that it is about.
        alike: in words, how many lines are like that one.
    """

    name: str
    start: int
    end: int
    quote: str
    mask: int
    score: float
    alike: str


class Windows:
    """Chooses windows for a ranking.

    Args:
        question: what is asked.
        ranking: its lines.
        names: the texts' names, in the order in which they were ranked.
        shelf: where the texts are.
    """

    def __init__(self, question: Question, ranking: Ranking, names: list[str], shelf: TextPool) -> None:
        self._question = question
        self._ranking = ranking
        self._names = names
        self._shelf = shelf
        self._matcher = Matcher(question.terms)
        # What is too frequent to be searched for is too frequent to make two lines belong together.
        self._rare = sum(1 << at for at, each in enumerate(ranking.counts) if each.exact)
        self._asked = self._rare & sum(1 << at for at, each in enumerate(question.terms) if each.weight > KIN)

    def claims(self, room: int) -> list[Claim]:
        """The best windows as evidence, in the order in which they stand in the artifacts.

        Args:
            room: how many characters of JSON they may take together.
        """
        chosen: list[tuple[Window, Claim]] = []
        for window in self._best_first():
            if self._overlaps(window, chosen):
                continue
            try:
                claim = self._claim(window)
            except (UnreadableError, TimeoutSpentError):
                continue
            cost = _FRAME + sum(len(json.dumps(each, ensure_ascii=False)) - 2 for each in vars_of(claim))
            if cost > room:
                if room < 2 * _FRAME:
                    break
                continue
            room -= cost
            chosen.append((window, claim))
        order = {name: number for number, name in enumerate(self._names)}
        chosen.sort(key=lambda each: (order[each[0].name], each[0].start))
        return [claim for _, claim in chosen]

    def _best_first(self) -> Iterator[Window]:
        waiting = []
        for place in self._ranking.places:
            # A file of many may be gone since it was searched; a packed one may take more time than is left.
            with suppress(UnreadableError, TimeoutSpentError):
                waiting.append(self._window(place))
        waiting.sort(key=lambda each: -each.score)
        seen: Counter[int] = Counter()
        best = waiting[0].score if waiting else 0.0
        while waiting:
            # The order changes only downwards, so the first whose worth still beats the next one's score is the best.
            window = max(waiting[:64], key=lambda each: each.score * _SAME_AGAIN ** seen[each.mask])
            if window.score * _SAME_AGAIN ** seen[window.mask] < _LEAST_SCORE * best:
                return
            seen[window.mask] += 1
            waiting.remove(window)
            yield window

    @staticmethod
    def _overlaps(window: Window, chosen: list[tuple[Window, Claim]]) -> bool:
        return any(
            window.name == other.name and window.start < other.end and other.start < window.end for other, _ in chosen
        )

    # -- one window ---------------------------------------------------------------------------------------------

    def _mask(self, data: bytes) -> int:
        mask = 0
        for _, number in self._matcher.hits(data):
            mask |= 1 << number
            for each in self._matcher.inside(number):
                mask |= 1 << each
        return mask

    def _window(self, place: Occurrence) -> Window:
        text = self._shelf.text(self._names[place.text])
        start, end = text.around(place.offset)
        line = text.read(start, end)
        mask = self._mask(line) | place.mask
        more = (mask & ~place.mask).bit_count()
        score = place.score * (1 + 0.05 * more) * bonus(line, self._question, place.offset / max(1, text.size))
        if self._shelf.is_json(text):
            start, end = _json_value(text, place.offset)
            mask = self._mask(text.read(start, end))
        elif end - start > _LONGEST_LINE:
            start, end = _cut(text, place.offset, start, end)
        else:
            start, end, mask = self._belonging(text, start, end, line, mask)
        data = rune_start(text.read(start, end))
        alike = self._ranking.alike.get(id(place), "")
        return Window(text.name, start, end, shown(data).strip(), mask, score, alike)

    def _belonging(self, text: Text, start: int, end: int, line: bytes, mask: int) -> tuple[int, int, int]:
        """The line with the lines after it that are its own: deeper, or about the question too."""
        depth = _indent(line)
        lines = 1
        while lines < _MOST_LINES and end - start < _LONGEST_WINDOW:
            after = text.read(end + 1, end + 1 + _LONGEST_LINE)
            stop = after.find(b"\n")
            if stop < 0 and end + 1 + len(after) < text.size:
                break  # an overlong line is a place of its own
            own = after if stop < 0 else after[:stop]
            if not own.strip() or end + 1 + len(own) - start > _LONGEST_WINDOW:
                break
            terms = self._mask(own)
            if not (_indent(own) > depth or terms & self._rare & ~mask or (terms & self._asked).bit_count() > 1):
                break
            mask |= terms
            end += 1 + len(own)
            lines += 1
        return start, end, mask

    def _claim(self, window: Window) -> Claim:
        text = self._shelf.text(window.name)
        terms = [term.text for number, term in enumerate(self._question.terms) if window.mask >> number & 1]
        reason = ", ".join(terms[:4]) + (f" ({window.alike})" if window.alike else "")
        end = window.start + len(text.read(window.start, window.end).rstrip())
        return Claim(window.name, self._shelf.place(text, window.start, end), window.quote, reason)


def vars_of(claim: Claim) -> tuple[str, str, str, str]:
    """The strings of a claim."""
    return claim.path, claim.locator, claim.quote, claim.reason


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" \t"))


def _cut(text: Text, offset: int, start: int, end: int) -> tuple[int, int]:
    low = max(start, offset - _LONGEST_LINE // 3)
    high = min(end, low + _LONGEST_LINE)
    # Begin and end at a blank where one is near.
    left = text.read(low, offset).find(b" ") + 1 if low > start else 0
    right = text.read(offset, high).rfind(b" ") if high < end else -1
    return low + min(left, 40), offset + right if right > high - offset - 40 else high


def _json_value(text: Text, offset: int) -> tuple[int, int]:
    """The bounds of the smallest object around ``offset``, or of the string there when that object is long."""
    begin = max(0, offset - _LONGEST_LINE)
    # One character a byte, so that offsets stay what they are; strings and brackets are told apart even so.
    data = text.read(begin, offset + 2 * _LONGEST_LINE).decode("latin-1")
    at = offset - begin
    decode = json.JSONDecoder(strict=False).raw_decode
    for opening in '{"':
        left = at + 1
        while (left := data.rfind(opening, 0, left)) >= 0:
            try:
                _, right = decode(data, left)
            except ValueError:
                continue
            if at < right <= left + 2 * _LONGEST_LINE:
                return begin + left, begin + right
    return _cut(text, offset, *text.around(offset, _LONGEST_LINE, _LONGEST_LINE))
