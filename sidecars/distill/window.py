"""How much around a line is quoted with it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sidecars.distill.layout import Layout, Lines, Shape, head_of, indent
from sidecars.distill.text import Text

# A longer line is cut to what is around its hits.
_LONGEST_LINE = 600
_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
# So many lines that an event has dragged along are looked through for its end.
_LONGEST_EVENT = 400
_ENDS = 3
_LEAST_PULL = 0.24


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a text, from ``start`` to ``end``."""

    start: int
    end: int

    def overlaps(self, other: Span) -> bool:
        return self.start < other.end and other.start < self.end


def spans(text: Text, shape: Shape, page: Lines, line: int, offset: int, size: int, asked: int) -> list[Span]:
    """What is quoted for a line: mostly one passage, of a long trace its two ends.

    Args:
        text, shape, page: what the line is in.
        line: its number on the page.
        offset: a place in it, around which an overlong line is cut.
        size: about how many bytes there may be.
        asked: the terms for which a neighbour is taken in.
    """
    start, end = page.start(line), page.end(line)
    if end - start > max(size, _LONGEST_LINE) or page.base + end >= page.base + len(page.data) < text.size:
        return [_cut(text, offset, size)]
    if shape.layout is Layout.FLAT:
        return [_bytes(page, first, last) for first, last in _event(shape, page, line, size, asked)]
    if shape.layout is Layout.TABLE:
        return [_bytes(page, *_record(page, line, size))]
    return [_bytes(page, *_grown(shape, page, line, size, asked))]


def _bytes(page: Lines, first: int, last: int) -> Span:
    return Span(page.base + page.start(first), page.base + page.end(last))


def _length(page: Lines, first: int, last: int) -> int:
    return page.end(last) - page.start(first)


# -- events ------------------------------------------------------------------------------------------------------


def _dragged(shape: Shape, page: Lines, line: int) -> bool:
    """Whether a line belongs to the event above it."""
    data = page.line(line)
    if not data.strip():
        return False
    if shape.head:
        return head_of(data) != shape.head
    return data[:1] in b" \t"


def _event(shape: Shape, page: Lines, line: int, size: int, asked: int) -> list[tuple[int, int]]:
    """The passages about a line of a log: of an event with a long trace its beginning, its end, and its causes."""
    first = last = line
    while first > max(0, line - _LONGEST_EVENT) and _dragged(shape, page, first):
        first -= 1
    while last + 1 < min(len(page), line + _LONGEST_EVENT) and _dragged(shape, page, last + 1):
        last += 1
    if line == first and _length(page, first, last) <= size:
        return [_with_neighbours(page, first, last, size, asked)]
    if not shape.head:
        return [_with_neighbours(page, line, _children(page, line, last, size), size, asked)]
    if line == first:
        parts = [(first, min(first + 1, last))]
    else:
        # What stands between two events may be of neither: the one above is told when it is about the question.
        parts = [_with_neighbours(page, line, _children(page, line, last, size), size, asked)]
        if page.masks.get(first, 0) & asked and parts[0][0] > first:
            parts.append((first, min(first + 1, parts[0][0] - 1)))
    # The beginning says what happened, the end why; what lies between is the way.
    after = max(end for _, end in parts)
    if after < last:
        tail = max(after + 1, last - _ENDS + 1)
        parts.append((tail, last))
        parts += [(each, each) for each in range(after + 1, tail) if not indent(page.line(each))][-2:]
    return parts


def _children(page: Lines, line: int, last: int, size: int) -> int:
    """The last of the lines that are deeper than one, as far as there is room."""
    end, depth = line, indent(page.line(line))
    while end < last and indent(page.line(end + 1)) > depth and _length(page, line, end + 1) <= size:
        end += 1
    return end


def _with_neighbours(page: Lines, first: int, last: int, size: int, asked: int) -> tuple[int, int]:
    """With the lines before and after that are about the question too."""
    seen = 0
    for each in range(first, last + 1):
        seen |= page.masks.get(each, 0)
    for step in (1, -1):
        while True:
            each = last + 1 if step > 0 else first - 1
            if not 0 <= each < len(page) or page.blank(each):
                break
            wider = (first, each) if step > 0 else (each, last)
            terms = page.masks.get(each, 0) & asked
            if not (terms & ~seen or terms.bit_count() > 1) or _length(page, *wider) > size:
                break
            seen |= terms
            first, last = wider
    return first, last


# -- records -----------------------------------------------------------------------------------------------------


def _record(page: Lines, line: int, size: int) -> tuple[int, int]:
    """The record that a line is in: fields in quotation marks may go on over several lines."""
    first = last = line
    while page.line(last).count(b'"') % 2 and last + 1 < len(page) and last - line < 20:
        last += 1
        if page.line(last).count(b'"') % 2:
            return first, last
    # An even count: a record of its own, or the middle of one whose field began further up.
    for back in range(1, 8):
        above = line - back
        if above < 0:
            break
        if page.line(above).count(b'"') % 2:
            opened = sum(page.line(each).count(b'"') for each in range(max(0, above - 200), above + 1)) % 2
            if not opened:
                break
            first = above
            while last + 1 < len(page) and page.line(last).count(b'"') % 2 == 0 and last - line < 20:
                last += 1
            break
    return (first, last) if _length(page, first, last) <= 3 * size else (line, line)


