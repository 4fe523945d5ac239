"""Formulas that change others: ``[[compose.expand]]`` replaces a step, an overlay edits steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from witness.config.town import Town
from witness.declare.document import find_beside, read_document
from witness.declare.formula import Step, circles, formula_kind, read_steps
from witness.declare.molecule import Molecule
from witness.errors import DeclarationError, NotFoundError, Problem


def compose(molecule: Molecule, town: Town | None = None, workdir: Path | None = None) -> tuple[Step, ...]:
    """The molecule's steps with its expansions put in.

    Raises:
        DeclarationError: an expansion is missing or is none, its target is no step, or needs go round in a circle.
    """
    rules = molecule.document.raw.get("compose", {})
    steps = molecule.steps
    problems: list[Problem] = []
    for at, rule in enumerate(rules.get("expand", ())):
        source = molecule.document.source("compose", "expand", at)
        try:
            template = _template(str(rule.get("with", "")), molecule.path, town, workdir)
        except NotFoundError as error:
            problems.append(source.problem(str(error)))
            continue
        except DeclarationError as error:
            problems += error.problems
            continue
        target = next((step for step in steps if step.id == rule.get("target")), None)
        if not template:
            problems.append(source.problem(f"{rule.get('with')!r} is no expansion: it has no [[template]]"))
        elif target is None:
            problems.append(source.problem(f"{rule.get('target')!r} is no step here"))
        else:
            steps = _expand(steps, target, template)
    known = {step.id: step.needs for step in steps}
    whole = molecule.document.source("steps")
    problems += [
        whole.problem(f"{step.id!r} needs {need!r}, which is no step, here or in a parent")
        for step in steps
        for need in step.needs
        if need not in known
    ]
    if not problems:
        problems += [whole.problem(fault) for fault in circles(known)]
    if problems:
        raise DeclarationError(problems)
    return steps


def _template(name: str, beside: Path, town: Town | None, workdir: Path | None) -> tuple[Step, ...]:
    document = read_document(find_beside(name, beside, town, workdir))
    return read_steps(document, "template") if formula_kind(document) == "expansion" else ()


def _expand(steps: tuple[Step, ...], target: Step, template: tuple[Step, ...]) -> tuple[Step, ...]:
    def fill(text: str) -> str:
        text = text.replace("{target.title}", target.title).replace("{target.description}", target.description)
        return text.replace("{target}", target.id)

    new = tuple(
        Step(fill(each.id), fill(each.title), fill(each.description), tuple(map(fill, each.needs)) or target.needs)
        for each in template
    )
    last = (new[-1].id,)
    found: list[Step] = []
    for step in steps:
        if step is target:
            found += new
        else:
            found.append(replace(step, needs=put_in_place(step.needs, target.id, last)))
    return tuple(found)


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
