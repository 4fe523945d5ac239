"""One question on its way through a backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sidecars.distill.limits import Limits
from sidecars.distill.text_pool import TextPool

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What a backend is given.

    Args:
        shelf: the artifacts, and until when they may be read.
        question: what is asked.
        limits: the bounds.
        room: how many characters the whole answer may have in its JSON form.
        progress: told what is being done, for people.
    """

    shelf: TextPool
    question: str
    limits: Limits
    room: int
    progress: Progress
