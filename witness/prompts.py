"""Prompts made of typed blocks, written as XML and read back without the loss of a character.

The block types and the names under which other tools write them are flompt's. One name is written, all are read.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# In the order in which a prompt puts them.
TYPES = (
    "document",
    "role",
    "tools",
    "audience",
    "context",
    "environment",
    "objective",
    "goal",
    "input",
    "constraints",
    "guardrails",
    "examples",
    "chain_of_thought",
    "output_format",
    "response_style",
    "language",
)
# What stands between blocks and belongs to none.
TEXT = "text"
ALIASES = {
    "ctx": "context",
    "env": "environment",
    "format": "output_format",
    "format_instructions": "response_style",
    "style": "response_style",
    "thinking": "chain_of_thought",
    "example": "examples",
    "constraint": "constraints",
    "guardrail": "guardrails",
    "doc": "document",
}
# What each name in a tag means.
READ = {**{name: name for name in TYPES}, TEXT: TEXT, **ALIASES}
_OPEN = re.compile(rf"<({'|'.join(sorted([*READ, 'documents'], key=len, reverse=True))})(\s[^<>]*)?>")
_WRAPPER = re.compile(r"</?prompt>")
_DOCUMENT = re.compile(r"<document(?:\s[^<>]*)?>(.*?)</document>", re.DOTALL)
_SOURCE = re.compile(r"\s*<source>(.*?)</source>\s*", re.DOTALL)
_BODY = re.compile(r"\s*<document_content>(.*)</document_content>\s*", re.DOTALL)
_EXAMPLE = re.compile(r"\s*<example>(.*?)</example>\s*", re.DOTALL)
_PAIR = re.compile(r"\s*<user_input>(.*?)</user_input>\s*<ideal_response>(.*?)</ideal_response>\s*", re.DOTALL)
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#39);")
_PLAIN = {**{escaped: sign for sign, escaped in _ESCAPES.items()}, "&#39;": "'"}


@dataclass(frozen=True, slots=True)
class Block:
    """One part of a prompt.

    Args:
        type: one of ``TYPES``, or ``TEXT``.
        content: its text, as it is meant and not as it is escaped.
        summary: of a document, where it comes from.
    """

    type: str
    content: str
    summary: str = ""

    def __post_init__(self) -> None:
        if self.type not in TYPES and self.type != TEXT:
            raise ValueError(f"{self.type!r} is no block type: one of {', '.join(TYPES)}")
        if self.summary and self.type != "document":
            raise ValueError("only a document has a summary")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a prompt's text.

    Args:
        source: the characters, as they stand; all pieces joined are the text again.
        start: where they begin.
        block: what they say, None for what only separates (blanks, the wrapper).
    """

    source: str
    start: int
    block: Block | None = None


# -- writing --------------------------------------------------------------------------------------------------------


def render(blocks: Iterable[Block]) -> str:
    """Write blocks as XML, in the order in which they come.

    Args:
        blocks: of any type and content; ``parse`` gives exactly them back.
    """
    parts = []
    documents: list[Block] = []
    for block in [*blocks, None]:
        if block is not None and block.type == "document":
            documents.append(block)
            continue
        if documents:
            parts.append(_documents(documents))
            documents = []
        if block is not None:
            parts.append(f"  <{block.type}>{_examples(block) or _inner(block.content)}</{block.type}>")
    return "\n".join(["<prompt>", *parts, "</prompt>"])


def _escape(text: str) -> str:
    return "".join(_ESCAPES.get(sign, sign) for sign in text)


def _inner(content: str) -> str:
    # Text of several lines begins and ends on lines of its own; one of a single line stays in its line.
    text = _escape(content)
    return f"\n{text}\n" if "\n" in content else text


def _documents(documents: Sequence[Block]) -> str:
    lines = ["  <documents>"]
    for index, block in enumerate(documents, 1):
        lines.append(f'    <document index="{index}">')
        if block.summary:
            lines.append(f"      <source>{_escape(block.summary)}</source>")
        lines.append(f"      <document_content>{_inner(block.content)}</document_content>")
        lines.append("    </document>")
    return "\n".join([*lines, "  </documents>"])


