"""A word of the shell's grammar → what the program is given for it, as far as that can be known from its text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_ESCAPE = re.compile(r"\\(\n|.)", re.DOTALL)
_QUOTED_ESCAPE = re.compile(r"\\(\n|[$`\"\\])")
_ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_ANSI_NAMED = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
# What the shell itself may turn into other words when it stands unquoted.
_PATTERN = re.compile(r"[*?\[{]")
_PLAIN_EXPANSION = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")


# What an unquoted value is taken apart at, or replaced by.
_SPLIT = re.compile(r"[\s*?\[\\~]")
_NO_VALUES: Mapping[str, str | None] = {}


@dataclass(frozen=True, slots=True)
class Word:
    """One word after the shell has read it.

    Args:
        text: what the program is given, None when that depends on more than the text of the line.
        head: what it surely begins with; all of it when ``text`` is known.
        many: it may become no word or several.
        quoted: its first sign is quoted, so that ``~`` is no home and ``-`` still a flag.
        spelled: its known parts, what is not known left out.
    """

    text: str | None
    head: str = ""
    many: bool = False
    quoted: bool = False
    spelled: str = ""

    @property
    def is_flag(self) -> bool:
        """It begins with a dash and is more than that; ``-`` alone means a standard stream."""
        return self.head.startswith("-") and self.head != "-"


UNKNOWN = Word(None, many=True)


def literal(text: str) -> Word:
    """The word that is ``text`` and nothing else."""
    return Word(text, text, quoted=True, spelled=text)


def text_of(node: Node, source: bytes) -> str:
    """The source under a node."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def ansi_text(body: str) -> str:
    r"""The text of ``$'…'``, from what stands between its quotes."""

    def one(found: re.Match[str]) -> str:
        for group, base in ((1, 16), (2, 16), (3, 16), (4, 8)):
            if found[group]:
                number = int(found[group], base)
                return chr(number) if number < 0x110000 else ""
        if found[5]:
            return chr(ord(found[5]) & 0x1F)
        return _ANSI_NAMED.get(found[6], found[6] if found[6] in "\\'\"?" else "\\" + found[6])

    return _ANSI_ESCAPE.sub(one, body)


@dataclass(slots=True)
class _Parts:
    """What has been read of a word so far."""

    values: Mapping[str, str | None]
    known: list[str] = field(default_factory=list)
    head: list[str] = field(default_factory=list)
    sure: bool = True
    many: bool = False

    def add(self, text: str) -> None:
        self.known.append(text)
        if self.sure:
            self.head.append(text)

    def unknown(self, *, many: bool) -> None:
        self.sure = False
        self.many |= many


def read_word(node: Node, source: bytes, values: Mapping[str, str | None] = _NO_VALUES) -> Word:
    """A word of a command, as the program is given it.

    Args:
        node: the word's node; anything that is no word is unknown.
        source: the text that was parsed.
        values: of the variables that are known there.
    """
    kind = node.type
    if kind in ("word", "number") and node.child_count == 0:
        text = text_of(node, source)
        if "\\" not in text and not _PATTERN.search(text):
            return Word(text, text, spelled=text)
    elif kind == "raw_string":
        return literal(text_of(node, source)[1:-1])
    parts = _Parts(values)
    _read(node, source, parts)
    known = "".join(parts.known)
    first = source[node.start_byte : node.start_byte + 1]
    return Word(
        known if parts.sure else None,
        "".join(parts.head),
        parts.many,
        quoted=first in (b'"', b"'", b"\\", b"$"),
        spelled=known,
    )


def _read(node: Node, source: bytes, parts: _Parts) -> None:
    kind = node.type
    if kind in ("word", "number", "extglob_pattern", "variable_name") and node.child_count == 0:
        _read_plain(text_of(node, source), parts, pattern=kind == "extglob_pattern")
    elif kind == "raw_string":
        parts.add(text_of(node, source)[1:-1])
    elif kind == "ansi_c_string":
        parts.add(ansi_text(text_of(node, source)[2:-1]))
    elif kind == "string":
        _read_string(node, source, parts)
    elif kind in ("concatenation", "command_name"):
        for child in node.children:
            _read(child, source, parts)
    elif kind in ("simple_expansion", "expansion"):
        value = _value(node, source, parts.values)
        if value is None or _SPLIT.search(value) or not value or "IFS" in parts.values:
            parts.unknown(many=True)
        else:
            parts.add(value)
    elif kind in ("arithmetic_expansion", "process_substitution"):
        parts.unknown(many=False)
    else:
        parts.unknown(many=True)


def _read_plain(text: str, parts: _Parts, *, pattern: bool) -> None:
    """What stands unquoted; a sign behind a backslash is quoted."""
    if pattern or _PATTERN.search(_ESCAPE.sub("", text)):
        start = _PATTERN.search(text)
        parts.add(text[: start.start()] if start else text)
        parts.unknown(many=True)
    else:
        parts.add(_ESCAPE.sub(lambda found: "" if found[1] == "\n" else found[1], text))


def _value(node: Node, source: bytes, values: Mapping[str, str | None]) -> str | None:
    """What ``$name`` or ``${name}`` stands for; None for every other expansion."""
    found = _PLAIN_EXPANSION.fullmatch(text_of(node, source))
    return values.get(found[1]) if found else None


def _read_string(node: Node, source: bytes, parts: _Parts) -> None:
    """The inside of double quotes. The grammar leaves some blanks out: what lies between its nodes counts too."""
    start, end = node.start_byte, node.end_byte
    position = source.index(b'"', start, end) + 1
    for child in node.children:
        if child.is_named and child.type != "string_content":
            if child.start_byte > position:
                parts.add(_quoted_text(source[position : child.start_byte]))
            value = _value(child, source, parts.values)
            if value is not None:
                parts.add(value)
            else:
                inside = source[child.start_byte : child.end_byte]
                # "$@" is as many words as there are arguments
                parts.unknown(many=inside in (b"$@", b"${@}") or b"[@]" in inside)
            position = child.end_byte
    if end - 1 > position:
        parts.add(_quoted_text(source[position : end - 1]))


def _quoted_text(inside: bytes) -> str:
    return _QUOTED_ESCAPE.sub(lambda found: "" if found[1] == "\n" else found[1], inside.decode("utf-8", "replace"))
