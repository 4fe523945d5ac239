"""A guide in Markdown (or plain text) → its sentences, each with its line and with what stands around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sidecars.observer.conventions.polarity import ALLOWS, FORBIDS, Polarity, of_label, of_sign

_FENCE = re.compile(r"^\s*(```+|~~~+)")
_HEADING = re.compile(r"^\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_UNDERLINE = re.compile(r"^\s{0,3}(=+|-{3,})\s*$")
_ITEM = re.compile(r"^(\s*)(?:[-*+•]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
_SIGNED = re.compile(r"^(\s*)(.*)$")
_STRUCK = re.compile(r"~~.+?~~", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_EMPHASIS = re.compile(r"(?<![\w`])(\*\*|__|\*|_)(?=\S)(.+?)(?<=\S)\1(?![\w`])")
_SPAN = re.compile(r"``\s*(.+?)\s*``|`([^`\n]+)`")
# A full stop, or what else ends a statement: what follows has a cue of its own.
_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'(“*_~#@-])|;\s+|\s+[–—]\s+|(?<=\.)\s+(?=[a-z]+\b)")
_LABEL = re.compile(r"^\W*([^:`|.]{1,40}):\W*$|^\s*(?:\*\*|__)([^:`|.*]{1,40})(?:\*\*|__)\s*$")
_VERDICT = re.compile(r"\W*?(?:(yes|ok(?:ay)?|allowed|✅|✔|☑|✓|🟢)|no|never|forbidden|❌|🚫|⛔|✗|✘)\W*", re.IGNORECASE)
_MOST = 2_000
# No person writes a longer line; a machine's would be searched in the square of its length.
_LONGEST_LINE = 2_000


@dataclass(frozen=True, slots=True)
class Sentence:
    """One statement of a document.

    Args:
        text: without marks of emphasis and links; what was in backquotes is marked by them still.
        line: where it begins, counted from 1.
        around: what a heading, a label, a sign or a table's column above it says of everything below.
        headings: those above it, the outermost first.
        before: the sentence before it in the same paragraph, empty for none.
        whole: the paragraph's text up to 300 characters, for a quotation.
    """

    text: str
    line: int
    around: Polarity | None = None
    headings: tuple[str, ...] = ()
    before: str = ""
    whole: str = ""


def spans(text: str) -> list[tuple[int, int, str]]:
    """What stands in backquotes: (start, end, text)."""
    return [(found.start(), found.end(), found[1] or found[2]) for found in _SPAN.finditer(text)]


def sentences(text: str, first: int = 1) -> Iterator[Sentence]:
    """The statements of a document. Samples of code, comments and what is struck out say nothing.

    Args:
        text: the document.
        first: the number of its first line.
    """
    reading = _Reading()
    lines = [line if len(line) <= _LONGEST_LINE else "" for line in text.splitlines()[:_MOST]]
    for number, line in enumerate(_STRUCK.sub(_blank, _without_comments("\n".join(lines))).splitlines(), first):
        yield from reading.line(number, line)
    yield from reading.finished()


def _without_comments(text: str) -> str:
    """The text with blanks in place of its comments; one that is not closed is none."""
    parts, at = [], 0
    while (begin := text.find("<!--", at)) >= 0 and (end := text.find("-->", begin)) >= 0:
        parts += [text[at:begin], re.sub(r"[^\n]", " ", text[begin : end + 3])]
        at = end + 3
    return "".join([*parts, text[at:]])


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])  # lines stay where they are


@dataclass(slots=True)
class _Reading:
    """Where the reading of a document stands."""

    headings: list[tuple[int, str]] = field(default_factory=list)
    paragraph: list[str] = field(default_factory=list)
    at: int = 1
    label: Polarity | None = None
    columns: list[Polarity | None] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    fence: str = ""

    def line(self, number: int, line: str) -> Iterator[Sentence]:
        """Read one line; what ends with it is given."""
        if self.fence:
            self.fence = "" if line.strip().startswith(self.fence) else self.fence
        elif found := _FENCE.match(line):
            yield from self.finished()
            self.fence = found[1][:3]
        elif heading := _HEADING.match(line):
            yield from self.finished()
            self.label, self.columns = None, []
            self.headings = [each for each in self.headings if each[0] < len(heading[1])]
            self.headings.append((len(heading[1]), heading[2]))
        elif _UNDERLINE.match(line) and len(self.paragraph) == 1:
            self.headings = [(1, self.paragraph.pop())]
            self.label = None
        elif line.lstrip().startswith("|"):
            yield from self.finished()
            yield from self._row(number, line)
        elif not line.strip():
            yield from self.finished()
            self.columns = []
        else:
            yield from self._words(number, line)

    def finished(self) -> Iterator[Sentence]:
        """The sentences of the paragraph that has ended."""
        if self.paragraph:
            names, around = self._around()
            yield from _split(self.paragraph, self.at, around, names)
            self.paragraph.clear()

    def _around(self) -> tuple[tuple[str, ...], Polarity | None]:
        names = tuple(name for _, name in self.headings)
        told = next((found for name in reversed(names) if (found := of_label(name))), None)
        return names, self.label or told

    def _row(self, number: int, line: str) -> Iterator[Sentence]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            return
        if not self.columns:
            self.heads, self.columns = cells, [of_label(cell) for cell in cells]
            return
        names, _ = self._around()
        whole = " | ".join(cells)[:300]
        told: Iterator[tuple[Polarity | None, str]] = zip(self.columns, cells, strict=False)
        if (verdict := self._verdict(cells)) is not None:
            told = iter([(verdict, cells[0])])
        elif len(cells) > 1 and not any(self.columns):  # what the first names is what the second speaks of
            told = iter([(None, f"{cells[0]}: {cells[1]}"), *((None, cell) for cell in cells[2:])])
        for around, cell in told:
            yield Sentence(_clean(cell), number, around, names, whole=whole)

    def _verdict(self, cells: list[str]) -> Polarity | None:
        """What a row says of its first cell, where one of the others answers its head with a yes or a no."""
        for head, cell in list(zip(self.heads, cells, strict=False))[1:]:
            if of_label(head) and (found := _VERDICT.fullmatch(cell)):
                yes = found[1] is not None
                return ALLOWS if yes == (of_label(head) == ALLOWS) else FORBIDS
        return None

    def _words(self, number: int, line: str) -> Iterator[Sentence]:
        self.columns = []
        item = _ITEM.match(line) or (_SIGNED.match(line) if of_sign(line) else None)
        if item:
            yield from self.finished()
        text = item[2] if item else line.strip()
        if not self.paragraph:
            self.at = number
            if not item and not line.startswith((" ", "\t")):
                self.label = None
        self.paragraph.append(text)
        if found := _LABEL.match(text):
            self.label = of_label(found[1] or found[2]) or (self.label if item else None)


def _split(paragraph: list[str], line: int, around: Polarity | None, headings: tuple[str, ...]) -> Iterator[Sentence]:
    text = _clean(" ".join(paragraph))
    sign = of_sign(text)
    before = ""
    whole = text[:300]
    for part in _parts(text):
        sentence = Sentence(part, line, sign or around, headings, before, whole)
        label, colon, rest = part.partition(":")
        if colon and len(label) < 20 and len(label.split()) < 3 and rest.strip() and (found := of_label(label)):
            sentence = replace(sentence, text=rest.strip(), around=found)
        yield sentence
        before = part


def _parts(text: str) -> Iterator[str]:
    """The sentences of a paragraph; nothing is split within backquotes."""
    kept = [(start, end) for start, end, _ in spans(text)]
    start = 0
    for found in _ENDS.finditer(text):
        if any(begin < found.start() < end for begin, end in kept):
            continue
        if text[start : found.start()].strip():
            yield text[start : found.start()].strip()
        start = found.end()
    if text[start:].strip():
        yield text[start:].strip()


def _clean(text: str) -> str:
    """Without links and emphasis; what is in backquotes stays as it is."""
    pieces = []
    position = 0
    for start, end, _ in spans(text):
        pieces += [_EMPHASIS.sub(r"\2", _LINK.sub(r"\1", text[position:start])), text[start:end]]
        position = end
    pieces.append(_EMPHASIS.sub(r"\2", _LINK.sub(r"\1", text[position:])))
    return "".join(pieces).strip()
