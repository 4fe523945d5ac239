"""How a text is laid out, and which of its lines belong together."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from enum import Enum

from sidecars.distill.question import Matcher
from sidecars.distill.text import Text

# A line longer than this is no line for a reader but a heap of records.
LONGEST_LINE = 2000
_SAMPLE = 64 << 10
_LOGS = (".log", ".out", ".err", ".trace")
_TABLES = (".csv", ".tsv")
_HEAD = re.compile(rb"[0-9]+|[A-Za-z]+")
_HEADINGS = re.compile(rb"(?m)^(?:#{1,6} .*|\[.*\][ \t]*)$")
_MARKDOWN_HEAD = re.compile(rb"#{1,6} |\[[^\]]+\]\s*$|=== |---\s*$")


class Layout(Enum):
    """What a line is in a text.

    FLAT: an event of its own, with what it has dragged along (a trace). OUTLINE: a part of what stands above it, less
    indented (source, YAML, pretty JSON), or of its paragraph. TABLE: a record. HEAP: all on overlong lines.
    """

    FLAT = "flat"
    OUTLINE = "outline"
    TABLE = "table"
    HEAP = "heap"


@dataclass(frozen=True, slots=True)
class Shape:
    """A text's layout.

    Args:
        layout: which one.
        head: how most lines begin, digits and letters taken for alike; empty when they begin in many ways.
        delimiter: between the fields of a table.
        prose: whether it is running text, whose paragraphs stand between empty lines.
    """

    layout: Layout
    head: bytes = b""
    delimiter: bytes = b""
    prose: bool = False


def head_of(line: bytes) -> bytes:
    """The form of the first characters of a line."""
    return _HEAD.sub(lambda found: b"0" if found[0][:1].isdigit() else b"a", line[:14])[:8]


def shape_of(text: Text) -> Shape:
    """Look at samples of a text and tell its layout."""
    if text.places:
        return Shape(Layout.OUTLINE, prose=True)
    data = text.read(0, _SAMPLE)
    if text.size > 2 * _SAMPLE:
        middle = text.read(text.size // 2, text.size // 2 + _SAMPLE)
        data += middle[middle.find(b"\n") :]
    lines = data.split(b"\n")
    if len(data) / len(lines) > LONGEST_LINE or (len(lines) < 4 and data.lstrip()[:1] in (b"{", b"[")):
        return Shape(Layout.HEAP)
    if text.name.lower().endswith(_TABLES):
        return Shape(Layout.TABLE, delimiter=_delimiter(lines[0]))
    filled = [line for line in lines if line.strip()]
    return _of_lines(text.name.lower(), filled, 1 - len(filled) / len(lines)) if filled else Shape(Layout.FLAT)


def _of_lines(name: str, filled: list[bytes], empty: float) -> Shape:
    head, times = Counter(head_of(line) for line in filled).most_common(1)[0]
    dated = times >= 0.3 * len(filled) and b"0" in head and not head.startswith(b" ")
    indented = sum(line[:1] in b" \t" for line in filled) / len(filled)
    if dated or name.endswith(_LOGS):
        return Shape(Layout.FLAT, head if dated else b"")
    if indented > 0.25 or (indented > 0.05 and empty > 0.05):
        return Shape(Layout.OUTLINE, prose=indented < 0.3 and empty > 0.1)
    if empty > 0.05 or any(_MARKDOWN_HEAD.match(line) for line in filled):
        return Shape(Layout.OUTLINE, prose=True)
    delimiter = _delimiter(filled[0])
    alike = delimiter and len({line.count(delimiter) for line in filled[:20]}) == 1
    return Shape(Layout.TABLE, delimiter=delimiter) if alike else Shape(Layout.FLAT)


def _delimiter(line: bytes) -> bytes:
    best = max((b"\t", b";", b"|", b","), key=line.count)
    return best if line.count(best) else b""


def indent(line: bytes) -> int:
    """How deep a line begins; the dash of a YAML item and the hash of a comment count as text."""
    return len(line) - len(line.lstrip(b" \t"))


class Lines:
    """The lines of a part of a text, with what they hold of a question.

    Args:
        data: the part.
        base: where in the text it begins; the beginning of a line.
        matcher: the question's terms.

    Attributes:
        masks: for each line that holds terms, which ones; in order.
        strong: the same, of those terms that begin a word there.
        loud: lines in which a hit stands in capitals.
    """

    def __init__(self, data: bytes, base: int, matcher: Matcher) -> None:
        self.data, self.base = data, base
        self.starts = [0]
        self.starts += [found.end() for found in re.finditer(rb"\n", data)]
        if self.starts[-1] >= len(data) and len(self.starts) > 1:
            self.starts.pop()
        self.masks: dict[int, int] = {}
        self.strong: dict[int, int] = {}
        self.loud: set[int] = set()
        self._headings: list[int] | None = None
        at, after = -1, 0
        inside = [matcher.inside(number) for number in range(len(matcher.terms))]
        for start, number in matcher.hits(data):
            if start >= after:
                at = bisect_right(self.starts, start) - 1
                after = self.starts[at + 1] if at + 1 < len(self.starts) else len(data)
            bits = 1 << number
            for each in inside[number]:
                bits |= 1 << each
            self.masks[at] = self.masks.get(at, 0) | bits
            if _begins_word(data, start):
                self.strong[at] = self.strong.get(at, 0) | bits
            if data[start : start + 4].isupper():
                self.loud.add(at)

    def __len__(self) -> int:
        return len(self.starts)

    def start(self, number: int) -> int:
        """Where in the part a line begins."""
        return self.starts[number]

    def end(self, number: int) -> int:
        """Where in the part a line ends, its newline left out."""
        if number + 1 < len(self.starts):
            return self.starts[number + 1] - 1
        return len(self.data) - (self.data.endswith(b"\n"))

    def line(self, number: int) -> bytes:
        return self.data[self.starts[number] : self.end(number)]

    def at(self, offset: int) -> int:
        """The line that a place of the text is in."""
        return bisect_right(self.starts, offset - self.base) - 1

    def blank(self, number: int) -> bool:
        return not self.line(number).strip()

    def parents(self, number: int, most: int = 400) -> list[int]:
        """The lines that a line is part of by its indent, the nearest first; no further away than ``most`` lines."""
        line = self.line(number)
        depth = indent(line)
        found: list[int] = []
        for each in range(number - 1, max(-1, number - most), -1):
            if not depth:
                break
            other = self.line(each)
            if other.strip() and (own := indent(other)) < depth and other.strip()[:1] not in b"}])":
                found.append(each)
                depth = own
        return found

    def heading(self, number: int) -> list[int]:
        """The nearest heading above a line, as Markdown and TOML write it; none when there is none."""
        if self._headings is None:
            self._headings = [self.at(self.base + found.start()) for found in _HEADINGS.finditer(self.data)]
        before = bisect_right(self._headings, number - 1)
        return self._headings[before - 1 : before]


def _begins_word(data: bytes, start: int) -> bool:
    before = data[start - 1 : start]
    if not before.isalnum():
        return True
    return before.islower() and data[start : start + 1].isupper()
