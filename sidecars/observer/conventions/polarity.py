"""What a sentence says of one thing that it names: that it is forbidden, allowed, or asked for.

The nearest word that rules the thing counts; the words stand in `sidecars/types/conventions/cues.yaml`. Where a
sentence only prefers, or leaves it to the reader, it says nothing that holds: no rule is better than a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from sidecars.type_reader.rule_reader import SHIPPED
from witness.config.yaml_document import load_yaml

Polarity = Literal["forbids", "allows", "asks", "open"]
FORBIDS: Polarity = "forbids"
ALLOWS: Polarity = "allows"
ASKS: Polarity = "asks"
# Something else begins that the cue before it does not rule.
OPEN: Polarity = "open"
_POLARITIES: dict[str, Polarity] = {each: each for each in (FORBIDS, ALLOWS, ASKS, OPEN)}
_SIGNS = re.compile(r"^\W*?(?:(❌|🚫|⛔|✗|✘|🛑|👎|❎)|(✅|✔|☑|👍|✓|🟢))")

# An imperative with its thing, as an item of a list of what must not be done.
_FEW = 3

_Cue = tuple[re.Pattern[str], Polarity | None]


@dataclass(frozen=True, slots=True)
class _Cues:
    """The words of ``cues.yaml``, where each is explained."""

    before: Sequence[_Cue]
    after: Sequence[_Cue]
    answers: Sequence[_Cue]
    labels: Sequence[_Cue]
    weak: re.Pattern[str]
    hedged: re.Pattern[str]
    cleared: re.Pattern[str]
    turns: re.Pattern[str]
    negated: re.Pattern[str]


@cache
def _cues() -> _Cues:
    given = load_yaml(SHIPPED / "conventions" / "cues.yaml").values
    parts: dict[str, str] = given["parts"]

    def expression(text: str) -> re.Pattern[str]:
        for name, part in parts.items():
            text = text.replace(f"<{name}>", part)
        return re.compile(text, re.IGNORECASE)

    def listed(raw: list[dict[str, Any]]) -> list[_Cue]:
        return [(expression(each["words"]), _POLARITIES.get(each["says"])) for each in raw]

    return _Cues(
        before=listed(given["before"]),
        after=listed(given["after"]),
        answers=listed(given["answers"]),
        labels=listed(given["labels"]),
        weak=expression(given["weak"]),
        hedged=expression(given["hedged"]),
        cleared=expression(given["cleared"]),
        turns=expression(given["turns"]),
        negated=expression(r"(?:<not>|\bno\s+longer|\bto\s+not)(?:\s+\w+ly|\s+ever)?\s*$"),
    )


def of_sign(text: str) -> Polarity | None:
    """What a sign at the beginning of a text says of it."""
    found = _SIGNS.match(text)
    return None if found is None else FORBIDS if found[1] else ALLOWS


def of_label(text: str) -> Polarity | None:
    """What a heading, a column's head, a label or a sign says of what stands below or behind it."""
    text = text.strip()
    if not text or len(text) > 60:
        return None
    return next((polarity for pattern, polarity in _cues().labels if pattern.search(text)), None)


def polarity_of(
    text: str, start: int, end: int, around: Polarity | None = None, *, first: bool = False
) -> Polarity | None:
    """What a sentence says of the thing that stands at ``start`` to ``end``.

    Args:
        text: the sentence, with what is in backquotes blanked if it is not the thing itself.
        start, end: where it names the thing; the words that name it may hold the cue themselves.
        around: what stands above the sentence, where it has no word of its own.
        first: nothing of its paragraph stands before it.
    """
    cues = _cues()
    if cues.hedged.search(text):
        return None
    if (cleared := cues.cleared.match(text)) and start < cleared.end(1):
        return FORBIDS
    before, after = text[:start], text[end:]
    if answer := next((polarity for pattern, polarity in cues.answers if pattern.match(after)), None):
        return answer
    if turn := cues.turns.search(after):
        after = after[: turn.start()]
    found_before, ahead = _nearest_before(before, cues)
    behind = _nearest_behind(after, cues)
    if first and around == FORBIDS and ahead == ASKS and len(before.split()) <= _FEW:
        ahead = FORBIDS  # "Don't: use X"
    if found_before and ahead not in (ASKS, OPEN):
        return None if ahead == FORBIDS and cues.weak.search(before) else ahead
    if behind is not None:
        return behind[1]
    told = ahead if found_before else around
    return None if told == OPEN else told


def _nearest_before(before: str, cues: _Cues) -> tuple[bool, Polarity | None]:
    """(whether there is a cue, what it says)."""
    best: tuple[int, int] | None = None
    told: Polarity | None = None
    for rank, (pattern, polarity) in enumerate(cues.before):
        for found in pattern.finditer(before + " "):
            if best is None or (found.end(), -rank) > best:
                best = (found.end(), -rank)
                negated = polarity == ASKS and cues.negated.search(before[: found.start()])
                told = FORBIDS if negated else polarity
    return best is not None, told


def _nearest_behind(after: str, cues: _Cues) -> tuple[int, Polarity | None] | None:
    best: tuple[int, int] | None = None
    told: tuple[int, Polarity | None] | None = None
    for rank, (pattern, polarity) in enumerate(cues.after):
        found = pattern.search(after)
        if found is not None and (best is None or (-found.start(), -rank) > best):
            best = (-found.start(), -rank)
            told = (found.start(), polarity)
    return told
