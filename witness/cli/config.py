"""``gt config``: what is set, where that comes from, what each key means, and setting one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from witness.cli.context import print_json
from witness.cli.tables import write_lines, write_table
from witness.config.resources import docs_dir
from witness.config.settings import CHOICES, DURATIONS, Settings, written
from witness.config.settings_file import set_value
from witness.config.town import Town
from witness.config.yaml_document import load_yaml
from witness.errors import NotFoundError, TownNotFoundError, UsageError
from witness.trust.settings import FILE, Source, settings_with_sources, withheld_settings

_KEYS = [each.name for each in fields(Settings)]
_SCHEMA = "https://json-schema.org/draft/2020-12/schema"


@click.group()
def config() -> None:
    """The settings of a town: settings/witness.yaml, and over it that of a rig."""


def _rig(town: Town, rig: str) -> str:
    return town.check_rig(rig) if rig else ""


def _known(key: str) -> str:
    if key not in _KEYS:
        raise NotFoundError("setting", key, "'gt config show' lists them", _KEYS)
    return key


@config.command(epilog="Examples:\n\n  gt config show\n\n  gt config show --set\n\n  gt config show --rig api --json")
@click.option("--rig", default="", help="With what this rig sets over the town's.")
@click.option("--set", "only_set", is_flag=True, help="Only what differs from the defaults.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object, one key a setting.")
def show(rig: str, only_set: bool, as_json: bool) -> None:
    """Each setting with its value, its default and where the value comes from."""
    town = Town.find()
    rows = _rows(town, _rig(town, rig))
    for line in withheld_settings(town.root, rig):
        click.echo(f"gt: {line}", err=True)
    if only_set:
        rows = {key: row for key, row in rows.items() if row["from"] != "default"}
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo("all settings are at their defaults")
        return
    cells = [
        [key, written(key, row["value"]) or "-", written(key, row["default"]) or "-", _place(row)]
        for key, row in rows.items()
    ]
    write_table(["key", "value", "default", "from"], cells)


def _rows(town: Town, rig: str = "") -> dict[str, dict[str, Any]]:
    """Value, default and source of every setting, by key; a file's line is one-based, 0 where there is none."""
    settings, sources = settings_with_sources(town.root, rig)
    plain = Settings()
    rows = {}
    for key in _KEYS:
        value, default = _plain(getattr(settings, key)), _plain(getattr(plain, key))
        source = next((each for each in reversed(sources.get(key, [])) if each.counts), None)
        place = str(source.path) if source else "default" if value == default else "Gas Town's operational settings"
        line = load_yaml(source.path, None).lines.get(key, 0) if source else 0
        held = [str(each.path) for each in sources.get(key, []) if not each.counts]
        rows[key] = {"value": value, "default": default, "from": place, "line": line, "not trusted in": held}
    return rows


def _place(row: Mapping[str, Any]) -> str:
    told = f"{row['from']}:{row['line']}" if row["line"] else str(row["from"])
    return told + "".join(f" (not {path}: it is not trusted)" for path in row["not trusted in"])


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value


@config.command(epilog="Examples:\n\n  gt config explain hook_wait")
@click.argument("key")
@click.option("--rig", default="", help="With what this rig sets over the town's.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def explain(key: str, rig: str, as_json: bool) -> None:
    """What a setting means, its default, and each place that gives it a value; the last that counts holds."""
    meaning, default = meanings()[_known(key)]
    places: list[Source] = []
    try:
        town = Town.find()
        places = settings_with_sources(town.root, _rig(town, rig))[1].get(key, [])
    except TownNotFoundError:
        if rig:
            raise
    told = [{"file": str(each.path), "value": _plain(each.value), "counts": each.counts} for each in places]
    if as_json:
        print_json({"key": key, "meaning": meaning, "default": default, "kind": _kind(key), "places": told})
        return
    lines = [f"{key}: {meaning}", f"  default: {default}", f"  written as: {_kind(key)}"]
    for each in places:
        trust = "" if each.counts else " (does not count: gt sidecar trust shows why)"
        lines.append(f"  {each.path}: {written(key, each.value) or 'empty'}{trust}")
    write_lines(lines)


def meanings() -> dict[str, tuple[str, str]]:
    """The meaning and the default of each setting by key, from the one page that tells them."""
    page = (docs_dir() / "settings.md").read_text(encoding="utf-8")
    rows = (line.strip().strip("|").split(" | ") for line in page.splitlines() if line.startswith("| `"))
    return {key.strip(" `"): (meaning.strip().replace("`", ""), default.strip("`")) for key, default, meaning in rows}


def _kind(key: str) -> str:
    """How a value of this setting is written, in a few words."""
    default = getattr(Settings(), key)
    if key in CHOICES:
        return f"one of {', '.join(CHOICES[key])}"
    if key in DURATIONS:
        return "a length of time: 10s, 1m30s, 250ms"
    if default is None:
        return "a size as 512M or 4G, or max" if key.startswith("memory") else "a whole number, or max"
    return {
        bool: "true or false", int: "a whole number", float: "a number", str: "a text", tuple: "a list",
    }.get(type(default), "a mapping")  # fmt: skip


@config.command(epilog="Examples:\n\n  gt config schema > witness.schema.json")
def schema() -> None:
    """The JSON schema of settings/witness.yaml, for editors that check and complete."""
    print_json(
        {
            "$schema": _SCHEMA,
            "title": "settings/witness.yaml of gt-witness",
            "type": "object",
            "additionalProperties": False,
            "properties": {key: {"description": meaning, **_shape(key)} for key, (meaning, _) in meanings().items()},
        }
    )


def _shape(key: str) -> dict[str, Any]:
    default = _plain(getattr(Settings(), key))
    if key in CHOICES:
        return {"enum": list(CHOICES[key]), "default": default}
    if key in DURATIONS:
        span = {"type": "string", "pattern": r"^\s*(\d+(\.\d+)?((ms|s|m|h|d)(\d+(\.\d+)?(ms|s|m|h|d))*)?)\s*$"}
        return {"anyOf": [span, {"type": "number", "minimum": 0}], "default": written(key, default)}
    if default is None:
        return {"type": ["string", "integer"]}
    kinds: dict[type, dict[str, Any]] = {
        bool: {"type": "boolean"},
        int: {"type": "integer", "minimum": 0},
        float: {"type": "number", "minimum": 0},
        str: {"type": "string"},
        list: {"type": "array", "items": {"type": "string"}},
    }
    return {**kinds.get(type(default), {"type": "object"}), "default": default}


@config.command(
    "set",
    epilog="Examples:\n\n  gt config set stop_grace 3s\n\n  gt config set --rig api sidecars conventions,tools\n\n"
    "  gt config set types '{scope: {cap: 3}}'\n\n  gt config set stop_grace --default",
)
@click.argument("key")
@click.argument("value", required=False)
@click.option("--default", "drop", is_flag=True, help="Take the key out of the file.")
@click.option("--rig", default="", help="In this rig's file.")
def set_(key: str, value: str | None, drop: bool, rig: str) -> None:
    """Give a setting a value in the town's file; a running Witness takes it over by itself."""
    _known(key)
    if (value is None) != drop:
        raise UsageError("give a VALUE, or --default to take the key out")
    town = Town.find()
    path: Path = town.root / _rig(town, rig) / FILE
    set_value(path, key, value, town.make_runtime() / "settings.lock")
    row = _rows(town, rig)[key]
    write_lines([f"{key}: {written(key, row['value']) or 'empty'}, from {_place(row)}"])
