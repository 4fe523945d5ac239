"""``[[compose.expand]]``: one step of a formula replaced by the steps of an expansion."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from witness.config.town import Town
from witness.declare.document import read_document
from witness.declare.formula import Step, circles, formula_kind, read_steps
from witness.declare.molecule import Molecule
from witness.declare.overlay import put_in_place
from witness.declare.search import find_beside
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
