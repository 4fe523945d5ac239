"""Where in an artifact something stands: lines (``L12``, ``L12-L20``) or a JSON pointer (``/cases/3/name``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