def _examples(block: Block) -> str:
    """Pairs of input and output as elements of their own, where reading them gives the same text back; else nothing."""
    if block.type != "examples":
        return ""
    pairs = []
    for part in block.content.split("\n\n"):
        found = re.fullmatch(r"Input: (.*)\nOutput: (.*)", part, re.DOTALL)
        if not found or "\nOutput: " in found[1]:
            return ""
        pairs.append((found[1], found[2]))
    inside = "".join(
        f"\n    <example><user_input>{_inner(given)}</user_input>"
        f"<ideal_response>{_inner(wanted)}</ideal_response></example>"
        for given, wanted in pairs
    )
    return f"{inside}\n  "


# -- reading --------------------------------------------------------------------------------------------------------


def decompose(text: str) -> list[Piece]:
    """Cut a prompt into pieces; every character of it stands in exactly one.

    Text outside of all blocks becomes a block of type ``TEXT``, so do blocks that are never closed.

    Args:
        text: a prompt, wrapped in ``<prompt>`` or not.
    """
    pieces: list[Piece] = []
    position = loose = 0
    while found := _OPEN.search(text, position):
        end = _close(text, found[1], found.end())
        if end is None:
            position = found.end()
            continue
        pieces += _loose(text, loose, found.start())
        pieces += _element(text, found.start(), found.end(), end, found[1])
        position = loose = end
    return pieces + _loose(text, loose, len(text))


def parse(text: str) -> list[Block]:
    """The blocks of a prompt, in their order."""
    return [piece.block for piece in decompose(text) if piece.block is not None]


def present(text: str) -> frozenset[str]:
    """The types of the blocks that say something."""
    return frozenset(block.type for block in parse(text) if block.content.strip())


def _close(text: str, tag: str, start: int) -> int | None:
    """Where the element ends that was opened before ``start``; elements of the same name may stand inside."""
    depth = 1
    for found in re.compile(rf"<(/?){tag}(?:\s[^<>]*)?>").finditer(text, start):
        depth += -1 if found[1] else 1
        if depth == 0:
            return found.end()
    return None


def _element(text: str, start: int, inner: int, end: int, tag: str) -> list[Piece]:
    source = text[start:end]
    content = text[inner : text.rindex("</", inner, end)]
    if tag == "documents":
        return _document_pieces(text, start, end)
    kind = READ[tag]
    if kind == "document":
        return [Piece(source, start, _document(content))]
    if kind == "examples" and tag == "examples" and (pairs := _read_examples(content)) is not None:
        return [Piece(source, start, Block(kind, pairs))]
    return [Piece(source, start, Block(kind, _outer(content)))]


def _document_pieces(text: str, start: int, end: int) -> list[Piece]:
    pieces = []
    position = start
    for found in _DOCUMENT.finditer(text, start, end):
        pieces.append(Piece(text[position : found.end()], position, _document(found[1])))
        position = found.end()
    if not pieces:
        return [Piece(text[start:end], start, Block(TEXT, text[start:end]))]
    return [*pieces, Piece(text[position:end], position)]


def _document(inner: str) -> Block:
    source = _SOURCE.match(inner)
    body = inner[source.end() :] if source else inner
    wrapped = _BODY.fullmatch(body)
    content = _outer(wrapped[1] if wrapped else body)
    return Block("document", content, _unescape(source[1]) if source else "")


def _read_examples(inner: str) -> str | None:
    parts = []
    position = 0
    while found := _EXAMPLE.match(inner, position):
        pair = _PAIR.fullmatch(found[1])
        parts.append(f"Input: {_outer(pair[1])}\nOutput: {_outer(pair[2])}" if pair else _outer(found[1]))
        position = found.end()
    return "\n\n".join(parts) if parts and not inner[position:].strip() else None


def _outer(inner: str) -> str:
    if len(inner) > 1 and inner[0] == inner[-1] == "\n":
        inner = inner[1:-1]
    elif inner == "\n":
        inner = ""
    return _unescape(inner)


