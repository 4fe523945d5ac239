"""Where a piece of text was written, so that a complaint about it can name file, line and key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from witness.errors import Problem

# A path into a document: table names, keys and the index within an array of tables.
Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A place in a file, or a flag of the command line.

    Args:
        file: the file's path, or the flag (``--sidecars``).
        line: one-based, 0 when unknown.
        key: dotted key within the file.
    """

    file: str
    line: int = 0
    key: str = ""

    def problem(self, message: str) -> Problem:
        """A fault at this place."""
        return Problem(message, self.file, self.line, self.key)


def dotted(place: Place) -> str:
    """``steps[2].id`` for ``("steps", 2, "id")``."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def line_of(lines: Mapping[Place, int], place: Place) -> int:
    """The line of ``place``, else of the nearest thing around it, else 0. An array begins where its first item does."""
    for end in range(len(place), 0, -1):
        if (found := lines.get(place[:end]) or lines.get((*place[:end], 0))) is not None:
            return found
    return 0


_BARE = r"[A-Za-z0-9_-]+"
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'[^']*'"
_KEY = re.compile(rf"\s*({_BARE}|{_QUOTED})\s*(\.|=|\]|$)")
# Opened and not closed on the same line, these swallow the lines that follow.
_LONG = ('"""', "'''")


def _keys(text: str) -> tuple[list[str], int]:
    """The dotted key that ``text`` begins with, and the position after the sign that ends it; none is ([], 0)."""
    keys, position = [], 0
    while found := _KEY.match(text, position):
        name = found.group(1)
        keys.append(name[1:-1] if name[0] in "\"'" else name)
        position = found.end()
        if found.group(2) != ".":
            return keys, position
    return [], 0


def _depth(line: str) -> tuple[int, str]:
    """How many brackets ``line`` leaves open outside of its strings, and the long quote it leaves open, if any."""
    depth, position = 0, 0
    while position < len(line):
        rest = line[position:]
        if rest[0] == "#":
            break
        if rest[:3] in _LONG:
            end = _long_end(line, position + 3, rest[:3])
            if end < 0:
                return depth, rest[:3]
            position = end
            continue
        if string := re.match(_QUOTED, rest):
            position += string.end()
            continue
        depth += (rest[0] in "[{") - (rest[0] in "]}")
        position += 1
    return depth, ""


def _long_end(line: str, start: int, quote: str) -> int:
    """The position after the closing ``quote``, -1 when ``line`` does not close it."""
    pattern = re.compile(r'(?:[^"\\]|\\.|"(?!""))*"{3,5}' if quote == '"""' else r"(?:[^']|'(?!''))*'{3,5}")
    found = pattern.match(line, start)
    return found.end() if found else -1


def toml_lines(text: str) -> dict[Place, int]:
    """The line of each table header and key of a TOML document that is known to parse.

    ``tomllib`` tells the line of a syntax error only; a fault of meaning needs the line of its key.
    """
    lines: dict[Place, int] = {}
    table: Place = ()
    counts: dict[Place, int] = {}
    open_quote, depth = "", 0
    for number, line in enumerate(text.split("\n"), start=1):
        start = 0
        if open_quote:
            start = _long_end(line, 0, open_quote)
            if start < 0:
                continue
            open_quote = ""
        if start == 0 and depth == 0:
            stripped = line.lstrip()
            if stripped.startswith("["):
                table = _enter(stripped, counts)
                lines.setdefault(table, number)
                continue
            # An inline table's keys stand on the same line, which line_of() finds by going outwards.
            keys, start = _keys(line)
            for end in range(1, len(keys) + 1):
                lines.setdefault((*table, *keys[:end]), number)
        change, open_quote = _depth(line[start:])
        depth += change
    return lines


def _enter(header: str, counts: dict[Place, int]) -> Place:
    """The place that a table header opens; ``counts`` remembers how far each array of tables has come."""
    array = header.startswith("[[")
    names, _ = _keys(header[2 if array else 1 :])
    place: Place = ()
    for at, name in enumerate(names):
        place = (*place, name)
        if array and at == len(names) - 1:
            counts[place] = counts.get(place, -1) + 1
        if place in counts:
            place = (*place, counts[place])
    return place


_JSON_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|[{}\[\],:]|[^\s{}\[\],:"]+')


def json_lines(text: str) -> dict[Place, int]:
    """The line of each key and array item of a JSON document that is known to parse."""
    lines: dict[Place, int] = {}
    place: list[str | int] = []
    kinds: list[str] = []
    key = ""
    line, last = 1, 0
    for token in _JSON_TOKEN.finditer(text):
        line += text.count("\n", last, token.start())
        last = token.start()
        mark = token.group(0)
        if mark in "{[":
            if kinds and kinds[-1] == "[":
                lines.setdefault(tuple(place), line)
            kinds.append(mark)
            place.append(0 if mark == "[" else "")
        elif mark in "}]":
            kinds.pop()
            place.pop()
        elif mark == "," and kinds[-1] == "[":
            place[-1] = int(place[-1]) + 1
        elif mark == ":":
            place[-1] = key
            lines.setdefault(tuple(place), line)
        elif token.group(1) is not None:
            key = token.group(1)
    return lines
