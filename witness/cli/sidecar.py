"""``gt sidecar``: for those who write sidecars, and for those who want to know what they said."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import click

from sidecars.observer.context.files import find
from sidecars.observer.context.gather import gather
from sidecars.type_reader.sidecar_type import SidecarType
from sidecars.type_reader.type_loader import assigned_type
from witness.assignment import Assignment
from witness.cli.completion import any_type
from witness.cli.context import print_json, tell_withheld
from witness.cli.sidecar_ledger import costs, log
from witness.cli.sidecar_trust import trust
from witness.cli.sidecar_tuning import compile_command, eval_command, replay_command
from witness.config.town import Town
from witness.errors import DeclarationError, NotFoundError, Problem, TownNotFoundError, UsageError


@click.group()
def sidecar() -> None:
    """Types, lint, compile, trust, log, costs, replay and eval of sidecars.

    \b
    gt sidecar types --explain scope
    gt sidecar lint .gt/sidecars/naming
    gt sidecar compile AGENTS.md
    gt sidecar trust .gt/sidecars/naming
    gt sidecar eval scope
    gt sidecar replay --transcript session.jsonl --type specs:docs/api-spec.md
    gt sidecar log toast
    gt sidecar costs --by day
    """


sidecar.add_command(log)
sidecar.add_command(costs)
sidecar.add_command(replay_command)
sidecar.add_command(eval_command)
sidecar.add_command(compile_command)
sidecar.add_command(trust)


def here(rig: str = "") -> tuple[Path | None, str]:
    """The town's root and the rig of the working directory; none outside of towns."""
    try:
        town = Town.find()
    except TownNotFoundError:
        return None, rig
    return town.root, rig or town.rig_of(Path.cwd())


