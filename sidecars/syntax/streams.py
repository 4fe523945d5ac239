"""The redirections of a command: the files that they name and the text that they give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sidecars.syntax.words import Word, read_word, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_OUTPUTS = frozenset([">", ">>", ">|", "&>", "&>>", ">&"])


@dataclass(slots=True)
class Input:
    """What a command finds on its standard input.

    Args:
        text: what stands there, None when it is not known.
        code: the same, only when no part of it was left out.
    """

    text: str | None = None
    code: str | None = None


@dataclass(slots=True)
class Redirects:
    """Where a command's streams go.

    Args:
        values: of the variables that are known there.
        outputs, inputs: the files' words.
        stdout: those of ``outputs`` that take the standard output.
        words: words of the command that the grammar counts to a redirection.
        given: its standard input, None when that is not redirected.
        substitutions: nodes that may hold commands of their own.
        behind: what stands on the first line of a here-document behind its mark.
    """

    values: Mapping[str, str | None]
    outputs: list[Word] = field(default_factory=list)
    inputs: list[Word] = field(default_factory=list)
    stdout: list[Word] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    given: Input | None = None
    substitutions: list[Node] = field(default_factory=list)
    behind: list[Node] = field(default_factory=list)


def read_redirects(nodes: Iterable[Node], source: bytes, values: Mapping[str, str | None]) -> Redirects:
    """The redirections of one command.

    Args:
        nodes: theirs; others are passed over.
        source: the text that was parsed.
        values: of the variables that are known there.
    """
    streams = Redirects(values)
    for node in nodes:
        _read(node, source, streams)
    return streams


def _read(node: Node, source: bytes, streams: Redirects) -> None:
    if node.type == "file_redirect":
        _file(node, source, streams)
    elif node.type == "herestring_redirect":
        _herestring(node.named_children[-1], source, streams)
    elif node.type == "heredoc_redirect":
        _heredoc(node, source, streams)


def is_herestring(fault: Node) -> bool:
    """Whether a fault is the beginning of a ``<<<`` behind another redirection, which the grammar does not know."""
    behind = fault.next_sibling
    return (
        fault.end_byte - fault.start_byte == 2
        and fault.child_count == 1
        and fault.children[0].type == "<<"
        and behind is not None
        and behind.type == "file_redirect"
        and behind.start_byte == fault.end_byte
    )


def _herestring(node: Node, source: bytes, streams: Redirects) -> None:
    word = read_word(node, source, streams.values)
    streams.given = Input(word.spelled + "\n", None if word.text is None else word.text + "\n")
    streams.substitutions.append(node)


def _file(node: Node, source: bytes, streams: Redirects) -> None:
    operator = next((child.type for child in node.children if not child.is_named), "")
    descriptor = node.child_by_field_name("descriptor")
    targets = node.children_by_field_name("destination")
    if not targets:
        return
    streams.substitutions += targets
    streams.words += [read_word(target, source, streams.values) for target in targets[1:]]
    word = read_word(targets[0], source, streams.values)
    if (operator in (">&", "<&") and (word.text or "-").strip("-").isdigit()) or word.text == "-":
        return
    before = node.prev_sibling
    if operator == "<" and before is not None and before.type == "ERROR" and is_herestring(before):
        _herestring(targets[0], source, streams)
    elif operator == "<":
        streams.inputs.append(word)
        if descriptor is None:
            streams.given = Input()
    elif operator in _OUTPUTS:
        streams.outputs.append(word)
        if descriptor is None or text_of(descriptor, source) == "1":
            streams.stdout.append(word)


def _heredoc(node: Node, source: bytes, streams: Redirects) -> None:
    parts: dict[str, Node] = {}
    behind: list[Node] = []
    for place, child in enumerate(node.children):
        if child.type in ("file_redirect", "herestring_redirect"):
            _read(child, source, streams)
        elif node.field_name_for_child(place) == "argument":
            streams.words.append(read_word(child, source, streams.values))
        elif child.is_named and not child.type.startswith("heredoc"):
            behind.append(child)
        else:
            parts[child.type] = child
    if "||" not in parts:  # what stands behind that may not run
        streams.behind += behind
    streams.given = _body(node, parts, source, streams)


def _body(node: Node, parts: dict[str, Node], source: bytes, streams: Redirects) -> Input:
    """The text of a here-document. What the shell would put in is left out; the text is no code then."""
    start, body, end = (parts.get(f"heredoc_{part}") for part in ("start", "body", "end"))
    if start is None or body is None or end is None:
        return Input()
    ends = [child.end_byte for child in node.children if child.end_byte <= body.start_byte]
    begin = source.find(b"\n", max(ends, default=start.end_byte)) + 1
    if not begin or begin > end.start_byte:
        return Input()
    text, whole, position = "", True, begin
    plain = any(sign in text_of(start, source) for sign in "'\"\\")
    if not plain:
        streams.substitutions.append(body)
        for part in body.named_children:
            if part.type != "heredoc_content":
                text += source[position : max(position, part.start_byte)].decode("utf-8", "replace")
                position, whole = max(position, part.end_byte), False
    text += source[position : end.start_byte].decode("utf-8", "replace")
    if "<<-" in parts:
        text = "\n".join(line.lstrip("\t") for line in text.split("\n"))
    return Input(text, text if whole and (plain or "\\" not in text) else None)