# -- outlines ----------------------------------------------------------------------------------------------------


def _grown(shape: Shape, page: Lines, line: int, size: int, asked: int) -> tuple[int, int]:
    """The line with what it is part of, what is part of it, and what stands beside it, as far as there is room."""
    first = last = line
    depth = indent(page.line(line))
    up = down = True
    parents = {each for each in page.parents(line, 12)[:2]}
    above_all = min(parents) if parents else line
    while up or down:
        choices: list[tuple[float, int, int]] = []
        for step in (-1, 1):
            if not (up if step < 0 else down):
                continue
            each = first - 1 if step < 0 else last + 1
            wider = (each, last) if step < 0 else (first, each)
            if not 0 <= each < len(page) or _length(page, *wider) > size:
                up, down = (False, down) if step < 0 else (up, False)
                continue
            choices.append((_pull(shape, page, line, each, depth, above_all, asked), step, each))
        if not choices:
            break
        pull, step, each = max(choices)
        if pull < _LEAST_PULL:
            break
        first, last = (each, last) if step < 0 else (first, each)
    while first < line and page.blank(first):
        first += 1
    while last > line and page.blank(last):
        last -= 1
    return first, last


def _pull(shape: Shape, page: Lines, line: int, each: int, depth: int, above_all: int, asked: int) -> float:
    """How much a line at the border of a passage belongs to it; 0 when it does not."""
    distance = abs(each - line)
    terms = (page.masks.get(each, 0) & asked).bit_count()
    if page.blank(each):
        # A paragraph ends here, unless a heading or a line about the question comes right after.
        beyond = each + (1 if each > line else -1)
        near = 0 <= beyond < len(page) and page.masks.get(beyond, 0) & asked
        return 0.3 if near or (not shape.prose and distance < 6) else 0.0
    own = indent(page.line(each))
    pull = 0.5 * terms + 1.0 / distance
    if each >= above_all and each < line:
        pull += 0.6  # on the way up to what it is part of
    elif own > depth and each > line:
        pull += 0.8  # a part of it
    elif own < depth:
        pull -= 0.4
    elif shape.prose:
        pull += 0.5
    if not any(byte in _LETTERS for byte in page.line(each)):
        pull = max(pull, 0.3 if distance < 4 else 0.0)  # a bracket alone parts nothing
    return pull


# -- overlong lines ----------------------------------------------------------------------------------------------


def _cut(text: Text, offset: int, size: int) -> Span:
    start, end = text.around(offset, size, size)
    low = max(start, offset - size // 3)
    high = min(end, low + size)
    # Begin and end at a blank where one is near.
    left = text.read(low, offset).find(b" ") + 1 if low > start else 0
    right = text.read(offset, high).rfind(b" ") if high < end else -1
    return Span(low + min(left, 40), offset + right if right > max(0, high - offset - 40) else high)


def heap_span(text: Text, offset: int, size: int, is_json: bool) -> Span:
    """What is quoted of an overlong line: in JSON the largest object around ``offset`` that there is room for."""
    if not is_json:
        return _cut(text, offset, min(size, 240))
    begin = max(0, offset - 2 * size)
    # One character a byte, so that offsets stay what they are; strings and brackets are told apart even so.
    data = text.read(begin, offset + 3 * size).decode("latin-1")
    at = offset - begin
    decode = json.JSONDecoder(strict=False).raw_decode
    best: Span | None = None
    left = at + 1
    while (left := data.rfind("{", 0, left)) >= 0:
        try:
            _, right = decode(data, left)
        except ValueError:
            continue
        if at < right:
            if right - left > size and best:
                break
            if right - left <= 2 * size:
                best = Span(begin + left, begin + right)
    return best or _member(data, at, begin, decode) or _cut(text, offset, size)


def _member(data: str, at: int, begin: int, decode: object) -> Span | None:
    """The ``"key": value`` or the string at a place."""
    left = at + 1
    while (left := data.rfind('"', 0, left)) >= 0:
        try:
            _, right = decode(data, left)  # type: ignore[operator]
        except ValueError:
            continue
        if at >= right:
            return None
        rest = data[right:].lstrip()
        if rest.startswith(":"):
            value = right + data[right:].index(":") + 1
            value += len(data[value:]) - len(data[value:].lstrip())
            with_value = None
            try:
                _, with_value = decode(data, value)  # type: ignore[operator]
            except ValueError:
                return Span(begin + left, begin + right)
            return Span(begin + left, begin + with_value)
        return Span(begin + left, begin + right)
    return None