@sidecar.command()
@click.option("--explain", metavar="TYPE", help="Every field of one type, where it was set, and its rules in words.")
@click.option("--rig", default="", help="The rig whose own types count.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def types(explain: str | None, rig: str, as_json: bool) -> None:
    """List the sidecar types that are known here, or explain one."""
    from sidecars.type_reader.type_loader import load_type
    from witness.trust import type_names
    from witness.trust.definition import withheld

    root, rig = here(rig)
    if explain:
        _explain(explain, root, rig, as_json)
        return
    rows = []
    for name in type_names(root, rig, Path.cwd()):
        try:
            kind = load_type(name, root, rig, Path.cwd(), believe=True)
            tell_withheld(withheld(name, root, rig, Path.cwd()))
        except DeclarationError as error:
            click.echo(f"{name} cannot be used: {error.problems[0]}", err=True)
            continue
        rows.append({"type": name, "judge": kind.judge, "threshold": str(kind.threshold), "summary": kind.summary,
                     "folders": [str(folder) for folder in kind.folders]})  # fmt: skip
    if as_json:
        print_json(rows)
        return
    for row in rows:
        click.echo(f"{row['type']:<14} {row['judge']:<12} {row['threshold']:<7} {row['summary']}")


def _explain(name: str, root: Path | None, rig: str, as_json: bool) -> None:
    from dataclasses import asdict

    from sidecars.tuning.lint import lint

    found = lint(name, root, rig, Path.cwd())
    kind = found.type
    values = {key: value for key, value in asdict(kind).items() if key not in ("origins", "folders", "rules", "prompt")}
    values["threshold"] = str(kind.threshold)
    if as_json:
        print_json({**values, "rules": list(found.rules), "origins": dict(kind.origins)})
        return
    for key, value in values.items():
        if key != "snippets":
            shown = ", ".join(value) if isinstance(value, tuple) else value
            click.echo(f"{key:<18} {shown!s:<22} {kind.origins.get(key, 'default')}")
    click.echo(f"{'prompt':<18} {len(kind.prompt)} characters{'':<8} {kind.origins.get('prompt', 'default')}")
    for key, text in kind.snippets.items():
        click.echo(f"snippet {key}: {text}  ({kind.origins.get(f'snippets.{key}', '')})")
    for rule in found.rules:
        click.echo(f"rule {rule}")


@sidecar.command("lint")
@click.argument("places", nargs=-1, required=True, metavar="FILE|FOLDER|TYPE...", shell_complete=any_type)
@click.option("--rig", default="", help="The rig whose own types count.")
@click.option("--quiet", is_flag=True, help="Faults and warnings only, no explanation of the rules.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def lint_command(places: tuple[str, ...], rig: str, quiet: bool, as_json: bool) -> None:
    """Look over types: faults with file, line and key (exit code 2), warnings, and every rule in words."""
    from sidecars.tuning.lint import lint

    root, rig = here(rig)
    problems: list[Problem] = []
    rows = []
    for place in places:
        try:
            found = lint(place, root, rig, Path.cwd())
        except DeclarationError as error:
            problems += error.problems
            continue
        rows.append({"type": found.type.name, "warnings": [str(each) for each in found.warnings],
                     "rules": list(found.rules)})  # fmt: skip
        if as_json:
            continue
        for warning in found.warnings:
            click.echo(f"warning: {warning}")
        for rule in () if quiet else found.rules:
            click.echo(rule)
    if as_json:
        print_json({"errors": [str(problem) for problem in problems], "types": rows})
    if problems:
        raise DeclarationError(problems)


@sidecar.command()
def schema() -> None:
    """Print the JSON Schema of sidecar.yaml, with which editors complete and check it."""
    from sidecars.type_reader.type_schema import json_schema

    print_json(json_schema())


@sidecar.command()
@click.option("--workdir", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path())
@click.option("--yes", is_flag=True, help="Start the servers of .mcp.json without asking.")
def tools(workdir: Path, yes: bool) -> None:
    """Start the MCP servers that the project's .mcp.json declares, and keep the list of their tools for sidecars.

    The servers are programs of the project; nothing else of gt-witness ever starts them.
    """
    from sidecars.observer.context.mcp_listing import LISTING, declared_servers, list_tools

    servers = declared_servers(workdir)
    if not servers:
        click.echo(f"{workdir / '.mcp.json'} declares no server", err=True)
        return
    if not yes and not sys.stdin.isatty():
        raise UsageError(f"this starts {', '.join(servers)}: say --yes if that is meant")
    if not yes:
        click.confirm(f"start {', '.join(servers)}?", abort=True, err=True)
    found, failures = list_tools(workdir, servers)
    for name, reason in failures.items():
        click.echo(f"{name}: {reason}", err=True)
    for name, listed in found.items():
        click.echo(f"{name}: {len(listed)} tools")
    click.echo(f"written: {workdir / LISTING}", err=True)


# What a sidecar knows, as artifacts that can be asked.


def documents(assignment: Assignment, place: Path) -> dict[str, str]:
    """The documents of a sidecar's context.

    Those that are files are given as they are. What exists only in the sidecar's memory (the issue's text, the listing
    of MCP tools, its snippets) is written into ``place``.

    Args:
        assignment: which sidecar.
        place: a folder for what is no file.

    Returns:
        For each file, how it is called in answers.

    Raises:
        NotFoundError: its type is gone, or it has no documents.
        DeclarationError: a document that its argument names is missing.
    """
    kind = assigned_type(assignment)
    found: dict[str, str] = {}
    for source in kind.context:
        found |= _files(kind, source, assignment) or _made(kind, source, assignment, place)
    if kind.snippets:
        text = "\n".join(f"{name}: {text}" for name, text in sorted(kind.snippets.items()))
        found |= _written(place, "snippets", text)
    if not found:
        raise NotFoundError("context of", assignment.name, "this sidecar has no documents that could be asked")
    return found


def _files(kind: SidecarType, source: str, assignment: Assignment) -> dict[str, str]:
    workdir = Path(assignment.workdir)
    name, _, rest = source.partition(":")
    if name == "own":
        return {str(path): rest for folder in kind.folders if (path := folder / rest).is_file()}
    if name == "files":
        paths = find([rest], workdir, wanted=False)
    elif source == "argument" and kind.argument == "files":
        paths = find([part.strip() for part in assignment.argument.split(",") if part.strip()], workdir, wanted=True)
    else:
        return {}
    return {str(path): _called(path, workdir) for path in paths}


def _called(path: Path, workdir: Path) -> str:
    return path.relative_to(workdir).as_posix() if path.is_relative_to(workdir) else str(path)


def _made(kind: SidecarType, source: str, assignment: Assignment, place: Path) -> dict[str, str]:
    material = gather(replace(kind, context=(source,)), assignment)
    made: dict[str, str] = {}
    for title, text in (*material.documents, *sorted(material.library.items())):
        made |= _written(place, title, text)
    return made


def _written(place: Path, title: str, text: str) -> dict[str, str]:
    path = place / (re.sub(r"[^\w.-]", "_", title)[:80] + ".txt")
    path.write_text(text + "\n", encoding="utf-8")
    return {str(path): title}
