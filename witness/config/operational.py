"""What a Gas Town has set for its own patrols: ``settings/config.json``, key ``operational``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from witness.files import read_json

# Go's way of writing durations, in seconds.
_UNIT = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]*\.?[0-9]+)(ns|us|µs|ms|s|m|h)")


def go_duration(text: object) -> float | None:
    """Seconds of ``1h30m`` and the like; None when it is no duration, as Gas Town then takes its default."""
    if not isinstance(text, str) or not re.fullmatch(rf"(?:{_PART.pattern})+", text):
        return None
    return sum(float(number) * _UNIT[unit] for number, unit in _PART.findall(text))


class Operational:
    """The knobs of one town. A missing file, section or knob, and a bad value, are the caller's default.

    Args:
        town: the town's root.
    """

    def __init__(self, town: Path) -> None:
        try:
            raw: Any = read_json(town / "settings" / "config.json", follow=True, owners=())
        except (OSError, ValueError):
            raw = {}
        operational = raw.get("operational") if isinstance(raw, dict) else None
        self._sections: dict[str, Any] = operational if isinstance(operational, dict) else {}

    def _knob(self, section: str, knob: str) -> object:
        found = self._sections.get(section)
        return found.get(knob) if isinstance(found, dict) else None

    def seconds(self, section: str, knob: str, default: float) -> float:
        """A duration, as ``seconds("nudge", "normal_ttl", 1800)``; not positive counts as bad."""
        value = go_duration(self._knob(section, knob))
        return value if value else default

    def count(self, section: str, knob: str, default: int) -> int:
        """A whole number; not positive counts as bad."""
        value = self._knob(section, knob)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default

    def flag(self, section: str, knob: str, default: bool) -> bool:
        """A boolean."""
        value = self._knob(section, knob)
        return value if isinstance(value, bool) else default
