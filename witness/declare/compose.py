"""Formulas that change others: a molecule with all that it names put in, and overlays, which edit steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from witness.config.town import Town
from witness.declare.cook import CookError, Recipes, cook, walk
from witness.declare.document import Document, find_beside, read_document
from witness.declare.formula import Step, formula_kind, step_needs
from witness.declare.molecule import Molecule
from witness.declare.source import Source
from witness.declare.variables import read_variables
from witness.errors import DeclarationError, NotFoundError, Problem


def compose(molecule: Molecule, town: Town | None = None, workdir: Path | None = None) -> tuple[Step, ...]:
    """The molecule's steps as ``bd cook`` makes them: its loops, expansions and aspects put in, its children after it.

    Raises:
        DeclarationError: what it names is missing or is of another kind, or a step needs what is no step.
    """
    whole = molecule.document.source("steps")

    def problem(error: object) -> DeclarationError:
        return DeclarationError([molecule.document.source("compose").problem(str(error))])

    def read(name: str) -> Document:
        try:
            return read_document(find_beside(name, molecule.path, town, workdir))
        except NotFoundError as error:
            raise DeclarationError([_namer(molecule, name).problem(str(error))]) from error

    def expansion(name: str) -> tuple[list[dict[str, Any]], Mapping[str, str]]:
        document = read(name)
        if formula_kind(document) != "expansion":
            return [], {}
        defaults = {key: each.default or "" for key, each in read_variables(document)[0].items()}
        return [dict(each) for each in document.raw.get("template", ())], defaults

    def aspect(name: str) -> list[dict[str, Any]]:
        document = read(name)
        if formula_kind(document) != "aspect":
            raise CookError(f"{name!r} is no aspect: it has no [[advice]]")
        return [dict(each) for each in document.raw.get("advice", ())]

    tables = [dict(step) for step in molecule.tables]
    faults = []
    known = {str(step.get("id", "")) for step in walk(tables)}
    for step in walk(tables):
        for need in step_needs(step):
            if need not in known:
                faults.append(
                    whole.problem(f"{step.get('id')!r} needs {need!r}, which is no step, here or in a parent")
                )
    try:
        cooked = cook(
            tables, [dict(each) for each in molecule.advice], molecule.composition, Recipes(expansion, aspect)
        )
    except CookError as error:
        raise problem(error) from error
    if faults:
        raise DeclarationError(faults)
    return tuple(
        Step(str(each.get("id", "")), str(each.get("title", "")), str(each.get("description", "")), step_needs(each))
        for each in walk(cooked)
    )


def _namer(molecule: Molecule, name: str) -> Source:
    """Where a formula names another one."""
    for kind in ("expand", "map"):
        for at, rule in enumerate(molecule.composition.get(kind, ())):
            if isinstance(rule, Mapping) and rule.get("with") == name:
                return molecule.document.source("compose", kind, at)
    names = molecule.composition.get("aspects", [])
    if name in names:
        return molecule.document.source("compose", "aspects", names.index(name))
    return molecule.document.source("steps")


# Overlays: how a town or a rig changes the steps of a formula without editing it. They carry no variables.

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
    # A step that waited for the skipped one waits for what it waited for.
    return [replace(each, needs=put_in_place(each.needs, step.id, step.needs)) for each in steps if each is not step]


def put_in_place(needs: tuple[str, ...], gone: str, instead: tuple[str, ...]) -> tuple[str, ...]:
    """``needs`` with ``gone`` replaced by ``instead``, each once."""
    found = [name for need in needs for name in (instead if need == gone else (need,))]
    return tuple(dict.fromkeys(found))
