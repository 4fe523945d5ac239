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
from dataclasses import dataclass

from sidecars.distill.answer import Pointer
from sidecars.distill.decompress import PIECE
from sidecars.distill.text import Text

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_STRING_END = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SCALAR = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|-?Infinity|NaN")
_LONGEST_KEY = 4096
# So many bytes are read token by token for one place.
BLOCK = 1 << 16
_OPENING, _CLOSING = b"{[", b"}]"


class NotJsonError(ValueError):
    """The text is not one JSON document."""


def _tokens(text: Text, end: int, begin: int = 0) -> Iterator[tuple[int, int, bytes]]:
    """(start, end, first bytes) of each token from ``begin`` on, which must not be inside of one.

    A string longer than two pieces is given with its beginning alone."""
    base, data = begin or (3 if text.read(0, 3) == codecs.BOM_UTF8 else 0), b""
    while True:
        fresh = text.read(base + len(data), min(end, base + len(data) + BLOCK))
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
    """Whether the text is one JSON object or array, as far as its first bytes tell."""
    head = text.read(0, 4096).removeprefix(codecs.BOM_UTF8).lstrip()
    if not head or head[0] not in _OPENING:
        return False
    walk = _Walk()
    try:
        for _, _, token in _tokens(text, min(text.size, BLOCK)):
            walk.step(token)
    except NotJsonError as error:
        # Cut in the middle of a string or a number: that is our doing.
        return text.size > BLOCK and not walk.ended and "ends inside" in str(error)
    except IndexError:
        return False
    return walk.ended or text.size > BLOCK


# Of a block without its strings: what is opened and closed inside of it says nothing about what comes after it.
_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BALANCED = re.compile(rb"\{,*\}|\[,*\]")
_REST = re.compile(rb",+|[{}\[\]]")
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'{}[],"'))
_PARTING = (b"},", b'",', b"],", b",")
_TRIES = 6


