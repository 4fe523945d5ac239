"""What a judge found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sidecars.definition.sidecar_type import Confidence
from sidecars.observer.observe.observation import Observation
from witness.journal.records import Subject, Usage


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
        places: where a rule found it, each with its own values; empty for whoever is not a rule.
        source: ``file:line`` where the words stand, empty where they are nobody's but the type's.
        once: it is said once in a run.
        final: no model is asked whether it is right.
        usage: what it cost, None when nothing.
        error: why there is no verdict; a judge that fails stays silent.
        passing: the failure passes by itself, and the same may be asked again later.
        pause: seconds for which the judge's server asked to be left alone.
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


class Judge(Protocol):
    """Anything that can tell whether something needs saying."""

    def sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        """Judge at once what costs nothing.

        Returns:
            (verdicts, the actions that ``judge`` has to be asked about).
        """
        ...

    def judge(self, seen: Sequence[Observation]) -> list[Verdict]:
        """Judge completed actions, oldest first.

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


def quoted_from(evidence: str, seen: Iterable[Observation]) -> str | None:
    """The id of the observation that ``evidence`` is quoted from, None when it stands in none.

    Whitespace and case are not compared, and an ellipsis may stand for what was left out: models re-wrap lines.
    """
    pieces = [
        piece for part in re.split(r"\s*(?:…|\.\.\.)\s*", evidence) if len(piece := _folded(part).strip("\"'`")) > 2
    ]
    if not pieces:
        return None
    for observation in seen:
        text = _folded(observation.rendered())
        position = 0
        for piece in pieces:
            found = text.find(piece, position)
            if found < 0:
                break
            position = found + len(piece)
        else:
            return observation.id
    return None
