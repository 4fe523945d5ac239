"""What a model may do with the artifacts: read lines, search, list. There is no other tool, and none of them writes."""

from __future__ import annotations

import fnmatch
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sidecars.distill.decompress import PIECE
from sidecars.distill.errors import UnreadableError
from sidecars.distill.text import Text, rune_start, shown
from sidecars.distill.text_pool import TextPool
from witness.expressions import EXTRA

# Characters of one result: a model that asks for more asks again, narrower.
LONGEST_RESULT = 6000
_LONGEST_LINE = 400
_MOST_LINES = 200
_MOST_MATCHES = 50
_MOST_CONTEXT = 10
_MOST_NAMES = 100

# How far a line is looked at beyond the border of a piece.
BORDER = 64 << 10


class ToolFault(Exception):
    """The call cannot be done; the text says to the model what would be right."""


def definitions() -> list[dict[str, Any]]:
    """The tools as the Messages API wants them."""
    path = {"type": "string", "description": "an artifact's name, as Glob lists it"}

    def tool(name: str, description: str, needed: list[str], **properties: Any) -> dict[str, Any]:
        schema = {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}
        return {"name": name, "description": description, "input_schema": schema}

    whole = {"type": "integer", "minimum": 0}
    return [
        tool(
            "Read",
            f"Lines first to last of an artifact, at most {_MOST_LINES}. Overlong lines are cut; column continues one.",
            ["path", "first"],
            path=path,
            first={"type": "integer", "minimum": 1},
            last=whole,
            column=whole,
        ),
        tool(
            "Grep",
            "Lines that match an RE2 regular expression: how many in each artifact, and the first with their context.",
            ["pattern"],
            pattern={"type": "string"},
            path=path,
            ignore_case={"type": "boolean"},
            context=whole,
            limit=whole,
        ),
        tool("Glob", "Names and sizes of the artifacts that match a glob.", [], pattern={"type": "string"}),
    ]


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    end: int


class Tools:
    """The three tools over one shelf.

    Args:
        shelf: what may be read.

    Attributes:
        mark: stands around all that comes from artifacts; nobody who wrote one could know it.
        used: how many calls were done.
    """

    def __init__(self, shelf: TextPool) -> None:
        self._shelf = shelf
        self.mark = secrets.token_hex(4)
        self.used = 0

    def call(self, name: str, given: Mapping[str, Any]) -> str:
        """Do one call.

        Returns:
            Its result, framed as data.

        Raises:
            ToolFault: no such tool, or arguments that it cannot work with.
            TimeoutSpentError: the time is up.
        """
        self.used += 1
        work = {"Read": self._read, "Grep": self._grep, "Glob": self._glob}.get(name)
        if work is None:
            raise ToolFault(f"there is no tool {name!r}: only Read, Grep and Glob")
        try:
            return self.framed(work(given))
        except UnreadableError as error:
            raise ToolFault(str(error)) from error

    def framed(self, text: str) -> str:
        """Text of artifacts between marks, cut to what one result may be."""
        if len(text) > LONGEST_RESULT:
            text = text[:LONGEST_RESULT].rpartition("\n")[0] + "\n(cut here: ask for less)"
        return f"[data {self.mark}]\n{text}\n[end of data {self.mark}]"

    # -- Read ---------------------------------------------------------------------------------------------------

    def _read(self, given: Mapping[str, Any]) -> str:
        text = self._shelf.meant(_string(given, "path"))
        first = max(1, _whole(given, "first", 1))
        last = max(first, _whole(given, "last", first + 79))
        column = _whole(given, "column", 0)
        if first > text.lines:
            raise ToolFault(f"{text.name} has {text.lines} lines only")
        last = min(last, text.lines, first + _MOST_LINES - 1)
        body, room = [], LONGEST_RESULT - 200
        for number in range(first, last + 1):
            line = _line(text, number, column)
            room -= len(line) + 1
            if room < 0:
                body.append(f"(cut before L{number}: ask for less)")
                break
            body.append(line)
        return f"{text.name}, {text.lines} lines\n" + "\n".join(body)

    # -- Grep ---------------------------------------------------------------------------------------------------

    def _grep(self, given: Mapping[str, Any]) -> str:
        pattern = _compiled(_string(given, "pattern"), given.get("ignore_case") is True)
        limit = min(_MOST_MATCHES, _whole(given, "limit", 20)) or 1
        context = min(_MOST_CONTEXT, _whole(given, "context", 0))
        path = given.get("path")
        names = [self._shelf.meant(path).name] if isinstance(path, str) and path else self._shelf.names
        counts, shown_lines = [], []
        for name in names:
            try:
                text = self._shelf.text(name)
            except UnreadableError:
                continue
            if text.binary and len(names) > 1:
                continue
            count, first = _search(text, pattern, limit)
            if count:
                counts.append(f"{name}: {count} matching lines")
                shown_lines += _in_context(text, first, context, name if len(names) > 1 else "")
                limit = max(0, limit - len(first))
        if not counts:
            return "no line matches"
        more = [f"(and {len(counts) - 20} more artifacts)"] if len(counts) > 20 else []
        return "\n".join([*counts[:20], *more, *shown_lines])

    # -- Glob ---------------------------------------------------------------------------------------------------

    def _glob(self, given: Mapping[str, Any]) -> str:
        pattern = given.get("pattern")
        pattern = pattern if isinstance(pattern, str) and pattern else "*"
        found = [
            f"{entry.name} ({entry.size} bytes)"
            for entry in self._shelf.artifacts.entries()
            if fnmatch.fnmatchcase(entry.name, pattern) or fnmatch.fnmatchcase(entry.name, f"*/{pattern}")
        ]
        if not found:
            return "no artifact matches"
        more = [f"(and {len(found) - _MOST_NAMES} more)"] if len(found) > _MOST_NAMES else []
        return "\n".join([*found[:_MOST_NAMES], *more])


