"""A file of lines that is never held in memory: read by offset, found by line number.

A line is what ends with a newline byte; of any file this can be told without knowing its encoding. The index of lines
holds one number for each piece of 1 MiB, so that of 5 GB it is 40 KB.
"""

from __future__ import annotations

import os
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Self, TypeVar

from sidecars.distill.artifact import Artifacts
from sidecars.distill.cache import IndexCache
from sidecars.distill.decompress import PIECE, Expanded, Snapshot, compression_of, wide_encoding_of
from sidecars.distill.errors import UnreadableError
from sidecars.distill.request import Deadline

T = TypeVar("T")

# Colours, cursor moves, window titles (ECMA-48 CSI and OSC), and other two-byte escapes.
ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

# From here on threads and the cache are worth their price.
LARGE = 4 * PIECE

# Counting newlines in a block is far quicker than stepping from one to the next.
BLOCK = 8192


def shown(raw: bytes) -> str:
    """Bytes of an artifact as text for a reader: no colours, no control characters, invalid bytes as U+FFFD."""
    text = (ANSI.sub(b"", raw) if b"\x1b" in raw else raw).decode("utf-8", "replace")
    text = text.replace("\r\n", "\n").rstrip("\r")
    return _CONTROL.sub(lambda found: "\n" if found[0] == "\r" else "\ufffd", text)


