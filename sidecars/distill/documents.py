"""Documents that are no text as they lie on the disk: PDF, office files, HTML. Each line remembers its place."""

from __future__ import annotations

import io
import os
import re
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

from sidecars.distill.decompress import Snapshot
from sidecars.distill.errors import UnreadableError
from sidecars.distill.question import word_set
from sidecars.distill.request import Deadline

_EXTRA = "pip install 'gt-witness[documents]'"
# Members of an office file unfold to any size; more than this is none that people write.
_MOST_UNFOLDED = 256 << 20
_LONG_PARAGRAPH = 300
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(])")


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    place: str


class Document:
    """The text of a document in a nameless temporary file.

    Attributes:
        fd: where it is, the caller's to close.
        size: its bytes.
        digest: SHA-256 of the document as it lies on the disk.
        places: for each line where in the document it is: ``page 3``, ``paragraph 12``, ``Sheet1!5``, ``L40``.
        gaps: what of it could not be read.
    """

    def __init__(self, name: str, fd: int, size: int, kind: str, deadline: Deadline) -> None:
        """Read a document.

        Raises:
            UnreadableError: it cannot be read; the reason says what would help.
            TimeoutSpentError: it takes too long.
        """
        self.gaps: list[str] = []
        self.places: list[str] = []
        snapshot = Snapshot(fd, size)
        raw = io.BufferedReader(snapshot).read()
        self.digest = snapshot.digest()
        parts: list[str] = []
        for line in self._lines(name, raw, kind, deadline):
            text = " ".join(line.text.split()) if kind != "pdf" else line.text.rstrip()
            for piece in _SENTENCE.split(text) if len(text) > _LONG_PARAGRAPH else [text]:
                parts.append(piece)
                self.places.append(line.place)
        if not any(part.strip() for part in parts):
            raise UnreadableError(name, "holds no text, only pictures perhaps: recognise its text first (OCR)")
        data = "\n".join([*parts, ""]).encode("utf-8", "replace")
        self.size = len(data)
        place = os.environ.get("TMPDIR") or ("/var/tmp" if os.path.isdir("/var/tmp") else None)  # noqa: S108, PTH112
        with tempfile.TemporaryFile(prefix="gt-distill-", dir=place) as out:
            out.write(data)
            out.flush()
            self.fd = os.dup(out.fileno())

    def _lines(self, name: str, raw: bytes, kind: str, deadline: Deadline) -> Iterator[_Line]:
        if kind == "html":
            yield from _html(raw, deadline)
        elif kind == "pdf":
            yield from self._pdf(name, raw, deadline)
        else:
            yield from self._zip(name, raw, deadline)

    def _pdf(self, name: str, raw: bytes, deadline: Deadline) -> Iterator[_Line]:
        try:
            import logging

            from pypdf import PdfReader
        except ImportError as error:
            raise UnreadableError(name, f"is a PDF, which needs a reader: {_EXTRA}") from error
        logging.getLogger("pypdf").setLevel(logging.CRITICAL)
        empty = []
        try:
            reader = PdfReader(io.BytesIO(raw))
            if reader.is_encrypted and not reader.decrypt(""):
                raise UnreadableError(name, "is a PDF with a password: save it without one first")
            for number, page in enumerate(reader.pages, 1):
                deadline.check()
                text = page.extract_text()
                if not text.strip():
                    empty.append(str(number))
                for line in text.splitlines():
                    yield _Line(line, f"page {number}")
        except _passed_on():
            raise
        except Exception as error:
            raise UnreadableError(name, f"is a PDF that cannot be read: {_short(error)}") from error
        if empty:
            self.gaps.append(f"no text on page {', '.join(empty[:8])}{' …' if len(empty) > 8 else ''}: a picture?")

    def _zip(self, name: str, raw: bytes, deadline: Deadline) -> Iterator[_Line]:
        try:
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                names = archive.namelist()
                if sum(each.file_size for each in archive.infolist()) > _MOST_UNFOLDED:
                    raise UnreadableError(name, f"unfolds to more than {_MOST_UNFOLDED >> 20} MiB")
                if "word/document.xml" in names:
                    yield from _docx(archive, names, deadline)
                elif "xl/workbook.xml" in names:
                    yield from _xlsx(name, raw, deadline)
                elif "ppt/presentation.xml" in names:
                    yield from _slides(archive, names, deadline)
                elif "content.xml" in names:
                    yield from _paragraphs(archive, "content.xml", "paragraph ", deadline)
                else:
                    raise UnreadableError(name, "is a zip archive: unpack it and declare the folder")
        except _passed_on():
            raise
        except Exception as error:
            raise UnreadableError(name, f"is a document that cannot be read: {_short(error)}") from error


def _passed_on() -> tuple[type[Exception], ...]:
    from sidecars.distill.errors import TimeoutSpentError

    return UnreadableError, TimeoutSpentError


def _short(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:120]


