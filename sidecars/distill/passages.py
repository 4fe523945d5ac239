"""From ranked lines to what a reader is shown: the lines that belong together, and no two passages of a kind."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from sidecars.distill.answer import Claim
from sidecars.distill.errors import TimeoutSpentError, UnreadableError
from sidecars.distill.layout import Layout, Lines, Shape, shape_of
from sidecars.distill.question import KIN, Matcher, Question
from sidecars.distill.rank import Occurrence, Ranking, bonus, template
from sidecars.distill.text import Text, rune_start, shown
from sidecars.distill.text_pool import TextPool
from sidecars.distill.window import Span, heap_span, spans

# Up to this size a text that is no log is looked at as a whole, since what belongs together may be far apart.
_WHOLE = 4 << 20
# Of a larger one, what is around a place.
_NEAR = 12 << 10
_MOST_LOOKED_AT = 300
_SMALLEST_PASSAGE, _LARGEST_PASSAGE = 180, 480

# A place that scores less than this part of the best is noise beside it.
_LEAST_SCORE = 0.1
# What was quoted already is worth that much less each further time.
_SAME_AGAIN = 0.8
# What stands in lines nearby counts, the less the further; so does what stands in the lines above in the outline.
_NEARBY, _FADING, _FURTHEST = 0.6, 0.8, 12
_ABOVE = 0.7
# A word that weighs less than this part of the weightiest does not make two lines belong together.
_TELLING = 0.3
# Of so many lines that are alike, each is quoted by itself.
_MANY_ALIKE = 4
_EXTREME = 1.6
# Letters in the middle of a word are that word only by chance.
_INSIDE = 0.45

# What a piece of evidence costs in JSON beside its strings.
_FRAME = len('{"path": "", "locator": "", "quote": "", "reason": "", "verified": false}, ')


@dataclass(slots=True)
class Candidate:
    """One line about which a passage can be.

    Args:
        name: the artifact.
        page: the lines around it.
        line: its number on the page.
        offset: a place in it.
        strengths: for each term, how surely the line is about it.
        factor: what else speaks for it.
        alike: in words, how many lines are like it.
        tight: whether it is quoted without what is around it.
        worth: how much it says that was not quoted yet.
    """

    name: str
    page: Lines
    line: int
    offset: int
    strengths: dict[int, float]
    factor: float = 1.0
    alike: str = ""
    tight: bool = False
    worth: float = field(default=0.0)


class Windows:
    """Chooses passages for a ranking.

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
        total = max(1, ranking.lines)
        self._weights = [
            term.weight * math.log(1 + (total - min(each.lines, total) + 0.5) / (each.lines + 0.5))
            for term, each in zip(question.terms, ranking.counts, strict=True)
        ]
        # What is too frequent to be searched for is too frequent to make two lines belong together.
        rare = sum(1 << at for at, each in enumerate(ranking.counts) if each.exact)
        telling = _TELLING * max(self._weights, default=0.0)
        self._asked = rare & sum(
            1 << at for at, each in enumerate(question.terms) if each.weight > KIN and self._weights[at] >= telling
        )
        self._shapes: dict[str, Shape] = {}

    def claims(self, room: int) -> list[Claim]:
        """The best passages as evidence, in the order in which they stand in the artifacts.

        Args:
            room: how many characters of JSON they may take together.
        """
        size = max(_SMALLEST_PASSAGE, min(_LARGEST_PASSAGE, room // 5))
        chosen: list[tuple[str, Span, Claim]] = []
        for candidate in self._best_first():
            if room < _FRAME + _SMALLEST_PASSAGE:
                break
            for span in self._spans(candidate, 1 if candidate.tight else size):
                if any(candidate.name == name and span.overlaps(other) for name, other, _ in chosen):
                    continue
                with suppress(UnreadableError, TimeoutSpentError):
                    claim = self._claim(candidate, span)
                    cost = _FRAME + sum(len(json.dumps(each, ensure_ascii=False)) - 2 for each in vars_of(claim))
                    if cost <= room:
                        room -= cost
                        chosen.append((candidate.name, span, claim))
        order = {name: number for number, name in enumerate(self._names)}
        chosen.sort(key=lambda each: (order[each[0]], each[1].start))
        return [claim for *_, claim in chosen]

    def _best_first(self) -> Iterator[Candidate]:
        waiting = self._candidates()
        covered = [0] * len(self._weights)
        best = 0.0
        while waiting:
            worth = [weight * _SAME_AGAIN**times for weight, times in zip(self._weights, covered, strict=True)]
            for each in waiting:
                each.worth = each.factor * sum(worth[term] * much for term, much in each.strengths.items())
            candidate = max(waiting, key=lambda each: each.worth)
            best = best or candidate.worth
            if candidate.worth < _LEAST_SCORE * best:
                return
            waiting.remove(candidate)
            for term, much in candidate.strengths.items():
                covered[term] += much >= _ABOVE
            yield candidate

    # -- candidates ---------------------------------------------------------------------------------------------

    def _candidates(self) -> list[Candidate]:
        places: dict[int, list[Occurrence]] = {}
        for place in self._ranking.places:
            places.setdefault(place.text, []).append(place)
        found: list[Candidate] = []
        for number, there in places.items():
            # A file of many may be gone since it was searched; a packed one may take more time than is left.
            with suppress(UnreadableError, TimeoutSpentError):
                text = self._shelf.text(self._names[number])
                shape = self._shapes[text.name] = shape_of(text)
                if shape.layout in (Layout.OUTLINE, Layout.TABLE) and text.size <= _WHOLE:
                    found += self._of_whole(text, shape)
                else:
                    found += [self._of_place(text, shape, place) for place in there]
        # Several hits in one object are one place.
        found = list({(each.name, each.page.base + each.page.start(each.line)): each for each in found}.values())
        found.sort(key=lambda each: -each.worth)
        return found[:_MOST_LOOKED_AT]

    def _of_place(self, text: Text, shape: Shape, place: Occurrence) -> Candidate:
        if shape.layout is Layout.HEAP:
            span = heap_span(text, place.offset, _LARGEST_PASSAGE, self._shelf.is_json(text))
            page = Lines(text.read(span.start, span.end), span.start, self._matcher)
            line = 0
        else:
            page = self._page(text, place.offset)
            line = page.at(place.offset)
        strengths = self._own(page, line) or {0: 0.0}
        for term in range(len(self._weights)):
            if place.mask >> term & 1:
                strengths[term] = max(strengths.get(term, 0.0), _INSIDE)
        if shape.layout is not Layout.HEAP:
            self._add_nearby(page, line, strengths)
        found = Candidate(text.name, page, line, place.offset, strengths)
        alike = self._ranking.alike.get(id(place), "")
        found.alike = alike
        found.factor = bonus(page.line(line), self._question, place.offset / max(1, text.size)) * place.lonely
        found.factor *= 1.15 if place.loud else 1.0
        return self._weighed(found)

    def _page(self, text: Text, offset: int) -> Lines:
        start = max(0, offset - _NEAR)
        data = text.read(start, offset + _NEAR)
        skip = data.find(b"\n", 0, offset - start) + 1 if start else 0
        return Lines(data[skip:], start + skip, self._matcher)

    def _weighed(self, candidate: Candidate) -> Candidate:
        candidate.worth = candidate.factor * sum(
            self._weights[term] * much for term, much in candidate.strengths.items()
        )
        return candidate

    def _own(self, page: Lines, line: int) -> dict[int, float]:
        mask, strong = page.masks.get(line, 0), page.strong.get(line, 0)
        return {term: 1.0 if strong >> term & 1 else _INSIDE for term in range(len(self._weights)) if mask >> term & 1}

    def _add_nearby(self, page: Lines, line: int, strengths: dict[int, float]) -> None:
        for each in range(max(0, line - _FURTHEST), min(len(page), line + _FURTHEST + 1)):
            if each != line and each in page.masks:
                fading = _NEARBY * _FADING ** abs(each - line)
                for term, much in self._own(page, each).items():
                    strengths[term] = max(strengths.get(term, 0.0), fading * much)

    def _of_whole(self, text: Text, shape: Shape) -> list[Candidate]:
        page = Lines(text.read(0, text.size), 0, self._matcher)
        found = []
        for line in page.masks:
            one = Candidate(text.name, page, line, page.start(line), self._own(page, line))
            found.append(self._weighed(one))
        # Only what is good by itself is looked at more closely.
        found.sort(key=lambda each: -each.worth)
        found = found[: 3 * _MOST_LOOKED_AT]
        kinds: dict[bytes, list[Candidate]] = {}
        for one in found:
            kinds.setdefault(template(page.line(one.line)), []).append(one)
            one.factor = bonus(page.line(one.line), self._question, one.offset / max(1, text.size))
            self._add_nearby(page, one.line, one.strengths)
            if shape.layout is Layout.OUTLINE:
                for above in (*page.parents(one.line), *page.heading(one.line)):
                    for term, much in self._own(page, above).items():
                        one.strengths[term] = max(one.strengths.get(term, 0.0), _ABOVE * much)
            self._weighed(one)
        for alike in kinds.values():
            self._mark_alike(page, alike)
        return found

    def _mark_alike(self, page: Lines, alike: list[Candidate]) -> None:
        """Lines that differ in their numbers alone: told how many, and the extremes first where they are asked for."""
        if len(alike) < _MANY_ALIKE:
            return
        for one in alike:
            one.alike = f"one of {len(alike)} alike"
            one.tight = True
        for wanted, choose in ((self._question.highest, max), (self._question.lowest, min)):
            if not wanted:
                continue
            number = re.compile(re.escape(wanted.encode()) + rb"\w*[\s:=\"',]{0,4}(-?\d+(?:\.\d+)?)")
            numbers = {
                at: float(found[1])
                for at, one in enumerate(alike)
                if (found := number.search(page.line(one.line).lower()))
            }
            if len(numbers) == len(alike):
                alike[choose(numbers, key=lambda each: numbers[each])].factor *= _EXTREME

    # -- one passage --------------------------------------------------------------------------------------------

    def _spans(self, candidate: Candidate, size: int) -> list[Span]:
        text = self._shelf.text(candidate.name)
        shape = self._shapes[candidate.name]
        if shape.layout is Layout.HEAP:
            return [heap_span(text, candidate.offset, size, self._shelf.is_json(text))]
        return spans(text, shape, candidate.page, candidate.line, candidate.offset, size, self._asked)

    def _claim(self, candidate: Candidate, span: Span) -> Claim:
        text = self._shelf.text(candidate.name)
        data = text.read(span.start, span.end).rstrip()
        end = span.start + len(data)
        ranked = sorted(candidate.strengths.items(), key=lambda each: -each[1] * self._weights[each[0]])
        terms = [self._question.terms[term].text for term, much in ranked[:3] if much >= _INSIDE]
        reason = ", ".join(terms) + (f" ({candidate.alike})" if candidate.alike else "")
        return Claim(text.name, self._shelf.place(text, span.start, end), shown(rune_start(data)).strip(), reason)


def vars_of(claim: Claim) -> tuple[str, str, str, str]:
    """The strings of a claim."""
    return claim.path, claim.locator, claim.quote, claim.reason
