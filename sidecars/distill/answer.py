"""What a distillation gives back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sidecars.distill.errors import Exit


@dataclass(frozen=True, slots=True)
class Claim:
    """Evidence as somebody claims it; nothing of it was checked."""

    path: str
    locator: str
    quote: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence after the check.

    Args:
        path: the artifact, as it was declared.
        locator: ``L12``, ``L12-L20`` or a JSON pointer.
        quote: what stands there.
        reason: why it matters.
        verified: the quote stands at the locator in the bytes that were read.
    """

    path: str
    locator: str
    quote: str
    reason: str
    verified: bool


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer before its evidence was checked."""

    answer: str
    claims: tuple[Claim, ...] = ()
    gaps: tuple[str, ...] = ()
    followups: tuple[str, ...] = ()


@dataclass(slots=True)
class Spending:
    """What an answer cost.

    Args:
        backend: which one answered.
        model: its model, empty without one.
        steps: requests made.
        input_tokens: everything sent, what came from the cache included.
        cached_tokens: the part of it that came from the cache.
        output_tokens: what the model wrote.
        dollars: by the price table.
    """

    backend: str
    model: str = ""
    steps: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0


@dataclass(frozen=True, slots=True)
class Source:
    """One file that an answer rests on, and the state of it that was read."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer, with evidence that was checked.

    Args:
        answer: a short text.
        evidence: what it rests on.
        gaps: what is not known, could not be read or did not stand the check.
        followups: questions that would lead further.
        spending: what it cost.
        sources: the files that the evidence is from.
        bytes_in: size of all artifacts on the disk.
        seconds: how long it took.
        outcome: ANSWERED, UNVERIFIED, or the limit that cut it short.
    """

    answer: str
    evidence: tuple[Evidence, ...]
    gaps: tuple[str, ...]
    followups: tuple[str, ...]
    spending: Spending
    sources: tuple[Source, ...] = ()
    bytes_in: int = 0
    seconds: float = 0.0
    outcome: Exit = field(default=Exit.ANSWERED)

    @property
    def verified(self) -> bool:
        """Whether there is evidence and all of it stands."""
        return bool(self.evidence) and all(each.verified for each in self.evidence)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: answer, evidence, gaps, followups, usage."""
        spent = {key: value for key, value in asdict(self.spending).items() if value}
        usage: Mapping[str, Any] = {
            **spent,
            "bytes_in": self.bytes_in,
            "seconds": round(self.seconds, 3),
            "sources": [asdict(each) for each in self.sources],
        }
        return {
            "answer": self.answer,
            "evidence": [asdict(each) for each in self.evidence],
            "gaps": list(self.gaps),
            "followups": list(self.followups),
            "usage": dict(usage),
        }


# Where in an artifact something stands: lines (`L12`, `L12-L20`) or a JSON pointer (`/cases/3/name`).

_LINES = re.compile(r"\s*(?:lines?\s*)?L?(\d{1,18})(?:\s*(?:-|–|\.\.|:|to)\s*L?(\d{1,18}))?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines ``first`` to ``last``, one-based, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"L{self.first}" if self.first == self.last else f"L{self.first}-L{self.last}"


@dataclass(frozen=True, slots=True)
class Pointer:
    """A JSON pointer (RFC 6901), taken apart."""

    keys: tuple[str, ...]

    def __str__(self) -> str:
        return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in self.keys)


@dataclass(frozen=True, slots=True)
class Place:
    """A place of a document that has no lines: ``page 3``, ``page 3-4``, ``paragraph 12``, ``Sheet1!5``."""

    first: str
    last: str

    def __str__(self) -> str:
        if self.first == self.last:
            return self.first
        lined = re.fullmatch(r"L\d+", self.first)
        return f"{self.first}-{self.last if lined else _number(self.last)}"


def _number(place: str) -> str:
    found = re.search(r"\d+$", place)
    return found[0] if found else place


Locator = Lines | Pointer


def lines_of(locator: str, places: list[str]) -> Lines | None:
    """The lines of a document's text that a locator such as ``page 3-4`` means; None when it means none.

    Args:
        locator: as ``Place`` is written.
        places: the place of each line.
    """
    wanted = " ".join(locator.split())
    first = last = wanted
    if wanted not in places and (found := re.fullmatch(r"(.*?)(\d+)\s*-\s*(\D*)(\d+)", wanted)):
        first, last = found[1] + found[2], found[1] + found[4]
    numbers = [number for number, place in enumerate(places, 1) if place in (first, last)]
    return Lines(numbers[0], numbers[-1]) if numbers else None


def parse_locator(text: str) -> Locator | None:
    """Read a locator, also as models tend to write it (``lines 12-20``, ``12``, ``#/cases/3``); None else None."""
    if found := _LINES.fullmatch(text):
        first = int(found[1])
        last = int(found[2] or first)
        return Lines(min(first, last), max(first, last)) if first > 0 and last > 0 else None
    plain = text.strip().removeprefix("#")
    if plain.startswith("/"):
        return Pointer(tuple(key.replace("~1", "/").replace("~0", "~") for key in plain[1:].split("/")))
    return None
