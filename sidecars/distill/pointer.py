"""JSON pointers of places in a JSON text of any size, and back: one pass over its tokens, nothing built.

A parser that gives values (json, jiter) needs the whole document in memory; one that gives events (ijson) does not say
at which byte an event lies. Both are what an answer about a generated JSON on one line of 100 MB needs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sidecars.distill.expand import PIECE
from sidecars.distill.locator import Pointer
from sidecars.distill.text import Text

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_STRING_END = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SCALAR = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|-?Infinity|NaN")
_LONGEST_KEY = 4096
_OPENING, _CLOSING = b"{[", b"}]"


class NotJsonError(ValueError):
    """The text is not one JSON document."""


def _tokens(text: Text, end: int) -> Iterator[tuple[int, int, bytes]]:
    """(start, end, first bytes) of each token. A string longer than two pieces is given with its beginning alone."""
    base, data = 0, b""
    while True:
        fresh = text.read(base + len(data), min(end, base + len(data) + PIECE))
        data += fresh
        last = not fresh
        used = 0
        for found in _TOKEN.finditer(data):
            # A token that touches the end of what was read may go on after it.
            if found.end() == len(data) and not last and data[found.start()] not in b"{}[],:":
                break
            if found.start() > used and data[used : found.start()].strip():
                used = data.index(b'"', used)  # a string whose end was not read yet
                break
            yield base + found.start(), base + found.end(), found.group()[: _LONGEST_KEY + 2]
            used = found.end()
        if last:
            if data[used:].strip():
                raise NotJsonError("it ends inside a string")
            return
        rest = data[used:].lstrip()
        base, data = base + len(data) - len(rest), rest
        if len(data) > 2 * PIECE and data.startswith(b'"'):
            stop = _end_of_string(text, base, end)
            yield base, stop, data[:_LONGEST_KEY]
            base, data = stop, b""


def _end_of_string(text: Text, start: int, end: int) -> int:
    at = start + 1
    while at < end:
        data = text.read(at, min(end, at + PIECE))
        if found := _STRING_END.match(data):
            return at + found.end()
        # Do not part a backslash from what it escapes.
        tail = len(data) - len(data.rstrip(b"\\"))
        at += max(1, len(data) - tail % 2)
    raise NotJsonError("it ends inside a string")


@dataclass(slots=True)
class _Frame:
    is_object: bool
    key: str = ""
    index: int = 0
    keyed: bool = False  # the key was read, its value comes


class _Walk:
    """Where in the document the reading is."""

    def __init__(self) -> None:
        self.frames: list[_Frame] = []
        self.ended = False

    @property
    def pointer(self) -> Pointer:
        return Pointer(tuple(frame.key if frame.is_object else str(frame.index) for frame in self.frames))

    def step(self, token: bytes) -> bool:
        """Take one token. True when a value begins with it.

        Raises:
            NotJsonError: no JSON goes on like this.
        """
        head = token[0]
        top = self.frames[-1] if self.frames else None
        if head in _CLOSING:
            if top is None or top.is_object != (head == _CLOSING[0]):
                raise NotJsonError("brackets that do not match")
            self.frames.pop()
            self.ended = not self.frames
            return False
        if head == b","[0]:
            if top is None:
                raise NotJsonError("a comma outside of everything")
            top.index += 1
            top.keyed = False
            return False
        if head == b":"[0]:
            if top is None or not top.is_object:
                raise NotJsonError("a colon outside of an object")
            top.keyed = True
            return False
        if top is not None and top.is_object and not top.keyed:
            if head != b'"'[0]:
                raise NotJsonError("a key that is no string")
            top.key = _plain_key(token)
            return False
        if self.ended:
            raise NotJsonError("more than one document")
        if head in _OPENING:
            self.frames.append(_Frame(head == _OPENING[0]))
        elif head != b'"'[0] and not _SCALAR.fullmatch(token):
            raise NotJsonError("a word that is no value")
        self.ended = not self.frames
        return True


def _plain_key(token: bytes) -> str:
    try:
        return str(json.loads(token.decode("utf-8", "replace"), strict=False))
    except ValueError:
        return token[1:-1].decode("utf-8", "replace")


def is_json(text: Text) -> bool:
    """Whether the text is one JSON object or array, as far as its first megabyte tells."""
    head = text.read(0, 4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head or head[0] not in _OPENING:
        return False
    walk = _Walk()
    try:
        for _, _, token in _tokens(text, min(text.size, PIECE)):
            walk.step(token)
    except NotJsonError as error:
        # Cut in the middle of a string or a number: that is our doing.
        return text.size > PIECE and not walk.ended and "ends inside" in str(error)
    except IndexError:
        return False
    return walk.ended or text.size > PIECE


def pointers_at(text: Text, offsets: Sequence[int]) -> dict[int, Pointer]:
    """The pointer of the innermost value at each offset, of the member when the offset lies on its key.

    Raises:
        NotJsonError: the text is no JSON up to there.
        TimeoutSpentError: the time is up.
    """
    wanted = sorted(set(offsets), reverse=True)
    found: dict[int, Pointer] = {}
    walk = _Walk()
    for number, (_, end, token) in enumerate(_tokens(text, text.size)):
        if not number & 0xFFFF:
            text.deadline.check()
        # A bracket stands for the value that it opens or closes, not for something inside.
        here = walk.pointer if token[0] in _OPENING else None
        walk.step(token)
        while wanted and wanted[-1] < end:
            found[wanted.pop()] = here or walk.pointer
        if not wanted:
            break
    return found


def span_of(text: Text, pointer: Pointer) -> tuple[int, int] | None:
    """The bytes of the value that ``pointer`` means, None when there is none.

    Raises:
        NotJsonError: the text is no JSON up to there.
        TimeoutSpentError: the time is up.
    """
    walk = _Walk()
    start = -1
    depth = 0
    for number, (at, end, token) in enumerate(_tokens(text, text.size)):
        if not number & 0xFFFF:
            text.deadline.check()
        before = len(walk.frames)
        if start < 0 and before == len(pointer.keys) and _is_value(walk, token) and walk.pointer == pointer:
            start, depth = at, before
        walk.step(token)
        if start >= 0 and len(walk.frames) == depth:
            return start, end
    return None


def _is_value(walk: _Walk, token: bytes) -> bool:
    if token[0] in b"}],:":
        return False
    return not walk.frames or not walk.frames[-1].is_object or walk.frames[-1].keyed
