"""Single values of a memory file that somebody else wrote: understood where they can be, told where they changed."""

from __future__ import annotations

import math
from typing import Any

# What a memory is worth whose writer did not say: the protocol's value for an inference.
DEFAULT_CONFIDENCE = 0.5
_WORDS_FOR_CONFIDENCE = {"high": 0.8, "medium": 0.6, "low": 0.5}


def as_object(value: Any) -> dict[str, Any]:
    """The value when it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any, where: str, repairs: list[str]) -> list[Any]:
    """The value when it is a list; none for a missing one, and a repair for anything else."""
    if value is None:
        return []
    if isinstance(value, list):
        return value
    repairs.append(f"{where}: not a list, left out")
    return []


def as_text(value: Any, default: str) -> str:
    """The value when it is a text that is not empty."""
    return value if isinstance(value, str) and value else default


def as_count(value: Any, default: int, where: str, repairs: list[str]) -> int:
    """The value as a whole number from 0."""
    if value is None:
        return default
    try:
        number = int(float(value)) if not isinstance(value, bool) else -1
    except (TypeError, ValueError, OverflowError):
        number = -1
    if number < 0:
        repairs.append(f"{where}: {value!r} is not a count, taken as {default}")
        return default
    return number


def as_choice(value: Any, allowed: tuple[str, ...], default: str, where: str, repairs: list[str]) -> str:
    """The value when it is one of those allowed, in any case of letters."""
    plain = value.strip().lower() if isinstance(value, str) else ""
    if plain in allowed:
        return plain
    repairs.append(f"{where}: {value!r} is not one of {', '.join(allowed)}, taken as {default}")
    return default


def as_confidence(value: Any, where: str, repairs: list[str]) -> float:
    """The value as a number from 0 to 1; words and percentages are understood."""
    if value is None:
        return DEFAULT_CONFIDENCE
    if isinstance(value, str) and value.strip().lower() in _WORDS_FOR_CONFIDENCE:
        return _WORDS_FOR_CONFIDENCE[value.strip().lower()]
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if 1 < number <= 100:
        repairs.append(f"{where}: {value!r} taken as a percentage")
        number /= 100
    if not 0 <= number <= 1:
        repairs.append(f"{where}: {value!r} is not between 0 and 1, taken as {DEFAULT_CONFIDENCE}")
        return DEFAULT_CONFIDENCE
    return round(number, 4)
