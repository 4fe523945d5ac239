"""How much of a screen's content is new."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher


def squeeze(lines: Sequence[str]) -> str:
    """A screen's content as one text that does not depend on where its lines are wrapped.

    A client that repaints leaves whole frames in the history: a long line counts once.
    """
    seen: set[str] = set()
    kept = []
    for line in lines:
        text = "".join(line.split())
        if len(text) > 20:
            if text in seen:
                continue
            seen.add(text)
        kept.append(text.lstrip("●⏺○◯◉◦•"))
    return "".join(kept)


def changed_share(before: str, after: str) -> float:
    """The share of ``after`` that does not stand in ``before`` in the same order; what scrolled away does not count.

    Args:
        before, after: from ``squeeze``.

    Returns:
        From 0 (nothing is new) to 1.
    """
    if before == after or not after:
        return 0.0
    from rapidfuzz.distance import LCSseq

    return 1.0 - LCSseq.similarity(before, after) / len(after)


def new_lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The lines of ``after`` that are not in ``before``, in their order."""
    matcher = SequenceMatcher(None, [line.strip() for line in before], [line.strip() for line in after], autojunk=False)
    found: list[str] = []
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind in ("insert", "replace"):
            found += after[start:end]
    return [line for line in found if line.strip()]
