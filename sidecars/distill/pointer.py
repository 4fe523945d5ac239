"""JSON pointers of places in a JSON text of any size, and back: one pass over its tokens, nothing built.

A parser that gives values (json, jiter) needs the whole document in memory; one that gives events (ijson) does not say
at which byte an event lies. Both are what an answer about a generated JSON on one line of 100 MB needs.
"""

from __future__ import annotations

import codecs
import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sidecars.distill.decompress import PIECE
from sidecars.distill.locator import Pointer
from sidecars.distill.text import Text

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_STRING_END = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SCALAR = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|-?Infinity|NaN")
_LONGEST_KEY = 4096
_OPENING, _CLOSING = b"{[", b"}]"


class NotJsonError(ValueError):
    """The text is not one JSON document."""


def _tokens(text: Text, end: int, begin: int = 0) -> Iterator[tuple[int, int, bytes]]:
    """(start, end, first bytes) of each token from ``begin`` on, which must not be inside of one.

    A string longer than two pieces is given with its beginning alone."""
    base, data = begin or (3 if text.read(0, 3) == codecs.BOM_UTF8 else 0), b""
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
        if len(data) > 2 * PIECE:
            if not data.startswith(b'"'):
                raise NotJsonError("a word that is no value")
            stop = _end_of_string(text, base, end)
            yield base, stop, text.read(base, min(stop, base + _LONGEST_KEY))
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

    def copy(self) -> _Walk:
        """The same state, to go on from there."""
        other = _Walk()
        other.frames = [replace(frame) for frame in self.frames]
        other.ended = self.ended
        return other

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
    head = text.read(0, 4096).removeprefix(codecs.BOM_UTF8).lstrip()
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


class JsonMap:
    """Pointers of offsets and offsets of pointers in one JSON text.

    The state of the reading is kept at every other megabyte, so that only the first look at a place has to read all
    that comes before it.

    Args:
        text: the text; whether it is JSON shows while it is read.
    """

    def __init__(self, text: Text) -> None:
        self._text = text
        self._marks: list[tuple[int, _Walk]] = [(0, _Walk())]
        self._starts: dict[Pointer, int] = {}

    def at(self, offset: int) -> Pointer:
        """The pointer of the innermost value at ``offset``, of the member when that lies on its key.

        Raises:
            NotJsonError: the text is no JSON up to there.
            TimeoutSpentError: the time is up.
        """
        for start, end, token, walk in self._steps(offset):
            # A bracket stands for the value that it opens or closes, not for something inside.
            here = walk.pointer if token[0] in _OPENING else None
            walk.step(token)
            if offset < end:
                found = here or walk.pointer
                self._starts.setdefault(found, start)
                return found
        raise NotJsonError("it ends before that")

    def around(self, start: int, end: int) -> Pointer:
        """The pointer of the innermost value that holds all bytes from ``start`` to ``end``.

        Raises:
            NotJsonError, TimeoutSpentError: as ``at``.
        """
        first, last = self.at(start), self.at(max(start, end - 1))
        same = 0
        while same < min(len(first.keys), len(last.keys)) and first.keys[same] == last.keys[same]:
            same += 1
        return Pointer(first.keys[:same])

    def span(self, pointer: Pointer) -> tuple[int, int] | None:
        """The bytes of the value that ``pointer`` means, with its key when it is an object's member; None if none.

        Raises:
            NotJsonError: the text is no JSON up to there.
            TimeoutSpentError: the time is up.
        """
        begin = key = -1
        depth = len(pointer.keys)
        # Begin a little before where it was seen: its key stands before it.
        for start, end, token, walk in self._steps(max(0, self._starts.get(pointer, 0) - 2 * _LONGEST_KEY)):
            valued = _is_value(walk, token)
            if begin < 0 and len(walk.frames) == depth:
                if valued and walk.pointer == pointer:
                    begin = start if key < 0 else key
                key = start if _is_key(walk, token) else -1 if token[0] != b":"[0] else key
            walk.step(token)
            # A scalar ends at once, a bracket where the reading is as deep again as before it.
            if begin >= 0 and len(walk.frames) == depth:
                return begin, end
        return None

    def _steps(self, offset: int) -> Iterator[tuple[int, int, bytes, _Walk]]:
        """Tokens from the last mark before ``offset`` on, each with the state before it; the caller takes the step."""
        at = bisect_right(self._marks, offset, key=lambda mark: mark[0]) - 1
        begin, state = self._marks[at]
        walk = state.copy()
        for number, (start, end, token) in enumerate(_tokens(self._text, self._text.size, begin)):
            if not number & 0xFFFF:
                self._text.deadline.check()
            if start >= self._marks[-1][0] + 2 * PIECE:
                self._marks.append((start, walk.copy()))
            yield start, end, token, walk


def _is_key(walk: _Walk, token: bytes) -> bool:
    return bool(walk.frames) and walk.frames[-1].is_object and not walk.frames[-1].keyed and token[0] == b'"'[0]


def _is_value(walk: _Walk, token: bytes) -> bool:
    if token[0] in b"}],:":
        return False
    return not walk.frames or not walk.frames[-1].is_object or walk.frames[-1].keyed
