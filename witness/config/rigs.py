"""Which rigs a town has: Gas Town's ``rigs.json``, or a standalone town's ``town.yaml``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from witness.errors import DeclarationError, Problem, UsageError
from witness.names import check_name

DEFAULT_RIG = "main"
# What Gas Town takes for a rig that it does not know.
DEFAULT_PREFIX = "gt"


def read_rigs_json(root: Path) -> dict[str, str]:
    """The rigs and their prefixes, empty where a rig has none; ``rigs.json`` at the root is Gas Town's own copy."""
    for path in (root / "mayor" / "rigs.json", root / "rigs.json"):
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise DeclarationError([Problem(f"cannot be read as JSON: {error}", str(path))]) from error
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
        lines = (root / ".beads" / "routes.jsonl").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    routes = {}
    for line in lines:
        try:
            route = json.loads(line)
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
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}, {}
    except (OSError, UnicodeDecodeError) as error:
        raise DeclarationError([Problem(f"cannot be read: {error}", str(path))]) from error
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if all(line.startswith("name:") for line in lines):
        return {}, {}  # most towns have a name only: hooks and sidecars need not load a YAML reader for it
    import yaml

    try:
        raw = yaml.safe_load(text)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        message = f"not YAML: {getattr(error, 'problem', None) or error}"
        raise DeclarationError([Problem(message, str(path), mark.line + 1 if mark else 0)]) from error
    return _check_town(path, raw, node)


def _keys(node: Any) -> dict[str, tuple[int, Any]]:
    """Line and value of each key of a YAML mapping."""
    pairs = node.value if getattr(node, "id", "") == "mapping" else ()
    return {str(key.value): (key.start_mark.line + 1, value) for key, value in pairs}


def _check_town(path: Path, raw: Any, node: Any) -> tuple[dict[str, str], dict[str, Path]]:
    """The prefixes and folders of a town file that is YAML."""
    if not isinstance(raw, dict):
        raise DeclarationError([Problem("the file must hold a mapping: name, rigs", str(path), 1)])
    keys = _keys(node)
    problems = [
        Problem("unknown key: name and rigs are known", str(path), line, key)
        for key, (line, _) in keys.items()
        if key not in ("name", "rigs")
    ]
    rigs, (line, below) = raw.get("rigs") or {}, keys.get("rigs", (0, None))
    if not isinstance(rigs, dict):
        problems.append(Problem("write it as {name: {path: …, prefix: …}}", str(path), line, "rigs"))
        rigs = {}
    places = _keys(below)
    prefixes: dict[str, str] = {}
    paths: dict[str, Path] = {}
    for name, declared in rigs.items():
        at = places.get(str(name), (line, None))[0]
        if fault := _rig_fault(name, declared):
            problems.append(Problem(fault, str(path), at, f"rigs.{name}"))
            continue
        rig = declared or {}
        prefix = rig.get("prefix") or (DEFAULT_PREFIX if name == DEFAULT_RIG else str(name))
        if prefix in prefixes.values():
            fault = f"two rigs have the prefix {prefix!r}: their sessions would mix"
            problems.append(Problem(fault, str(path), at, f"rigs.{name}"))
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