@dataclass(frozen=True, slots=True)
class _Open:
    """A bracket that is open at a mark: where its block begins, the how manieth of those that block leaves open."""

    is_object: bool
    block: int
    number: int
    index: int


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place right after a comma, with what is open there; and how shallow the block before it was."""

    offset: int
    opened: tuple[_Open, ...]
    low: int = 0


class Skeleton:
    """What is open at a mark in each block of a JSON text, found as far as it is needed.

    Args:
        text: the text.
    """

    def __init__(self, text: Text) -> None:
        self._text = text
        begin = 3 if text.read(0, 3) == codecs.BOM_UTF8 else 0
        self._marks = [_Mark(begin, ())]
        self._openings: dict[int, list[int]] = {}
        self._through = False

    def mark(self, offset: int) -> tuple[int, _Walk]:
        """The last mark before ``offset``, with the state of the reading there."""
        at = self._reach(offset)
        found = self._marks[at]
        walk = _Walk()
        for depth, frame in enumerate(found.opened):
            key = ""
            if frame.is_object and depth + 1 < len(found.opened):
                key = self._key_before(self._opening(found.opened[depth + 1]))
            walk.frames.append(_Frame(frame.is_object, key, frame.index, bool(key)))
        if walk.frames:
            walk.frames[-1].keyed = False
        return found.offset, walk

    def before(self, pointer: Pointer) -> int:
        """A mark that is surely not behind the value that ``pointer`` means: the nearest that can be told."""
        self._reach(self._text.size)
        for found in reversed(self._marks):
            depth = len(found.opened) - 1
            if not 0 <= depth < len(pointer.keys) or found.opened[-1].is_object:
                continue
            wanted = pointer.keys[depth]
            if not wanted.isdigit() or found.opened[-1].index > int(wanted):
                continue
            _, walk = self.mark(found.offset)
            if walk.pointer.keys[:depth] == pointer.keys[:depth]:
                return found.offset
        return 0

    def following(self, offset: int) -> int:
        """The first mark behind ``offset``; the end of the text when there is none."""
        at = self._reach(offset)
        return self._marks[at + 1].offset if at + 1 < len(self._marks) else self._text.size

    def closing(self, offset: int, depth: int) -> int:
        """The mark of the first block from ``offset`` on that comes up to ``depth``; the last if none does."""
        at = self._reach(offset)
        while at + 1 < len(self._marks) or not self._through:
            if at + 1 >= len(self._marks):
                self._grow()
            elif self._marks[at + 1].low <= depth:
                break
            else:
                at += 1
        return self._marks[at].offset

    def _reach(self, offset: int) -> int:
        while self._marks[-1].offset <= offset and not self._through:
            self._grow()
        return max(0, bisect_right(self._marks, offset, key=lambda mark: mark.offset) - 1)

    def _grow(self) -> None:
        self._text.deadline.check()
        last = self._marks[-1]
        size = BLOCK
        while True:
            data = self._text.read(last.offset, last.offset + size)
            if len(data) < size:
                self._through = True  # what is left is read token by token
                return
            for residue, length in _cuts(data):
                self._marks.append(self._after(last, residue, last.offset + length))
                return
            if size > 64 * PIECE:
                raise NotJsonError("a value without an end")
            size *= 4

    def _after(self, last: _Mark, residue: bytes, offset: int) -> _Mark:
        opened = list(last.opened)
        low, fresh = len(opened), 0
        for found in _REST.finditer(residue):
            token = found[0]
            if token[0] in _OPENING:
                opened.append(_Open(token == b"{", last.offset, fresh, 0))
                fresh += 1
            elif not opened:
                raise NotJsonError("more than one document")
            elif token[0] in _CLOSING:
                if opened.pop().is_object != (token == b"}"):
                    raise NotJsonError("brackets that do not match")
                low = min(low, len(opened))
            else:
                top = opened[-1]
                opened[-1] = _Open(top.is_object, top.block, top.number, top.index + len(token))
        return _Mark(offset, tuple(opened), low)

    def _opening(self, frame: _Open) -> int:
        """Where the bracket stands."""
        if frame.block not in self._openings:
            at = bisect_right(self._marks, frame.block, key=lambda mark: mark.offset) - 1
            end = self._marks[at + 1].offset
            data = self._text.read(frame.block, end)
            stack: list[int] = []
            for found in _TOKEN.finditer(data):
                if found[0] in (b"{", b"["):
                    stack.append(frame.block + found.start())
                elif found[0] in (b"}", b"]") and stack:
                    stack.pop()
            self._openings[frame.block] = stack
        return self._openings[frame.block][frame.number]

    def _key_before(self, opening: int) -> str:
        """The key of the value that begins at ``opening``."""
        data = self._text.read(opening - _LONGEST_KEY, opening).rstrip().removesuffix(b":").rstrip()
        left = len(data) - 1
        while left > 0:
            left = data.rfind(b'"', 0, left)
            slashes = left - len(data[:left].rstrip(b"\\")) if left >= 0 else 0
            if slashes % 2 == 0:
                break
        return _plain_key(data[max(0, left) :])


def _cuts(data: bytes) -> Iterator[tuple[bytes, int]]:
    """What the block leaves open, and where it ends: behind a comma that stands in no string."""
    for parting in _PARTING:
        end = len(data)
        for _ in range(_TRIES):
            end = data.rfind(parting, 0, end)
            if end < len(data) // 4:
                break
            length = end + len(parting)
            residue = _STRINGS.sub(b"", data[:length]).translate(None, _NOT_STRUCTURE)
            if b'"' in residue:
                continue
            while (shorter := _BALANCED.sub(b"", residue)) != residue:
                residue = shorter
            yield residue, length


class JsonMap:
    """Pointers of offsets and offsets of pointers in one JSON text.

    The text is gone through once, in blocks, with an expression that leaves of each what it opens, closes and counts;
    token by token only the block is read in which a place is.

    Args:
        text: the text; whether it is JSON shows while it is read.
    """

    def __init__(self, text: Text) -> None:
        self._text = text
        self._skeleton = Skeleton(text)
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
        key = -1
        depth = len(pointer.keys)
        # Begin a little before where it was seen: its key stands before it.
        seen = self._starts.get(pointer)
        near = self._skeleton.before(pointer) if seen is None else max(0, seen - 2 * _LONGEST_KEY)
        for start, end, token, walk in self._steps(near):
            if len(walk.frames) == depth and _is_value(walk, token) and walk.pointer == pointer:
                begin = start if key < 0 else key
                walk.step(token)
                # A scalar ends at once, a bracket where the reading is as deep again as before it.
                return begin, end if len(walk.frames) == depth else self._closing(end, depth)
            if len(walk.frames) == depth:
                key = start if _is_key(walk, token) else -1 if token[0] != b":"[0] else key
            walk.step(token)
        return None

    def _closing(self, offset: int, depth: int) -> int:
        """Where the value ends that was opened just before ``offset``, in a frame of that depth."""
        border = self._skeleton.following(offset)
        for start, end, token, walk in self._steps(offset):
            if start >= border:
                break
            walk.step(token)
            if start >= offset and token[0] in _CLOSING and len(walk.frames) == depth:
                return end
        for _, end, token, walk in self._steps(self._skeleton.closing(border, depth)):
            walk.step(token)
            if token[0] in _CLOSING and len(walk.frames) == depth:
                return end
        raise NotJsonError("it ends inside a value")

    def _steps(self, offset: int) -> Iterator[tuple[int, int, bytes, _Walk]]:
        """Tokens from the last mark before ``offset`` on, each with the state before it; the caller takes the step."""
        begin, walk = self._skeleton.mark(offset)
        for number, (start, end, token) in enumerate(_tokens(self._text, self._text.size, begin)):
            if not number & 0xFFF:
                self._text.deadline.check()
            yield start, end, token, walk


def _is_key(walk: _Walk, token: bytes) -> bool:
    return bool(walk.frames) and walk.frames[-1].is_object and not walk.frames[-1].keyed and token[0] == b'"'[0]


def _is_value(walk: _Walk, token: bytes) -> bool:
    if token[0] in b"}],:":
        return False
    return not walk.frames or not walk.frames[-1].is_object or walk.frames[-1].keyed
