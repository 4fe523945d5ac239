"""Any artifact as plain UTF-8-like bytes: decompressed, and out of UTF-16 and UTF-32.

What is compressed or in a wide encoding cannot be read from the middle, so it is turned once into a nameless temporary
file, piece by piece. Everything after this sees a plain file in which it may read where it likes.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import sys
import zlib
from collections.abc import Callable
from typing import IO, Any

from sidecars.distill.request import Deadline

PIECE = 1 << 20

_DAMAGED = (OSError, EOFError, ValueError, zlib.error)

# A small file can unfold to any length: an end to what is unfolded, and room that is left on the disk for others.
MOST_EXPANDED = 64 << 30
_ROOM_LEFT = 1 << 30


# What a decoder may keep of what it has unfolded: `xz -9` needs 65 MiB, `zstd --ultra -22` 128.
_WINDOW_LOG = 27
_COMPRESSED = 1 << 18


class _Gzip:
    """zlib's decoder with the manners of the others."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)
        self.unused_data = b""

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail and not self._zlib.eof

    def decompress(self, data: bytes, most: int) -> bytes:
        found = self._zlib.decompress(self._zlib.unconsumed_tail + data, most)
        self.unused_data = self._zlib.unused_data
        return found


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG})


def _xz() -> Any:
    import lzma

    return lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=1 << _WINDOW_LOG)


def _bz2() -> Any:
    import bz2

    return bz2.BZ2Decompressor()


class _Unfolded:
    """The members of a compressed stream, one after the other, piece by piece.

    Args:
        raw: the compressed bytes.
        make: a decoder for one member.
        deadline: looked at between any two steps: a stream may consist of a million members that hold nothing.
    """

    def __init__(self, raw: IO[bytes], make: Callable[[], Any], deadline: Deadline) -> None:
        self._raw, self._make, self._deadline = raw, make, deadline
        self._decoder: Any = None
        self._data = b""

    def read1(self, most: int) -> bytes:
        """The next bytes, at most so many; empty at the end.

        Raises:
            EOFError: the last member is not whole.
            TimeoutSpentError: there is no time left.
        """
        while True:
            self._deadline.check()
            if self._decoder is None:
                # Between members only padding may stand.
                self._data = self._data.lstrip(b"\0") or self._raw.read(_COMPRESSED)
                if not self._data:
                    return b""
                if not self._data.strip(b"\0"):
                    self._data = b""
                    continue
                self._decoder = self._make()
            elif self._decoder.needs_input and not self._data:
                self._data = self._raw.read(_COMPRESSED)
                if not self._data:
                    raise EOFError("it ends in the middle")
            piece: bytes = self._decoder.decompress(self._data, most)
            self._data = b""
            if self._decoder.eof:
                self._data, self._decoder = self._decoder.unused_data, None
            if piece:
                return piece


# First bytes as their formats fix them (RFC 1952, RFC 8878, the .xz and bzip2 file formats).
_MAGIC: tuple[tuple[bytes, str, Callable[[], Any]], ...] = (
    (b"\x1f\x8b\x08", "gz", _Gzip),
    (b"\xfd7zXZ\x00", "xz", _xz),
    (b"\x28\xb5\x2f\xfd", "zst", _zstd),
    (b"BZh", "bz2", _bz2),
)
# The longer mark first: UTF-32's begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def compression_of(head: bytes) -> str:
    """``gz``, ``xz``, ``zst``, ``bz2``, or empty."""
    return next((name for magic, name, _ in _MAGIC if head.startswith(magic)), "")


