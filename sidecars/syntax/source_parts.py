"""What the readers of all languages give: definitions, and the kinds of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["function", "method", "class", "constant"]
# What a stretch of a source text is.
CODE, STRING, COMMENT = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Definition:
    """One thing that a text defines.

    Args:
        name: as it is spelled there.
        kind: ``method`` needs an object; what a class holds for itself is a function; types are classes.
        first, last: its lines, counted from 1, decorators left out.
        public: others may use it, by the language's own rule or custom.
        owner: the class, module or function around it, empty at the top.
    """

    name: str
    kind: Kind
    first: int
    last: int
    public: bool = True
    owner: str = ""

    @property
    def lines(self) -> int:
        """How long it is, blank lines and comments counted."""
        return self.last - self.first + 1


def keep_kind(text: str, kinds: bytes | bytearray, kept: int) -> str:
    """The text with all that is of another kind blanked; lines and places stay.

    Args:
        text: the source.
        kinds: one for each character.
        kept: the kind to keep.
    """
    return "".join(sign if kind == kept or sign in "\r\n" else " " for sign, kind in zip(text, kinds, strict=True))
