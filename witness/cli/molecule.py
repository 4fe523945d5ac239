"""``gt molecule``: for those who write molecules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from witness.cli.completion import molecules
from witness.cli.context import print_json
from witness.config.town import Town
from witness.declare.compose import apply_overlay, compose, find_overlay
from witness.declare.formula import read_steps
from witness.declare.molecule import Molecule
from witness.declare.sidecar_spec import resolve_specs
from witness.errors import DeclarationError, NotFoundError, Problem, TownNotFoundError, UsageError

_workdir = click.option(
    "--workdir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="Where names and the files of sidecars are looked for; default: here.",
)
_var = click.option("--var", "given", multiple=True, metavar="K=V", help="Give a variable; may be repeated.")
_rig = click.option("--rig", default="", help="The rig whose overlays and sidecar types apply.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group
def molecule() -> None:
    """Lint, show and resolve molecules: the TOML (or JSON) files that declare a polecat's work and its sidecars."""


def read_vars(given: Sequence[str]) -> dict[str, str]:
    """Read ``--var K=V`` flags.

    Raises:
        UsageError: one has no ``=``, or no name before it.
    """
    values = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise UsageError(f"--var {each!r} is not NAME=VALUE")
        values[name] = value
    return values


def _town() -> Town | None:
    try:
        return Town.find()
    except TownNotFoundError:
        return None


@molecule.command
@click.argument("names", nargs=-1, required=True, metavar="FILE|NAME...", shell_complete=molecules)
@_var
@_rig
@_workdir
@_json
def lint(names: tuple[str, ...], given: tuple[str, ...], rig: str, workdir: Path, as_json: bool) -> None:
    """Check molecules as strictly as Gas Town's own readers do, and that every sidecar's type and file exists.

    Prints one line a fault: file, line, key, what is wrong and the form that is accepted. With a fault it exits with 2.

    \b
    Example:
      gt molecule lint molecules/mol-demo.toml --workdir molecules/demo-repo
    """
    town, values = _town(), read_vars(given)
    problems: list[Problem] = []
    warnings: list[Problem] = []
    for name in names:
        problems += _lint(name, values, town, rig, workdir.absolute(), warnings)
    if as_json:
        told = [(p, "fault") for p in problems] + [(p, "warning") for p in warnings]
        print_json(
            [{"file": p.file, "line": p.line, "key": p.key, "message": p.message, "level": at} for p, at in told]
        )
    else:
        for warning in warnings:
            click.echo(f"warning: {warning}", err=True)
        for problem in problems:
            click.echo(str(problem))
        if not problems:
            click.echo(f"{', '.join(names)}: no fault found", err=True)
    if problems:
        raise SystemExit(2)


def _lint(
    name: str, given: dict[str, str], town: Town | None, rig: str, workdir: Path, warnings: list[Problem]
) -> list[Problem]:
    problems: list[Problem] = []
    try:
        found = Molecule.load(name, town, workdir, strict=True)
    except DeclarationError as error:
        return list(error.problems)
    except NotFoundError as error:
        return [Problem(str(error), name)]
    warnings += found.warnings
    problems += found.undefined_placeholders()
    # A required variable has no value before the work is given out; for lint any text stands for it.
    stand_ins = {
        key: f"<{key}>" for key, variable in found.declared.items() if variable.required and variable.default is None
    }
    try:
        values = {**stand_ins, **given}
        text = found.sidecars(values)
        if not any(stand_in in text for stand_in in stand_ins.values()):
            resolve_specs(text, found.sidecars_source(given), town=town, rig=rig, workdir=workdir)
    except DeclarationError as error:
        problems += error.problems
    try:
        compose(found, town, workdir)
        if town is not None and (path := find_overlay(found.name, town, rig)) is not None:
            problems += apply_overlay(found.steps, path)[1]
    except DeclarationError as error:
        problems += error.problems
    return problems


@molecule.command
@click.argument("name", metavar="FILE|NAME", shell_complete=molecules)
@_rig
@_workdir
@_json
def show(name: str, rig: str, workdir: Path, as_json: bool) -> None:
    """Show a molecule as it is used: with its parents, expansions and overlays, and where each variable is from."""
    town = _town()
    found = Molecule.load(name, town, workdir.absolute())
    steps = compose(found, town, workdir.absolute())
    overlay = find_overlay(found.name, town, rig) if town is not None else None
    notes: list[Problem] = []
    if overlay is not None:
        steps, notes = apply_overlay(steps, overlay)
    facts: dict[str, Any] = {
        "name": found.name,
        "path": str(found.path),
        "type": found.kind,
        "agent": found.agent,
        "extends": [str(path) for path in found.parents],
        "overlay": str(overlay or ""),
        "steps": [{"id": step.id, "title": step.title, "needs": list(step.needs)} for step in steps],
        **{
            part: [{"id": each.id, "title": each.title} for each in read_steps(found.document, part)]
            for part in ("legs", "template", "aspects")
            if found.document.raw.get(part)
        },
        "vars": {
            key: {
                "default": variable.default,
                "required": variable.required,
                "description": variable.description,
                "declared": f"{variable.source.file}:{variable.source.line}",
            }
            for key, variable in found.declared.items()
        },
    }
    for note in notes:
        click.echo(str(note), err=True)
    print_json(facts) if as_json else _print_molecule(facts)


def _print_molecule(facts: dict[str, Any]) -> None:
    click.echo(f"{facts['name']}  ({facts['type'] or 'variables only'})  {facts['path']}")
    for path in facts["extends"]:
        click.echo(f"  extends {path}")
    if facts["overlay"]:
        click.echo(f"  overlay {facts['overlay']}")
    for step in facts["steps"]:
        needs = f"  (after {', '.join(step['needs'])})" if step["needs"] else ""
        click.echo(f"  step {step['id']}: {step['title']}{needs}")
    for part in ("legs", "template", "aspects"):
        for each in facts.get(part, ()):
            click.echo(f"  {part} {each['id']}: {each['title']}")
    for key, variable in facts["vars"].items():
        value = "required" if variable["required"] and variable["default"] is None else repr(variable["default"] or "")
        click.echo(f"  var {key} = {value}  {variable['declared']}")


@molecule.command("vars")
@click.argument("name", metavar="FILE|NAME", shell_complete=molecules)
@_var
@_workdir
@_json
def show_vars(name: str, given: tuple[str, ...], workdir: Path, as_json: bool) -> None:
    """Print the value of every variable, and the sidecars with their placeholders filled.

    \b
    Example:
      gt molecule vars mol-demo --var issue=docs/other.md
    """
    found = Molecule.load(name, _town(), workdir.absolute())
    values = found.variables(read_vars(given))
    values["sidecars"] = found.sidecars(read_vars(given))
    if as_json:
        print_json(values)
        return
    for key, value in values.items():
        click.echo(f"{key}={value}")
