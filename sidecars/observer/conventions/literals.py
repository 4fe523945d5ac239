"""Literals of JavaScript and of JSON with comments, read from a configuration as data; nothing of a program is run.

What is no literal (a call, a name, a spread) is ``None``, and what follows it is read all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_BLANKS = re.compile(r"(?:\s|//[^\n]*|/\*.*?(?:\*/|\Z))*", re.DOTALL)
_STRING = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_TYPED = re.compile(r"(?:as|satisfies)\b")
_WORDS = {"true": True, "false": False, "null": None}
_CLOSES = {"{": "}", "[": "]", "(": ")"}
_DEEPEST = 40
# More objects than this are no configuration.
_MOST = 4_000


class _NoLiteralError(Exception):
    """What stands here is no literal."""


def read_json(text: str) -> dict[str, Any]:
    """JSON as these tools read it, with comments and trailing commas; nothing where it is no object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = next(objects_in(text), {})
    return value if isinstance(value, dict) else {}


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """The object literals of a program that stand in no other one, in their order."""
    reading = _Reading(text)
    while (at := reading.next_object()) >= 0:
        reading.at = at
        try:
            value = reading.value(0)
        except _NoLiteralError:
            reading.at = at + 1
            continue
        if isinstance(value, dict) and value:
            yield value
        else:
            reading.at = at + 1


class _Reading:
    """Reads from one place of a text on."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0
        self._left = _MOST

    def next_object(self) -> int:
        """Where the next brace stands that belongs to no text and no comment; -1 for none."""
        while True:
            self._blanks()
            if self.at >= len(self._text):
                return -1
            if self._text[self.at] == "{":
                return self.at
            self._over()

    def value(self, depth: int) -> Any:
        """The value that begins here, None where it is no literal."""
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            raise _NoLiteralError
        self._blanks()
        sign = self._text[self.at : self.at + 1]
        start = self.at
        found: Any = None
        if sign == "{":
            found = self._object(depth)
        elif sign == "[":
            found = self._array(depth)
        elif string := _STRING.match(self._text, self.at):
            self.at = string.end()
            found = _unquoted(string[0])
        elif number := _NUMBER.match(self._text, self.at):
            self.at = number.end()
            found = float(number[0]) if "." in number[0] or len(number[0]) > 9 else int(number[0])
        elif name := _NAME.match(self._text, self.at):
            self.at = name.end()
            found = _WORDS.get(name[0])
        whole = self.at > start
        self._blanks()
        if not whole or self._text[self.at : self.at + 1] not in (",", "}", "]", ")", ";", ""):
            typed = _TYPED.match(self._text, self.at) is not None
            self._skip()  # an expression: what it comes to is not known
            return found if sign in ("{", "[") and (typed or depth == 0) else None
        return found

    def _object(self, depth: int) -> dict[str, Any]:
        self.at += 1
        found: dict[str, Any] = {}
        while not self._closed("}"):
            if self._text.startswith("...", self.at):
                self._skip()
                continue
            if string := _STRING.match(self._text, self.at):
                key = _unquoted(string[0])
                self.at = string.end()
            elif name := _NAME.match(self._text, self.at) or _NUMBER.match(self._text, self.at):
                key = name[0]
                self.at = name.end()
            else:
                raise _NoLiteralError
            self._blanks()
            if self._text[self.at : self.at + 1] == ":":
                self.at += 1
                found[key] = self.value(depth + 1)
            elif self._text[self.at : self.at + 1] in (",", "}"):
                found[key] = None  # { name }
            elif self._text[self.at : self.at + 1] == "(":
                self._skip()  # a method
            else:
                raise _NoLiteralError
        return found

    def _array(self, depth: int) -> list[Any]:
        self.at += 1
        found: list[Any] = []
        while not self._closed("]"):
            if self._text.startswith("...", self.at):
                self._skip()
            else:
                found.append(self.value(depth + 1))
        return found

    def _closed(self, sign: str) -> bool:
        """Whether a list ends here; the comma before its next part is passed."""
        self._blanks()
        if self._text[self.at : self.at + 1] == ",":
            self.at += 1
            self._blanks()
        if self.at >= len(self._text):
            raise _NoLiteralError
        if self._text[self.at] != sign:
            return False
        self.at += 1
        return True

    def _skip(self) -> None:
        """Pass what is no literal, up to the comma or the bracket that ends it."""
        waiting: list[str] = []
        while self.at < len(self._text):
            self._blanks()
            sign = self._text[self.at : self.at + 1]
            if not waiting and sign in (",", "}", "]", ")", ";"):
                return
            if sign in _CLOSES:
                waiting.append(_CLOSES[sign])
            elif waiting and sign == waiting[-1]:
                waiting.pop()
            self._over()

    def _over(self) -> None:
        """Pass one text, one name or one sign."""
        found = _STRING.match(self._text, self.at) or _NAME.match(self._text, self.at)
        self.at = found.end() if found else self.at + 1

    def _blanks(self) -> None:
        found = _BLANKS.match(self._text, self.at)
        if found is not None:
            self.at = found.end()


def _unquoted(quoted: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted[1:-1], flags=re.DOTALL)
