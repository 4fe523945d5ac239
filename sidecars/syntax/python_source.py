"""Python, by the standard library's tokens: they also read a piece of a file, as an edit has it."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from token import COMMENT as COMMENT_TOKEN
from token import DEDENT, ENDMARKER, INDENT, NAME, NEWLINE, OP
from token import STRING as STRING_TOKEN

from sidecars.syntax.source_parts import COMMENT, STRING, Definition, Kind

# From 3.12 on a formatted string is several tokens.
_OPENS = frozenset(getattr(tokenize, name, -1) for name in ("FSTRING_START", "TSTRING_START"))
_CLOSES = frozenset(getattr(tokenize, name, -1) for name in ("FSTRING_END", "TSTRING_END"))
_FAULTS = (tokenize.TokenError, SyntaxError, ValueError)


def _tokens(text: str) -> tuple[Iterator[tokenize.TokenInfo], int]:
    """The tokens of a text, and the number of lines put before it: a piece that begins inside of blocks needs them.

    The tokens raise one of ``_FAULTS`` where the text is no Python.
    """
    lines = text.expandtabs().splitlines()
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    outer = sorted({indent for indent in indents if indent < indents[0]}) if indents else []
    if indents and indents[0] and 0 not in outer:
        outer.insert(0, 0)
    before = "".join(" " * indent + "if x:\n" for indent in outer)
    return tokenize.generate_tokens(io.StringIO(before + text).readline), len(outer)


def kinds(text: str) -> bytearray | None:
    """The kind of each character, None when the text is no Python."""
    try:
        read, shift = _tokens(text)
        tokens = list(read)
    except _FAULTS:
        return None
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = bytearray(len(text))
    open_at: list[int] = []

    def place(position: tuple[int, int]) -> int:
        line = position[0] - 1 - shift
        return min(starts[line] + position[1], len(text)) if 0 <= line < len(starts) else len(text)

    for token in tokens:
        start, end = place(token.start), place(token.end)
        if token.type in _OPENS:
            open_at.append(start)
        elif token.type in _CLOSES and open_at:
            start = open_at.pop()
            found[start:end] = bytes([STRING]) * (end - start)
        elif token.type in (STRING_TOKEN, COMMENT_TOKEN):
            kind = STRING if token.type == STRING_TOKEN else COMMENT
            found[start:end] = bytes([kind]) * (end - start)
    return found


def definitions(text: str) -> tuple[Definition, ...] | None:
    """Functions, classes and constants of the top level, up to where the text is no Python; None if that is at once."""
    read, shift = _tokens(text)
    tokens: list[tokenize.TokenInfo] = []
    whole = False
    with suppress(*_FAULTS):
        for token in read:
            if token.type not in (COMMENT_TOKEN, tokenize.NL):
                tokens.append(token)
        whole = True
    found = _Reader(shift).read(tokens)
    return tuple(found) if whole or found else None


class _Reader:
    def __init__(self, shift: int) -> None:
        self._shift = shift
        self._found: list[tuple[str, Kind, int, str]] = []
        self._ends: dict[int, int] = {}
        # Definitions whose block is open: (number, depth of the block)
        self._open: list[tuple[int, int]] = []
        self._depth = 0
        self._last = 0
        self._static = False

    def read(self, tokens: list[tokenize.TokenInfo]) -> list[Definition]:
        start = 0
        for index, token in enumerate(tokens):
            if token.type == NEWLINE:
                self._statement(tokens[start : index + 1])
                self._last = token.start[0]
                start = index + 1
            elif token.type == INDENT:
                self._depth += 1
                start = index + 1
            elif token.type == DEDENT:
                self._depth -= 1
                self._close()
                start = index + 1
        if tokens and tokens[-1].type == ENDMARKER:
            self._depth = -1
            self._close()
        unfinished = {number for number, _ in self._open}  # the text broke off: where they end is not known
        return [
            Definition(name, kind, first - self._shift, self._ends[number] - self._shift, _is_public(name), owner)
            for number, (name, kind, first, owner) in enumerate(self._found)
            if number not in unfinished
        ]

    def _close(self) -> None:
        while self._open and self._open[-1][1] > self._depth:
            self._ends[self._open.pop()[0]] = self._last

    def _statement(self, tokens: list[tokenize.TokenInfo]) -> None:
        words = [token.string for token in tokens]
        if words[:1] == ["@"]:
            self._static |= words[1:2] in (["staticmethod"], ["classmethod"])
            return
        head = 1 if words[:1] == ["async"] else 0
        if words[head : head + 1] in (["def"], ["class"]) and len(words) > head + 1 and tokens[head + 1].type == NAME:
            self._define(words, head, tokens)
        elif self._depth == 0 and not self._open:
            self._constant(tokens)
        self._static = False

    def _define(self, words: list[str], head: int, tokens: list[tokenize.TokenInfo]) -> None:
        owner = self._found[self._open[-1][0]] if self._open else None
        kind: Kind = "class" if words[head] == "class" else "function"
        # A piece of a class has lost its head: ``self`` tells.
        inside = owner[1] == "class" if owner else words[head + 3 : head + 4] in (["self"], ["cls"])
        if kind == "function" and inside and not self._static:
            kind = "method"
        number = len(self._found)
        self._found.append((words[head + 1], kind, tokens[0].start[0], owner[0] if owner else ""))
        self._ends[number] = tokens[-1].start[0]
        if words[-2:-1] == [":"]:  # a block follows; else the body stands on the same line
            self._open.append((number, self._depth + 1))

    def _constant(self, tokens: list[tokenize.TokenInfo]) -> None:
        if self._shift or len(tokens) < 3 or tokens[0].type != NAME:
            return
        if tokens[1].type != OP or tokens[1].string not in ("=", ":"):
            return
        is_lambda = [each.string for each in tokens[1:3]] == ["=", "lambda"]
        if is_lambda or tokens[0].string.isupper():
            number = len(self._found)
            kind: Kind = "function" if is_lambda else "constant"
            self._found.append((tokens[0].string, kind, tokens[0].start[0], ""))
            self._ends[number] = tokens[-1].start[0]


def _is_public(name: str) -> bool:
    return not name.startswith("_")
