"""The one way to the terminal: whatever a command prints, no control byte of somebody's file name goes with it."""

from __future__ import annotations

import re
from typing import Any, TextIO

# Colours and styles, which only change how text looks; everything else that a terminal obeys, signs that turn the
# direction of writing included.
_STYLE = r"\x1b\[[0-9;:]*m"
_OBEYED = re.compile(f"({_STYLE})|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class PlainOutput:
    """A text stream without control characters but the line's end and the tab; styles pass to a terminal only.

    Args:
        stream: what is written to.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text; returns its length, as it was given."""
        self._stream.write(_OBEYED.sub(self._kept, text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def _kept(self, found: re.Match[str]) -> str:
        return found[1] if found[1] and self._stream.isatty() else ""
