"""Filling in the placeholders of pre-written texts."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def placeholders(template: str) -> list[str]:
    """The names that a template has places for."""
    return _PLACEHOLDER.findall(template)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Put values in place of ``{name}``; an unknown name stays, and a value is not looked into."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), template)
