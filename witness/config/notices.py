"""``on:`` of the settings: who is told when a polecat needs somebody."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: What can be told of.
KINDS = ("waiting", "died", "stuck", "failed", "limit")
#: The ways to tell it.
WAYS = ("command", "webhook", "desktop", "bell")
_QUIET = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True, slots=True)
class Telling:
    """One way in which one kind of thing is told.

    Args:
        way: one of ``WAYS``.
        command: the program's words, for the way ``command``.
        url: for the way ``webhook``.
        quiet: minutes of the day between which nothing is told, in local time; None for never.
        every: seconds; of one polecat the same kind is told once within them.
    """

    way: str
    command: tuple[str, ...] = ()
    url: str = ""
    quiet: tuple[int, int] | None = None
    every: float = 60.0

    def is_quiet(self, minute: int) -> bool:
        """Whether nothing is told at a minute of the day; a span may reach over midnight."""
        if self.quiet is None:
            return False
        begin, end = self.quiet
        return begin <= minute < end if begin <= end else minute >= begin or minute < end


def read_notices(value: Any, duration: Any) -> dict[str, tuple[Telling, ...]]:
    """Read ``on:``.

    Args:
        value: as YAML gives it.
        duration: reads a length of time.

    Raises:
        ValueError: it is wrong; the text says what is right.
    """
    if not isinstance(value, dict):
        raise ValueError(f"write it as {{{KINDS[0]}: {{command: notify-send gt}}}}; the kinds are {', '.join(KINDS)}")
    found = {}
    for kind, ways in value.items():
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is none of {', '.join(KINDS)}")
        each = ways if isinstance(ways, list) else [ways]
        found[kind] = tuple(_telling(kind, way, duration) for way in each)
    return found


def _telling(kind: str, value: Any, duration: Any) -> Telling:
    if not isinstance(value, Mapping):
        raise ValueError(
            f"{kind}: write it as {{command: PROGRAM}}, {{webhook: URL}}, {{desktop: true}} or {{bell: true}}"
        )
    ways = [way for way in WAYS if value.get(way)]
    if unknown := set(value) - {*WAYS, "quiet", "every"}:
        raise ValueError(f"{kind}: {sorted(map(str, unknown))[0]!r} is none of {', '.join(WAYS)}, quiet and every")
    if len(ways) != 1:
        raise ValueError(f"{kind}: give exactly one of {', '.join(WAYS)}")
    way, given = ways[0], value[ways[0]]
    if way in ("desktop", "bell") and given is not True:
        raise ValueError(f"{kind}: {way} is true or left out")
    every = duration(value.get("every", "1m"))
    return Telling(way, _command(kind, given, way), _url(kind, given, way), _quiet(kind, value.get("quiet")), every)


def _command(kind: str, given: Any, way: str) -> tuple[str, ...]:
    if way != "command":
        return ()
    words = shlex.split(given) if isinstance(given, str) else given
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{kind}: command is a program and its arguments; no shell reads it")
    return tuple(words)


def _url(kind: str, given: Any, way: str) -> str:
    if way != "webhook":
        return ""
    if not isinstance(given, str) or not given.startswith(("https://", "http://")):
        raise ValueError(f"{kind}: webhook is an address that begins with https:// or http://")
    return given


def _quiet(kind: str, given: Any) -> tuple[int, int] | None:
    if given is None:
        return None
    found = _QUIET.fullmatch(given) if isinstance(given, str) else None
    if not found:
        raise ValueError(f'{kind}: quiet is written like "22:00-07:00", with its quotes')
    hours = [int(each) for each in found.groups()]
    return hours[0] * 60 + hours[1], hours[2] * 60 + hours[3]
