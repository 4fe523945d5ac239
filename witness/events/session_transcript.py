"""Where the client of a run records its session, as its own events name it."""

from __future__ import annotations

import os
from pathlib import Path

from witness.events.spool_reader import parse_record
from witness.events.spool_writer import CURRENT
from witness.files import read_from

# One event may be a megabyte, but the client's next ones are small.
_TAILS = (1 << 16, 4 << 20)
_KEY = b'"transcript_path"'
_LONGEST = 4096


def session_transcript(spool: Path) -> str:
    """The transcript that the newest event names; empty where none does, or the spool cannot be read.

    It is the client's word: an absolute path without control characters, which may lead anywhere and to nothing.
    """
    for size in _TAILS:
        try:
            data = read_from(spool / CURRENT, -size, size, below=spool.parent.parent)
        except OSError:
            return ""
        for line in reversed(data.split(b"\n")):
            if _KEY not in line or (event := parse_record(line)) is None:
                continue
            path = event.payload.get("transcript_path")
            if isinstance(path, str) and os.path.isabs(path) and len(path) <= _LONGEST and path.isprintable():
                return path
        if len(data) < size:
            break
    return ""