def wide_encoding_of(head: bytes) -> str:
    """The wide encoding that a text beginning with ``head`` has, or empty.

    Without a byte order mark it is one when NUL bytes stand at nearly every second place and nowhere else.
    """
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    pairs = len(head) // 2
    if pairs < 8:
        return ""
    even, odd = head[0 : 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
    if odd > 0.7 * pairs and even < 0.05 * pairs:
        return "utf-16-le"
    if even > 0.7 * pairs and odd < 0.05 * pairs:
        return "utf-16-be"
    return ""


class Snapshot(io.RawIOBase):
    """The first ``size`` bytes of a file, hashed as they are read in order. A file that grows ends where it did."""

    def __init__(self, fd: int, size: int) -> None:
        self._fd, self._size, self._at = fd, size, 0
        self._hash = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._next(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _next(self, most: int) -> bytes:
        data = os.pread(self._fd, min(most, self._size - self._at), self._at) if self._at < self._size else b""
        self._hash.update(data)
        self._at += len(data)
        return data

    def digest(self, stop: Callable[[], bool] = lambda: False) -> str:
        """SHA-256 of the whole snapshot, reading what was not read yet; empty when ``stop`` says so before the end."""
        while self._next(PIECE):
            if stop():
                return ""
        return self._hash.hexdigest()


class Expanded:
    """Plain bytes in a nameless temporary file.

    Attributes:
        fd: where they are, the caller's to close.
        size: how many.
        digest: SHA-256 of the artifact as it lies on the disk.
        compression, encoding: what was undone; empty where nothing was.
        gaps: what is missing from the plain bytes, one sentence each.
    """

    def __init__(self, fd: int, size: int, head: bytes, deadline: Deadline) -> None:
        """Unfold the first ``size`` bytes of ``fd``.

        Raises:
            TimeoutSpentError: it takes too long.
        """
        self.gaps: list[str] = []
        self.compression = compression_of(head)
        self.encoding = ""
        self.size = 0
        raw = Snapshot(fd, size)
        import tempfile

        # /tmp is memory on many machines, and these files are large.
        place = os.environ.get("TMPDIR") or ("/var/tmp" if os.path.isdir("/var/tmp") else None)  # noqa: S108, PTH112
        target, name = tempfile.mkstemp(prefix="gt-distill-", dir=place)
        self.fd = target
        try:
            os.unlink(name)  # noqa: PTH108
            self._fill(io.BufferedReader(raw, PIECE), target, deadline)
            self.digest = raw.digest()
        except BaseException:
            os.close(target)
            raise

    def _fill(self, raw: IO[bytes], target: int, deadline: Deadline) -> None:
        make = next((each for _, name, each in _MAGIC if name == self.compression), None)
        source: Any = _Unfolded(raw, make, deadline) if make else raw
        decoder: codecs.IncrementalDecoder | None = None
        first = True
        while True:
            deadline.check()
            try:
                piece = source.read1(PIECE)  # not read(), which at a damaged end loses what it had already
            except Exception as error:
                # Each format has error classes of its own, which are not imported unless the format is met.
                if not isinstance(error, _DAMAGED) and type(error).__name__ not in ("LZMAError", "ZstdError"):
                    raise
                self.gaps.append(f"the {self.compression} stream ends early or is damaged: {error}")
                break
            if first and piece:
                first = False
                self.encoding = wide_encoding_of(piece[:4096])
                decoder = codecs.getincrementaldecoder(self.encoding)("replace") if self.encoding else None
            if not self._write(target, self._plain(decoder, piece)) or not piece:
                break

    @staticmethod
    def _plain(decoder: codecs.IncrementalDecoder | None, piece: bytes) -> bytes:
        if decoder is None:
            return piece
        return decoder.decode(piece, final=not piece).removeprefix("\ufeff").encode("utf-8", "replace")

    def _write(self, target: int, data: bytes) -> bool:
        if data and self.size % (64 * PIECE) < PIECE:
            disk = os.fstatvfs(target)
            if disk.f_bavail * disk.f_frsize < _ROOM_LEFT + len(data):
                self.gaps.append(f"no room to unfold more than its first {self.size} bytes")
                return False
        if self.size + len(data) > MOST_EXPANDED:
            self.gaps.append(f"it unfolds to more than {MOST_EXPANDED} bytes; only the first {self.size} were read")
            return False
        view = memoryview(data)
        while view:
            done = os.write(target, view)
            self.size += done
            view = view[done:]
        return True
