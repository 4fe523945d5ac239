"""Overlays: how a town or a rig changes the steps of a formula without editing it. They carry no variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from witness.config.town import Town
from witness.declare.document import read_document
from witness.declare.formula import Step
from witness.errors import DeclarationError, Problem

MODES = ("replace", "append", "skip")
_KEY = "step-overrides"


def find_overlay(formula: str, town: Town, rig: str = "") -> Path | None:
    """The overlay of a formula: the rig's, which stands in place of the town's, else the town's, else None."""
    places = [town.root / rig] if rig else []
    for place in (*places, town.root):
        path = place / "formula-overlays" / f"{formula}.toml"
        if path.is_file():
            return path
    return None


def apply_overlay(steps: Sequence[Step], path: Path) -> tuple[tuple[Step, ...], list[Problem]]:
    """Apply an overlay's step overrides in their order.

    Returns:
        (the steps, one note for each override whose step is not there any more).

    Raises:
        DeclarationError: the overlay is not TOML, or an override has no step_id or no known mode.
    """
    document = read_document(path)
    raw = document.raw.get(_KEY, [])
    if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
        raise DeclarationError([document.source(_KEY).problem(f"must be an array of tables: write [[{_KEY}]]")])
    problems = []
    for at, each in enumerate(raw):
        for key in ("step_id", "mode", "description"):
            if not isinstance(each.get(key, ""), str):
                problems.append(document.source(_KEY, at, key).problem("must be a string"))
        if not each.get("step_id"):
            problems.append(
                document.source(_KEY, at, "step_id").problem('no step_id: name the step, as in step_id = "…"')
            )
        if each.get("mode") not in MODES:
            problems.append(document.source(_KEY, at, "mode").problem(f"must be one of {', '.join(MODES)}"))
    if problems:
        raise DeclarationError(problems)
    changed, stale = list(steps), []
    for at, each in enumerate(raw):
        where = next((index for index, step in enumerate(changed) if step.id == each["step_id"]), None)
        if where is None:
            stale.append(
                document.source(_KEY, at, "step_id").problem(
                    f"{each['step_id']!r} is no step here: the override is stale"
                )
            )
            continue
        changed = _override(changed, where, each["mode"], each.get("description", ""))
    return tuple(changed), stale


def _override(steps: list[Step], where: int, mode: str, text: str) -> list[Step]:
    step = steps[where]
    if mode == "replace":
        return [*steps[:where], replace(step, description=text), *steps[where + 1 :]]
    if mode == "append":
        return [*steps[:where], replace(step, description=f"{step.description}\n{text}"), *steps[where + 1 :]]
    # Whoever waited for the skipped step waits for what it waited for.
    return [replace(each, needs=put_in_place(each.needs, step.id, step.needs)) for each in steps if each is not step]


def put_in_place(needs: tuple[str, ...], gone: str, instead: tuple[str, ...]) -> tuple[str, ...]:
    """``needs`` with ``gone`` replaced by ``instead``, each once."""
    found = [name for need in needs for name in (instead if need == gone else (need,))]
    return tuple(dict.fromkeys(found))