def _unescape(text: str) -> str:
    return _ENTITY.sub(lambda found: _PLAIN[found[0]], text)


def _loose(text: str, start: int, end: int) -> list[Piece]:
    pieces = []
    position = start
    for found in [*_WRAPPER.finditer(text, start, end), None]:
        until = found.start() if found else end
        stretch = text[position:until]
        words = stretch.strip()
        if words:
            before = position + len(stretch) - len(stretch.lstrip())
            after = before + len(words)
            pieces.append(Piece(text[position:before], position))
            pieces.append(Piece(words, before, Block(TEXT, _unescape(words))))
            pieces.append(Piece(text[after:until], after))
        else:
            pieces.append(Piece(stretch, position))
        if found:
            pieces.append(Piece(found[0], until))
            position = found.end()
    return [piece for piece in pieces if piece.source]


# -- the minimal prompt ---------------------------------------------------------------------------------------------


# How an agent is told what the lines of its sidecars are, and whose words they may hold.
SIDECAR_FRAME = (
    "Lines that begin with [sidecar:NAME] come from an observer of this session: facts about what was just done.\n"
    "With [sidecar:NAME, FILE:LINE] the words are those of that file of the project, and not the user's."
)


def minimal_prompt(
    role: str, objective: str, *, polecat: str = "", sidecars: Sequence[str] = (), more: Iterable[Block] = ()
) -> str:
    """What a polecat is started with: who it is, what it is to do, and who can be asked.

    Everything else is said by its sidecars when it is needed.

    Args:
        role: who the agent is.
        objective: what it is to do.
        polecat: its address, as it is written to ``gt ask``.
        sidecars: names of those that can be asked.
        more: further blocks; all are put into the usual order.
    """
    blocks = [Block("role", role), Block("objective", objective), *more]
    tools = []
    if sidecars:
        tools.append(SIDECAR_FRAME)
    if polecat and sidecars:
        known = ", ".join(sidecars)
        tools.append(
            f'ask if you need more: gt ask {polecat}/{sidecars[0]} "your question" (who can be asked: {known})'
        )
    if polecat:
        tools.append('do not open a huge file: gt distill --artifact PATH --question "your question" --json')
    if tools:
        blocks.append(Block("tools", "\n".join(tools)))
    text = render(sorted(blocks, key=lambda block: TYPES.index(block.type) if block.type in TYPES else len(TYPES)))
    # No value of an attribute is here, so quotes can stay what they are: an agent copies them into its commands.
    return text.replace("&quot;", '"').replace("&apos;", "'")


# Looking for what was probably not meant in a prompt of typed blocks.

_ANY_TAG = re.compile(r"<([A-Za-z_][\w-]*)(?:\s[^<>]*)?>")


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in a prompt that was probably not meant.

    Args:
        line: one-based.
        message: what is wrong and what would be right.
    """

    line: int
    message: str


def lint(text: str) -> list[Fault]:
    """Look for empty and unclosed blocks, unknown tags, text outside of blocks, and what every prompt should say."""
    faults = []
    seen = set()
    for piece in decompose(text):
        block = piece.block
        if block is None:
            continue
        line = text.count("\n", 0, piece.start) + 1
        seen.add(block.type)
        if block.type == TEXT:
            faults += _lint_loose(piece.source, line)
        elif not block.content.strip():
            faults.append(Fault(line, f"<{block.type}> is empty"))
    faults += [Fault(1, f"no <{kind}>: the agent is not told it") for kind in ("role", "objective") if kind not in seen]
    return sorted(faults, key=lambda fault: fault.line)


def _lint_loose(source: str, line: int) -> list[Fault]:
    faults = []
    for found in _ANY_TAG.finditer(source):
        at = line + source.count("\n", 0, found.start())
        tag = found[1]
        if tag in READ or tag == "documents":
            faults.append(Fault(at, f"<{tag}> is never closed"))
        else:
            near = difflib.get_close_matches(tag, TYPES, 1)
            faults.append(Fault(at, f"<{tag}> is no block type" + (f": did you mean <{near[0]}>?" if near else "")))
    return faults or [Fault(line, "this text stands outside of every block")]