class Text:
    """One artifact, opened. A context manager.

    Attributes:
        name: the entry's name.
        size: bytes of plain text.
        disk_size: bytes on the disk, when it was opened.
        digest: SHA-256 of those, empty until they have all been read.
        compression, encoding: what was undone to get at the text.
        places: of a document, for each line where in it the line is; empty for what is read as it stands.
        gaps: what of it could not be read.
    """

    def __init__(self, artifacts: Artifacts, name: str, deadline: Deadline, cache: IndexCache | None = None) -> None:
        """Open ``name``.

        Raises:
            UnreadableError: it must not or cannot be read.
            TimeoutSpentError: unfolding it takes too long.
        """
        self.name = name
        self.gaps: list[str] = []
        self.digest = self.compression = self.encoding = ""
        self.places: list[str] = []
        self.deadline = deadline
        self._cache = cache
        self._lines: array[int] | None = None
        self._raw = artifacts.open(name)
        try:
            self._opened = os.fstat(self._raw)
            self.size = self.disk_size = self._opened.st_size
            self.fd = self._open_plain()
        except OSError as error:
            os.close(self._raw)
            raise UnreadableError(name, f"cannot be read: {error.strerror}") from error
        except BaseException:
            os.close(self._raw)
            raise

    def _open_plain(self) -> int:
        head = os.pread(self._raw, 4096, 0)
        if why := refusal(head):
            raise UnreadableError(self.name, why)
        if kind := kind_of(head):
            from sidecars.distill.documents import Document

            document = Document(self.name, self._raw, self.disk_size, kind, self.deadline)
            self.size, self.digest, self.places = document.size, document.digest, document.places
            self.gaps += document.gaps
            return document.fd
        if not (compression_of(head) or wide_encoding_of(head)):
            if self._cache and self.size >= LARGE and (known := self._cache.find(self._opened)):
                self.digest, self._lines = known
            return self._raw
        expanded = Expanded(self._raw, self.disk_size, head, self.deadline)
        self.compression, self.encoding = expanded.compression, expanded.encoding
        self.size, self.digest = expanded.size, expanded.digest
        self.gaps += expanded.gaps
        return expanded.fd

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._raw)
        if self.fd != self._raw:
            os.close(self.fd)

    # -- bytes --------------------------------------------------------------------------------------------------

    def read(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` to ``end``; fewer at the end of the text or when the file was cut meanwhile."""
        start, end = max(0, start), min(end, self.size)
        try:
            return os.pread(self.fd, end - start, start) if end > start else b""
        except OSError as error:
            raise UnreadableError(self.name, f"cannot be read: {error.strerror}") from error

    @property
    def binary(self) -> bool:
        """Whether it looks like something that is no text."""
        return b"\0" in self.read(0, 4096)

    def each_piece(self, work: Callable[[int], T], start: int = 0, end: int | None = None) -> Iterator[T]:
        """Do ``work`` for the offset of every piece that has bytes between ``start`` and ``end``, in order.

        Of a large part a few pieces at a time are worked on in threads: reading and matching let other threads run.

        Raises:
            TimeoutSpentError: the time is up.
        """
        end = self.size if end is None else min(end, self.size)
        offsets = range(start // PIECE * PIECE, end, PIECE)
        workers = min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
        if workers < 2 or len(offsets) * PIECE < LARGE:
            for offset in offsets:
                self.deadline.check()
                yield work(offset)
            return
        from concurrent.futures import ThreadPoolExecutor

        # Not map(): that would queue the whole file at once and keep all results that nobody has taken yet.
        with ThreadPoolExecutor(workers) as pool:
            ahead = [pool.submit(work, offset) for offset in offsets[: 2 * workers]]
            try:
                for following in range(2 * workers, len(offsets) + 2 * workers):
                    self.deadline.check()
                    if not ahead:
                        return
                    yield ahead.pop(0).result()
                    if following < len(offsets):
                        ahead.append(pool.submit(work, offsets[following]))
            finally:
                for each in ahead:
                    each.cancel()

    def changed(self) -> str:
        """How the file differs from what was opened, empty when it does not."""
        now = os.fstat(self._raw)
        then = self._opened
        if now.st_size > then.st_size:
            return f"grew from {then.st_size} to {now.st_size} bytes meanwhile; the answer is about the first part"
        if now.st_size < then.st_size:
            return f"was cut from {then.st_size} to {now.st_size} bytes while it was read"
        return "was written to while it was read" if now.st_mtime_ns != then.st_mtime_ns else ""

    # -- lines --------------------------------------------------------------------------------------------------

    def take_index(self, newlines: list[int], digest: str) -> None:
        """Keep what a scan has found on its way.

        Args:
            newlines: for each piece in order, how many newlines it holds; fewer pieces than there are when the time was
                up, and then the text counts as ending there.
            digest: SHA-256 of the file on the disk, empty when it was not counted.
        """
        before = array("Q", [0])
        for count in newlines:
            before.append(before[-1] + count)
        self._lines = before
        self.digest = self.digest or digest
        # A file that changed meanwhile is not the one that its digest names.
        if self._cache and digest and self.size >= LARGE and not self.changed():
            self._cache.keep(self._opened, digest, before)

    def hash_disk(self, stop: Callable[[], bool] = lambda: False) -> str:
        """SHA-256 of the file as it was when it was opened; empty when ``stop`` said so."""
        return Snapshot(self._raw, self.disk_size).digest(stop)

    @property
    def indexed(self) -> bool:
        """Whether the index of lines is there already."""
        return self._lines is not None

    def newlines_before(self, piece: int) -> int:
        """How many newlines stand before that piece (of 1 MiB each, from 0)."""
        return self._before[piece]

    @property
    def _before(self) -> array[int]:
        """Newlines before each piece, and at last all of them."""
        if self._lines is None:
            newlines = list(self.each_piece(lambda offset: self.read(offset, offset + PIECE).count(b"\n")))
            self.take_index(newlines, self.digest or self.hash_disk())
            assert self._lines is not None  # noqa: S101
        return self._lines

    @property
    def lines(self) -> int:
        """How many lines there are; a last one without its newline counts."""
        whole = self._before[-1]
        if (len(self._before) - 1) * PIECE < self.size:
            return whole
        return whole + (1 if self.size and self.read(self.size - 1, self.size) != b"\n" else 0)

    def line_at(self, offset: int) -> int:
        """The one-based number of the line that the byte at ``offset`` is in."""
        piece = min(min(max(0, offset), self.size) // PIECE, len(self._before) - 1)
        return self._before[piece] + self.read(piece * PIECE, offset).count(b"\n") + 1

    def line_start(self, number: int) -> int:
        """Where line ``number`` begins; the end of the text when there is no such line."""
        if number <= 1:
            return 0
        wanted = number - 1  # the newline that ends the line before
        if wanted > self._before[-1]:
            return self.size
        piece = bisect_left(self._before, wanted) - 1
        data = self.read(piece * PIECE, (piece + 1) * PIECE)
        missing = wanted - self._before[piece]
        block = 0
        while block < len(data) and (here := data.count(b"\n", block, block + BLOCK)) < missing:
            missing -= here
            block += BLOCK
        at = block - 1
        for _ in range(missing):
            at = data.find(b"\n", at + 1)
            if at < 0:
                return self.size  # the file was cut under us
        return piece * PIECE + at + 1

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The bytes of the lines ``first`` to ``last``, without the last newline."""
        start, end = self.line_start(first), self.line_start(last + 1)
        if end > start and self.read(end - 1, end) == b"\n":
            end -= 1
        return start, end

    def around(self, offset: int, before: int = 4096, after: int = 4096) -> tuple[int, int]:
        """The bounds of the line at ``offset``, looked for no further than ``before`` and ``after`` bytes away."""
        left = self.read(offset - before, offset)
        cut = left.rfind(b"\n")
        start = offset - len(left) + cut + 1
        right = self.read(offset, offset + after)
        end = right.find(b"\n")
        return start, offset + (end if end >= 0 else len(right))


def rune_start(data: bytes) -> bytes:
    """``data`` without a UTF-8 character that was cut at its beginning or its end."""
    start = 0
    while start < min(4, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    data = data[start:]
    for back in range(1, min(4, len(data)) + 1):
        lead = data[-back]
        if lead & 0xC0 == 0xC0:
            with suppress(UnicodeDecodeError):
                data[-back:].decode()
                return data
            return data[:-back]
        if lead & 0x80 == 0:
            break
    return data


# What a file is by its first bytes: a document that has a reader, something that has none, or text.

# What begins like this is known, is no text, and no reader of ours is for it: what to do in its place.
_REFUSED: tuple[tuple[bytes, str], ...] = (
    (b"SQLite format 3\0", "an SQLite database: write what is needed out first (sqlite3 FILE .dump > FILE.sql)"),
    (b"PAR1", "a Parquet file: write it out as CSV or JSON lines first"),
    (b"ARROW1", "an Arrow file: write it out as CSV or JSON lines first"),
    (b"Obj\x01", "an Avro file: write it out as JSON lines first"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file: write what is needed out as CSV first"),
    (b"\xd0\xcf\x11\xe0", "an office file of the old kind: save it as docx or xlsx first"),
    (b"\x89PNG\r\n", "a picture: there is no text in it to be searched"),
    (b"\xff\xd8\xff", "a picture: there is no text in it to be searched"),
    (b"GIF8", "a picture: there is no text in it to be searched"),
    (b"\x7fELF", "a program: write its strings out first (strings FILE > FILE.txt)"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it and declare the folder"),
    (b"Rar!\x1a\x07", "a RAR archive: unpack it and declare the folder"),
)
_HTML = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)


def kind_of(head: bytes) -> str:
    """The kind of document that an open file is: ``pdf``, ``html``, ``zip``; empty for what is read as it stands."""
    if head.startswith(b"%PDF-"):
        return "pdf"
    if head.startswith(b"PK\x03\x04"):
        return "zip"
    return "html" if _HTML.match(head.removeprefix(b"\xef\xbb\xbf")) else ""


def refusal(head: bytes) -> str:
    """Why a file that begins like this cannot be searched, with what to do about it; empty when it can."""
    for magic, why in _REFUSED:
        if head.startswith(magic):
            return f"is {why}"
    if head[257:262] == b"ustar":
        return "is a tar archive: unpack it and declare the folder"
    return ""