# -- office files ------------------------------------------------------------------------------------------------


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _paragraphs(archive: zipfile.ZipFile, member: str, place: str, deadline: Deadline) -> Iterator[_Line]:
    """Paragraphs, and rows of tables, of one XML member, told apart by the names that all office formats share."""
    number = 0
    root = ElementTree.fromstring(archive.read(member))  # noqa: S314 - expat bounds what entities may grow to
    stack: list[Any] = [root]
    while stack:
        at = stack.pop()
        name = _local(at.tag)
        if name in ("p", "h", "tr", "table-row"):
            deadline.check()
            number += 1
            cells = [each for each in at if _local(each.tag) in ("tc", "table-cell")]
            text = " | ".join(_words(each) for each in cells) if cells else _words(at)
            if text.strip():
                yield _Line(text, f"{place}{number}")
                if not cells:
                    yield _Line("", f"{place}{number}")
        else:
            stack.extend(reversed(at))


def _words(element: Any) -> str:
    found: list[str] = []
    for each in element.iter():
        name = _local(each.tag)
        if name in ("tab", "br", "cr", "line-break") or (name == "p" and found):
            found.append(" ")
        if each.text and name not in ("instrText", "delText", "annotation"):
            found.append(each.text)
        if each.tail and each is not element:
            found.append(each.tail)
    return "".join(found)


def _docx(archive: zipfile.ZipFile, names: list[str], deadline: Deadline) -> Iterator[_Line]:
    yield from _paragraphs(archive, "word/document.xml", "paragraph ", deadline)
    for part in ("footnotes", "endnotes", "comments"):
        if f"word/{part}.xml" in names:
            yield from _paragraphs(archive, f"word/{part}.xml", f"{part} ", deadline)


def _slides(archive: zipfile.ZipFile, names: list[str], deadline: Deadline) -> Iterator[_Line]:
    found = [(int(each[1]), each[0]) for name in names if (each := re.fullmatch(r"ppt/slides/slide(\d+)\.xml", name))]
    for number, member in sorted(found):
        for line in _paragraphs(archive, member, "", deadline):
            yield _Line(line.text, f"slide {number}")


def _xlsx(name: str, raw: bytes, deadline: Deadline) -> Iterator[_Line]:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise UnreadableError(name, f"is a workbook, which needs a reader: {_EXTRA}") from error
    book = load_workbook(io.BytesIO(raw), read_only=True, data_only=True)
    try:
        for sheet in book.worksheets:
            for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
                if not number & 0xFF:
                    deadline.check()
                cells = ["" if each is None else str(each) for each in row]
                if any(cells):
                    yield _Line(" | ".join(cells).rstrip(" |"), f"{sheet.title}!{number}")
    finally:
        book.close()


# -- HTML --------------------------------------------------------------------------------------------------------

_BLOCKS = word_set(
    """p div li ul ol h1 h2 h3 h4 h5 h6 tr table pre br nav section article header footer main title dt dd dl
    blockquote figure figcaption form hr option"""
)
_APART = word_set("""p h1 h2 h3 h4 h5 h6 table ul ol pre dl section article blockquote""")
_HIDDEN = frozenset({"script", "style", "template", "noscript"})


class _Page(HTMLParser):
    """Collects the lines that a reader sees, each with the line of the source on which it begins."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[_Line] = []
        self._text: list[str] = []
        self._from = 0
        self._hidden = self._kept = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._border(tag)
        self._hidden += tag in _HIDDEN
        self._kept += tag == "pre"
        if tag in ("td", "th") and "".join(self._text).strip():
            self._text.append(" | ")
        if tag == "img" and (seen := dict(attrs).get("alt")):
            self.handle_data(f" {seen} ")

    def handle_endtag(self, tag: str) -> None:
        self._border(tag)
        self._hidden = max(0, self._hidden - (tag in _HIDDEN))
        self._kept = max(0, self._kept - (tag == "pre"))

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        if not self._kept:
            self._add(data, 0)
            return
        for number, line in enumerate(data.split("\n")):
            if number:
                self.flush(False)
            self._add(line, number)

    def _add(self, data: str, below: int) -> None:
        if not self._text and not data.strip():
            return
        if not self._text:
            skipped = data[: len(data) - len(data.lstrip())].count("\n")
            self._from = self.getpos()[0] + below + skipped
        self._text.append(data)

    def _border(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.flush(tag in _APART)

    def flush(self, apart: bool) -> None:
        """End a line; with an empty one after it where a new block begins."""
        text = "".join(self._text).strip()
        self._text.clear()
        if text:
            self.lines.append(_Line(text, f"L{self._from}"))
        if apart and self.lines and self.lines[-1].text:
            self.lines.append(_Line("", self.lines[-1].place))


def _html(raw: bytes, deadline: Deadline) -> Iterator[_Line]:
    declared = re.search(rb"<meta[^>]+charset=[\"']?([\w-]+)", raw[:4096], re.IGNORECASE)
    try:
        text = raw.decode(declared[1].decode() if declared else "utf-8", "replace")
    except LookupError:
        text = raw.decode("utf-8", "replace")
    page = _Page()
    for at in range(0, len(text), 1 << 16):
        deadline.check()
        page.feed(text[at : at + (1 << 16)])
    page.close()
    page.flush(False)
    yield from page.lines
