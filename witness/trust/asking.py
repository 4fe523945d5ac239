"""What a project's file or folder asks for beyond data, and whether it counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from witness.trust.pins import Pins


@dataclass(frozen=True, slots=True)
class Asking:
    """One thing of a project that was judged.

    Args:
        subject: the folder or file.
        what: which part of it, as ``type scope`` or ``molecule``; one file may hold several.
        asks: what it would do, in words, by key; what asks for nothing counts.
        digest: of what is pinned: the content, or the values that ask, with the programs that they name.
        programs: files of the project that it would run, and the SHA-256 of each.
        counts: whether it counts.
    """

    subject: Path
    what: str
    asks: Mapping[str, str]
    digest: str
    programs: Mapping[str, str]
    counts: bool

    def withheld(self) -> str:
        """One line on why it does not count, and what to do."""
        asked = "; ".join(f"{key} {reason}" for key, reason in self.asks.items())
        changed = "has changed since it was trusted" if Pins().knows(self.subject) else "is not trusted"
        return (
            f"{self.what.removeprefix('type ')}: {self.subject} {changed} and does not count (it asks: {asked}): "
            f"look at it, then 'gt sidecar trust {self.subject}'"
        )
