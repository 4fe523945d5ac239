"""The backend without a model: the lines that a question is about, and how many there are of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from sidecars.distill.answer import Claim, Draft
from sidecars.distill.errors import TimeoutSpentError, UnreadableError
from sidecars.distill.layout import Layout, shape_of
from sidecars.distill.passages import Windows
from sidecars.distill.question import KIN, Question, parse_question
from sidecars.distill.rank import Ranker, Ranking
from sidecars.distill.request import Inquiry
from sidecars.distill.text_pool import TextPool

# Published systems of this kind give back a hundredth to a hundred-and-fiftieth of what they read.
REDUCTION = 125
# Lines of a log are alike and short; of a text that somebody wrote, hardly any line says what another says.
_LEAST_ROOM, _LEAST_ROOM_OUTLINE = 1500, 3000

# What the usage and the frame of the JSON take of the room, and the sentence about what was looked for.
_OVERHEAD, _SENTENCE = 300, 140


@dataclass(frozen=True, slots=True)
class Found:
    """What the artifacts hold for a question.

    Args:
        question: it.
        ranking: the lines.
        claims: the best of them, as evidence.
        gaps: what was not searched.
        names: the artifacts that were.
    """

    question: Question
    ranking: Ranking
    claims: tuple[Claim, ...]
    gaps: tuple[str, ...]
    names: tuple[str, ...] = ()


def search(shelf: TextPool, question: str, room: int) -> Found:
    """Rank all lines of all artifacts.

    Args:
        shelf: the artifacts.
        question: what is asked.
        room: how many characters the evidence may take.

    Raises:
        UnreadableError: none of the artifacts could be read.
    """
    parsed = parse_question(question)
    ranker = Ranker(parsed, shelf.deadline)
    names: list[str] = []
    gaps: list[str] = []
    offered = shelf.names
    binary = 0
    for number, name in enumerate(offered):
        if shelf.deadline.passed:
            gaps.append(f"the time was up: {len(offered) - number} of {len(offered)} files were not searched")
            break
        try:
            text = shelf.text(name)
            if text.binary and len(offered) > 1:
                binary += 1
                continue
            names.append(name)
            ranker.scan(len(names) - 1, text)
        except UnreadableError:
            continue  # the shelf keeps the reason
        except TimeoutSpentError:
            gaps.append(f"the time was up while {name} was unfolded")
    if binary:
        gaps.append(f"{binary} of {len(offered)} files are binary and were not searched")
    if offered and not names and len(shelf.unreadable) == len(offered):
        name, reason = next(iter(shelf.unreadable.items()))
        raise UnreadableError(name, reason)
    ranking = ranker.ranking()
    if not ranking.complete:
        gaps.append(f"the time was up after {ranking.lines} lines; what comes later was not searched")
    return Found(parsed, ranking, tuple(Windows(parsed, ranking, names, shelf).claims(room)), tuple(gaps), tuple(names))


def room_for(shelf: TextPool, bytes_in: int, max_output_chars: int) -> int:
    """How many characters the JSON form of an extract of so many bytes may have."""
    least = _LEAST_ROOM
    if bytes_in // REDUCTION < _LEAST_ROOM_OUTLINE:
        for name in shelf.names[:3]:
            with suppress(UnreadableError, TimeoutSpentError):
                if shape_of(shelf.text(name)).layout is not Layout.FLAT:
                    least = _LEAST_ROOM_OUTLINE
    return min(max_output_chars, max(least, bytes_in // REDUCTION))


def extract(inquiry: Inquiry) -> Draft:
    """Answer by quoting, without a model.

    Raises:
        UnreadableError: none of the artifacts could be read.
    """
    names = inquiry.shelf.names
    overhead = _OVERHEAD + _SENTENCE + max((len(name) for name in names), default=0)
    found = search(inquiry.shelf, inquiry.question, max(200, inquiry.room - overhead))
    gaps = list(found.gaps)
    if not found.question.terms:
        gaps.append("the question has no word that could be looked for: name what you expect to read")
    elif not found.claims:
        gaps.append("no line holds a word of the question")
    answer = (
        f"Extractive, no model: {len(found.claims)} passages of {found.ranking.lines} lines, quoted, not interpreted."
    )
    if found.question.counting:
        answer += f" {_counted(inquiry.shelf, found)}"
    return Draft(answer, found.claims, tuple(gaps))


def _counted(shelf: TextPool, found: Found) -> str:
    """What was counted, in words."""
    from sidecars.distill.counting import tallies

    told = tallies(shelf, list(found.names), found.question.text)
    if told:
        return "Counted: " + "; or ".join(str(each) for each in told) + "."
    asked = [each for each in found.ranking.counts if each.term.weight > KIN]
    if asked and not any(each.lines for each in asked):
        return f"Lines with {', '.join(f'{each.term.text}: 0' for each in asked[:4])}."
    return "Nothing was counted: no pattern of lines or records is sure to be what was asked for."
