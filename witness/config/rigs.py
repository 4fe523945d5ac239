"""Which rigs a town has: Gas Town's ``rigs.json``, or a standalone town's ``town.yaml``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from witness.errors import DeclarationError, Problem, UsageError
from witness.files import parse_json, read_json, read_text
from witness.names import check_name

if TYPE_CHECKING:
    from witness.config.yaml_document import Document

DEFAULT_RIG = "main"
# What Gas Town takes for a rig that it does not know.
DEFAULT_PREFIX = "gt"
# Gas Town's own lists, in bytes.
_LARGEST = 4 << 20


def read_rigs_json(root: Path) -> dict[str, str]:
    """The rigs and their prefixes, empty where a rig has none; ``rigs.json`` at the root is Gas Town's own copy."""
    for path in (root / "mayor" / "rigs.json", root / "rigs.json"):
        try:
            raw = read_json(path, _LARGEST, follow=True, owners=())
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            why = str(error).removeprefix(f"{path}: ")
            raise DeclarationError([Problem(f"cannot be read as JSON: {why}", str(path))]) from error
        rigs = raw.get("rigs") if isinstance(raw, dict) else None
        if not isinstance(rigs, dict):
            return {}
        found = {}
        for name, rig in rigs.items():
            beads = rig.get("beads") if isinstance(rig, dict) else None
            prefix = beads.get("prefix") if isinstance(beads, dict) else None
            found[name] = prefix if isinstance(prefix, str) else ""
        return found
    return {}


def read_routes(root: Path) -> dict[str, str]:
    """Rig by prefix (``gt-``) from ``.beads/routes.jsonl``: the first part of a route's path. Bad lines are skipped."""
    try:
        lines = read_text(root / ".beads" / "routes.jsonl", _LARGEST, follow=True, owners=()).splitlines()
    except (OSError, ValueError):
        return {}
    routes = {}
    for line in lines:
        try:
            route = parse_json(line)
            prefix, rig = str(route["prefix"]), str(route["path"]).split("/")[0]
        except (ValueError, KeyError, TypeError):
            continue
        if prefix and rig not in ("", "."):
            routes[prefix] = rig
    return routes


def read_town_file(path: Path) -> tuple[dict[str, str], dict[str, Path]]:
    """Read a standalone town's ``town.yaml``: ``name`` and, for each rig, ``prefix`` and ``path``.

    Returns:
        (session prefix by rig, code's folder by rig).

    Raises:
        DeclarationError: it is not YAML, or has an unknown key or a wrong value.
    """
    try:
        text = read_text(path, follow=True, owners=())
    except FileNotFoundError:
        return {}, {}
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise DeclarationError([Problem(f"cannot be read: {why}", str(path))]) from error
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if all(line.startswith("name:") for line in lines):
        return {}, {}  # most towns have a name only: hooks and sidecars need not load a YAML reader for it
    from witness.config.yaml_document import parse_yaml

    return _check_town(path, parse_yaml(text, str(path)))


_TOWN_KEYS = ("name", "rigs")


def _check_town(path: Path, document: Document) -> tuple[dict[str, str], dict[str, Path]]:
    """The prefixes and folders of a town file that is YAML."""
    problems = [document.unknown(key, _TOWN_KEYS) for key in document.values if key not in _TOWN_KEYS]
    rigs = document.values.get("rigs") or {}
    if not isinstance(rigs, dict):
        problems.append(document.problem("write it as {name: {path: …, prefix: …}}", "rigs"))
        rigs = {}
    prefixes: dict[str, str] = {}
    paths: dict[str, Path] = {}
    for name, declared in rigs.items():
        key = f"rigs.{name}"
        if fault := _rig_fault(name, declared):
            problems.append(document.problem(fault, key))
            continue
        rig = declared or {}
        prefix = rig.get("prefix") or (DEFAULT_PREFIX if name == DEFAULT_RIG else str(name))
        if prefix in prefixes.values():
            problems.append(document.problem(f"two rigs have the prefix {prefix!r}: their sessions would mix", key))
        prefixes[str(name)] = prefix
        if "path" in rig:
            paths[str(name)] = Path(os.path.abspath(path.parent / Path(rig["path"]).expanduser()))  # noqa: PTH100
    if problems:
        raise DeclarationError(problems)
    return prefixes, paths


def _rig_fault(name: object, rig: object) -> str:
    """What is wrong with one rig of a ``town.yaml``; empty when nothing is."""
    try:
        check_name("rig", str(name))
        if rig is None:
            return ""
        if not isinstance(rig, dict):
            return "write it as {path: …, prefix: …}, or leave it empty"
        for key, value in rig.items():
            if key not in ("path", "prefix"):
                return f"unknown key {key!r}: path and prefix are known"
            if not isinstance(value, str) or not value:
                return f"{key} must be a string"
        if "prefix" in rig:
            check_name("prefix", rig["prefix"])
    except UsageError as error:
        return str(error)
    return ""


# What a Gas Town has set for its own patrols: `settings/config.json`, key `operational`.

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
