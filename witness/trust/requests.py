"""What a project's layer of a type asks for beyond data for rules.

A key that stands in no table here asks: what is new is not free by having been forgotten. A value that equals what the
farther layers give asks for nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from witness.config.settings import parse_duration
from witness.trust.effects import SIDECAR, Effect, raises

_LEVELS = ("low", "medium", "high")
# What holds where no layer says anything; the sidecars' own defaults.
DEFAULTS: Mapping[str, Any] = {
    "judge": "rules+model",
    "cap": 10,
    "calls_per_hour": 30,
    "timeout": 5.0,
    "max_tokens": 1024,
    "pane_lines": 50,
    "cooldown": 30.0,
    "gap": 5.0,
    "poll": 10.0,
    "duplicate_window": 300.0,
    "batch": 2.0,
    "change": 0.10,
    "holdout": 0.0,
    "threshold": "medium",
    "context": [],
    "rules": [],
}
_LONGEST_VALUE = 200


def asked_for(fields: Mapping[str, Any], farther: Mapping[str, Any]) -> dict[str, str]:
    """What a layer asks for.

    Args:
        fields: what it says.
        farther: what the layers below it say, put together.

    Returns:
        By field, what it would do, in words that hold the value.
    """
    asks = {}
    for key, value in fields.items():
        before = farther.get(key, DEFAULTS.get(key))
        if SIDECAR.get(key) is Effect.DATA or value == before:
            continue
        if reason := _TESTS.get(key, _any_change)(key, value, before):
            asks[key] = reason
    return asks


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = "".join(mark if mark.isprintable() else " " for mark in text)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}… ({len(text)} characters)"


def _any_change(key: str, value: Any, before: Any) -> str:
    return f"{_EFFECTS.get(key, 'sets')} {_shown(value)}"


def _judge(key: str, value: Any, before: Any) -> str:
    return "" if value == "rules" else f"is judged by {_shown(value)}"


def _rules(key: str, value: Any, before: Any) -> str:
    return f"replaces {len(before)} rules of the type" if before else ""


def _context(key: str, value: Any, before: Any) -> str:
    names = value if isinstance(value, list) else [value]
    known = before if isinstance(before, list) else [before]
    reaching = [name for name in names if name not in known and (not isinstance(name, str) or _reaches(name))]
    return f"reads {_shown(reaching)}" if reaching else ""


def _reaches(source: str) -> bool:
    kind, _, rest = source.partition(":")
    if kind == "mcp":
        return True
    return kind in ("files", "own") and reaches_outside(rest)


def reaches_outside(path: str) -> bool:
    """Whether a path, seen from the project, leads out of it as it is written."""
    return path.lstrip("!").startswith(("/", "~")) or ".." in path.split("/")


def _threshold(key: str, value: Any, before: Any) -> str:
    if value in _LEVELS and before in _LEVELS and _LEVELS.index(value) >= _LEVELS.index(before):
        return ""
    return f"speaks from {_shown(value)} confidence on, in place of {_shown(before)}"


def _limit(key: str, value: Any, before: Any) -> str:
    try:
        new, old = parse_duration(value), parse_duration(before)
    except ValueError:
        return f"sets {_shown(value)}"
    return f"sets {_shown(value)}, in place of {_shown(before)}" if raises(SIDECAR[key], new, old) else ""


_EFFECTS = {
    "command": "runs",
    "function": "calls the Python function",
    "model": "asks the model",
    "prompt": "instructs the model:",
}
_TESTS: Mapping[str, Callable[[str, Any, Any], str]] = {
    "judge": _judge,
    "rules": _rules,
    "context": _context,
    "threshold": _threshold,
    **{key: _limit for key, effect in SIDECAR.items() if effect in (Effect.UP, Effect.DOWN) and key != "threshold"},
}
