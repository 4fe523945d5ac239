"""What a judge found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sidecars.type_reader.sidecar_type import Confidence
from witness.journal.records import Subject, Usage
from witness.judging.observation import Observation


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge found in one or several observations.

    Args:
        signal: something in the sidecar's domain needs saying.
        evidence: the action, quoted from the observation.
        confidence: how sure.
        snippet: name of the pre-written text that fits, empty when none does.
        message: the judge's own words, used where no snippet fits.
        say: a rule's own words, with their placeholders; ``message`` is what they come to at the first place.
        observation: id of what it is about.
        rule: name of the rule that fired, empty for others.
        values: what the placeholders stand for, at the first place.
        places: where a rule found it, each with its own values; empty for a judge without rules.
        source: ``file:line`` where the words stand, empty where they are nobody's but the type's.
        once: it is said once in a run.
        final: no model is asked whether it is right.
        usage: what it cost, None when nothing.
        error: why there is no verdict; a judge that fails stays silent.
        passing: the failure passes by itself, and the same may be asked again later.
        pause: seconds for which the judge's server asked to be left alone.
        source_quote: the document's sentence that it is held against, empty for none.
    """

    signal: bool
    evidence: str = ""
    confidence: Confidence = Confidence.LOW
    snippet: str = ""
    message: str = ""
    say: str = ""
    observation: str = ""
    rule: str = ""
    values: tuple[tuple[str, str], ...] = ()
    places: tuple[tuple[Subject, tuple[tuple[str, str], ...]], ...] = ()
    source: str = ""
    once: bool = False
    final: bool = False
    usage: Usage | None = None
    error: str = ""
    passing: bool = False
    pause: float = 0.0
    source_quote: str = ""


class Judge(Protocol):
    """Anything that can tell whether something needs saying."""

    def sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        """Judge at once what costs nothing.

        Returns:
            (verdicts, the actions that ``judge`` has to be asked about).
        """
        ...

    def judge(self, seen: Sequence[Observation], said: Sequence[str] = ()) -> list[Verdict]:
        """Judge completed actions, oldest first.

        Args:
            seen: the actions.
            said: what has been said in this run already, oldest first.

        Never raises for what it sees; a failure is a verdict without a signal and with its ``error`` set. Every
        verdict becomes one line of the ledger, the silent ones too.
        """
        ...

    def close(self) -> None:
        """Let go of whatever it holds open."""
        ...


_BLANK = re.compile(r"\s+")


def _folded(text: str) -> str:
    return _BLANK.sub(" ", text).strip().casefold()


def _pieces(quote: str) -> list[str]:
    return [piece for part in re.split(r"\s*(?:…|\.\.\.)\s*", quote) if len(piece := _folded(part).strip("\"'`")) > 2]


def quoted_from(evidence: str, seen: Iterable[Observation]) -> str | None:
    """The id of the observation that ``evidence`` is quoted from, None when it stands in none.

    Whitespace and case are not compared, and an ellipsis may stand for what was left out: models re-wrap lines.
    """
    pieces = _pieces(evidence)
    if not pieces:
        return None
    return next((each.id for each in seen if _holds(pieces, each.rendered())), None)


def stands_in(quote: str, texts: Iterable[str]) -> bool:
    """Whether a quote stands in one of several texts, compared like ``quoted_from``."""
    pieces = _pieces(quote)
    return bool(pieces) and any(_holds(pieces, text) for text in texts)


def _holds(pieces: Sequence[str], text: str) -> bool:
    """Whether a text has all pieces, in their order."""
    folded = _folded(text)
    position = 0
    for piece in pieces:
        found = folded.find(piece, position)
        if found < 0:
            return False
        position = found + len(piece)
    return True


# Filling in the placeholders of pre-written texts.

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def placeholders(template: str) -> list[str]:
    """The names that a template has places for."""
    return _PLACEHOLDER.findall(template)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Put values in place of ``{name}``; an unknown name stays, and a value is not looked into."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), template)