# -- arguments --------------------------------------------------------------------------------------------------


def _string(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise ToolFault(f"{name} must be a string that is not empty")
    return value


def _whole(given: Mapping[str, Any], name: str, otherwise: int) -> int:
    value = given.get(name, otherwise)
    if value is None:
        return otherwise
    if isinstance(value, str) and re.fullmatch(r"L?\d{1,12}", value):
        value = int(value.lstrip("L"))
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ToolFault(f"{name} must be a whole number")
    return value


def _compiled(pattern: str, ignore_case: bool) -> Any:
    try:
        import re2
    except ImportError:
        raise ToolFault(f"patterns need RE2: pip install '{EXTRA}'") from None
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    options.never_nl = True
    options.max_mem = 16 << 20
    try:
        return re2.compile(("(?m)" + pattern).encode("utf-8", "replace"), options)
    except re2.error as error:
        why = error.args[0] if error.args else error
        why = why.decode("utf-8", "replace") if isinstance(why, bytes) else why
        raise ToolFault(f"not an RE2 pattern ({why}): RE2 has no lookaround and no backreferences") from error


# -- lines ------------------------------------------------------------------------------------------------------


def _line(text: Text, number: int, column: int = 0) -> str:
    start, end = text.span(number, number)
    begin = min(start + column, end)
    raw = rune_start(text.read(begin, min(end, begin + _LONGEST_LINE)))
    more = end - begin - _LONGEST_LINE
    note = f" (line goes on for {more} bytes: column {column + _LONGEST_LINE})" if more > 0 else ""
    return f"L{number}\t{shown(raw)}{note}"


def _search(text: Text, pattern: Any, limit: int) -> tuple[int, list[_Match]]:
    """How many lines match, and the first of them."""

    def search(offset: int) -> tuple[int, list[_Match]]:
        low = max(0, offset - BORDER)
        data = text.read(low, offset + PIECE + BORDER)
        # Begin where a line begins, so that ^ means what it says; a line longer than the border has no beginning here.
        skip = data.rfind(b"\n", 0, offset - low) + 1
        base = low + skip
        count, end = 0, -1
        found: list[_Match] = []
        for match in pattern.finditer(data[skip:]):
            at = base + match.start()
            if at >= offset + PIECE:
                break
            if at < offset or at <= end:
                continue
            if skip + match.end() == len(data) and low + len(data) < text.size:
                continue  # $ has taken the border for the end of a line
            stop = data.find(b"\n", skip + match.start())
            end = low + (stop if stop >= 0 else len(data))
            count += 1
            if len(found) < limit:
                found.append(_Match(at, base + match.end()))
        return count, found

    total = 0
    first: list[_Match] = []
    for count, found in text.each_piece(search):
        total += count
        first += found[: limit - len(first)]
    return total, first


def _in_context(text: Text, matches: list[_Match], context: int, name: str) -> list[str]:
    lines: list[str] = []
    last = 0
    for match in matches:
        number = text.line_at(match.start)
        if name and not last:
            lines.append(f"{name}:")
        if context and last and number - context > last + 1:
            lines.append("--")
        for each in range(max(last + 1, number - context), min(text.lines, number + context) + 1):
            start, end = text.span(each, each)
            if each == number and end - start > _LONGEST_LINE:
                # Of an overlong line, the part with the match.
                lines.append(_line(text, each, max(0, match.start - start - _LONGEST_LINE // 3)))
            else:
                lines.append(_line(text, each))
            last = each
    return lines
