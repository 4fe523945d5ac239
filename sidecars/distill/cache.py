"""What is known of large files from an earlier question: their hash and their index of lines, kept by content.

The second question about the same 5 GB log need not hash and count it again. Nothing of a file's text is kept.
"""

from __future__ import annotations

import json
import os
from array import array
from contextlib import suppress
from pathlib import Path

from witness.clock import SystemClock

# A file written within this time of its hashing could be written again without a new time stamp (git's "racy" files).
RACY_SECONDS = 2.0
_MOST_KEPT = 200


def default_place() -> Path:
    """Where it is kept: ``$XDG_CACHE_HOME/gt-witness/distill``, else below ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "gt-witness" / "distill"


class IndexCache:
    """A folder of indexes, named by the SHA-256 of what they index. A cache that cannot be used is no error."""

    def __init__(self, place: Path | None = None) -> None:
        self._place = place or default_place()

    @staticmethod
    def _identity(opened: os.stat_result) -> str:
        return f"{opened.st_dev:x}-{opened.st_ino:x}-{opened.st_size}-{opened.st_mtime_ns}-{opened.st_ctime_ns}"

    def find(self, opened: os.stat_result) -> tuple[str, array[int]] | None:
        """The digest and the index of the file, when that very state of it was seen before."""
        try:
            digest = (self._place / f"at-{self._identity(opened)}").read_text()
            header, _, body = (self._place / f"{digest}.lines").read_bytes().partition(b"\n")
            if json.loads(header) != {"size": opened.st_size, "item": array("Q").itemsize}:
                return None
            lines = array("Q")
            lines.frombytes(body)
        except (OSError, ValueError):
            return None
        return (digest, lines) if len(lines) > 1 else None

    def keep(self, opened: os.stat_result, digest: str, lines: array[int]) -> None:
        """Remember it, unless it was written to a moment ago."""
        if SystemClock().wall() - max(opened.st_mtime, opened.st_ctime) < RACY_SECONDS:
            return
        with suppress(OSError):
            self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
            header = json.dumps({"size": opened.st_size, "item": lines.itemsize}).encode() + b"\n"
            self._write(f"{digest}.lines", header + lines.tobytes())
            self._write(f"at-{self._identity(opened)}", digest.encode())
            self._prune()

    def _write(self, name: str, data: bytes) -> None:
        part = self._place / f".{os.getpid()}-{name}"
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)
        part.replace(self._place / name)

    def _prune(self) -> None:
        kept = sorted(self._place.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in kept[_MOST_KEPT:]:
            path.unlink(missing_ok=True)
