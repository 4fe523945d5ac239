"""The backend without a model: the lines that a question is about, and how many there are of them."""

from __future__ import annotations

from dataclasses import dataclass

from sidecars.distill.answer import Claim, Draft
from sidecars.distill.errors import TimeoutSpentError, UnreadableError
from sidecars.distill.passages import Windows
from sidecars.distill.question import KIN, Question, parse_question
from sidecars.distill.rank import Ranker, Ranking
from sidecars.distill.request import Inquiry
from sidecars.distill.text_pool import TextPool

# Published systems of this kind give back a hundredth to a hundred-and-fiftieth of what they read.
REDUCTION = 125
_LEAST_ROOM = 1500

# What the answer, the usage and the frame of the JSON take of the room.
_OVERHEAD = 640


@dataclass(frozen=True, slots=True)
class Found:
    """What the artifacts hold for a question.

    Args:
        question: it.
        ranking: the lines.
        claims: the best of them, as evidence.
        gaps: what was not searched.
    """

    question: Question
    ranking: Ranking
    claims: tuple[Claim, ...]
    gaps: tuple[str, ...]


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
    return Found(parsed, ranking, tuple(Windows(parsed, ranking, names, shelf).claims(room)), tuple(gaps))


def room_for(bytes_in: int, max_output_chars: int) -> int:
    """How many characters the JSON form of an extract of so many bytes may have."""
    return min(max_output_chars, max(_LEAST_ROOM, bytes_in // REDUCTION))


def extract(inquiry: Inquiry) -> Draft:
    """Answer by quoting, without a model.

    Raises:
        UnreadableError: none of the artifacts could be read.
    """
    found = search(inquiry.shelf, inquiry.question, max(200, inquiry.room - _OVERHEAD))
    gaps = list(found.gaps)
    if not found.question.terms:
        gaps.append("the question has no word that could be looked for: name what you expect to read")
    elif not found.claims:
        gaps.append("no line holds a word of the question")
    counts = _counts(found)
    answer = (
        f"Extractive, no model: {len(found.claims)} passages of {found.ranking.lines} lines, quoted, not interpreted."
    )
    return Draft(answer + (f" Lines with {counts}." if counts else ""), found.claims, tuple(gaps))


def _counts(found: Found) -> str:
    shown = [
        f"{each.term.text}: {'' if each.exact else 'about '}{each.lines}"
        for each in found.ranking.counts
        if each.term.weight > KIN and (each.lines or found.question.counting)
    ]
    return ", ".join(shown[:6])
