"""A sidecar type from its definition: the layers that count, field by field, the nearest last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sidecars.type_reader.rule_reader import read_rules
from sidecars.type_reader.sidecar_type import SidecarType
from sidecars.type_reader.type_schema import FIELDS
from witness.assignment import Assignment
from witness.config.yaml_document import Document
from witness.errors import DeclarationError, Problem, UsageError, WitnessError
from witness.trust import Definition, resolve


def load_type(
    name: str,
    town: Path | None = None,
    rig: str = "",
    workdir: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    own: Path | None = None,
    *,
    believe: bool = False,
) -> SidecarType:
    """Find a type and read it; the arguments are those of ``witness.trust.resolve``.

    Raises:
        NotFoundError: no folder of that name stands anywhere.
        DeclarationError: a layer is wrong; every fault is named with file, line and key.
    """
    return read_type(resolve(name, town, rig, workdir, overrides=overrides, own=own, believe=believe))


def assigned_type(assignment: Assignment) -> SidecarType:
    """The type that a sidecar was given when its polecat was spawned; one without looks for it now.

    Raises:
        NotFoundError, DeclarationError: as ``load_type``.
        UsageError: what it was given is no definition.
    """
    if not assignment.definition:
        town = Path(assignment.town) if assignment.town else None
        workdir = Path(assignment.workdir)
        return load_type(assignment.type, town, assignment.group.rig, workdir, assignment.overrides)
    try:
        return read_type(Definition.from_json(assignment.definition))
    except ValueError as error:
        raise UsageError(f"the assignment of {assignment.name}: {error}") from error


def changed_since(assignment: Assignment) -> str:
    """What has become of the files since the definition was fixed, in one line; empty when it is the same."""
    if not assignment.definition:
        return ""
    fixed = Definition.from_json(assignment.definition)
    town = Path(assignment.town) if assignment.town else None
    try:
        now = resolve(assignment.type, town, assignment.group.rig, Path(assignment.workdir))
        if now.digest == fixed.digest and now.withheld == fixed.withheld:
            return ""
        before, after = map(_inputs, (fixed, now))
        paths = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
        what = ", ".join(paths) or "; ".join(now.withheld)
    except WitnessError as error:
        what = " ".join(str(error).split())
    return f"its type has changed since the polecat was spawned, and what was fixed then stays: {what}"


def _inputs(definition: Definition) -> dict[str, object]:
    """Everything that a definition was made of, by the name that people know it by."""
    return {
        **{each.path: each for each in definition.documents},
        **{f"own:{name}": text for name, text in definition.files.items()},
        **definition.programs,
    }


def read_type(definition: Definition) -> SidecarType:
    """The type that a definition describes.

    Raises:
        DeclarationError: it is wrong; every fault is named with file, line and key.
    """
    made = _merge(definition, definition.documents)
    if problems := _contradictions(made):
        raise DeclarationError(problems)
    return made


def _merge(definition: Definition, documents: Iterable[Document]) -> SidecarType:
    merged: dict[str, Any] = {}
    snippets: dict[str, str] = {}
    origins: dict[str, str] = {}
    problems: list[Problem] = []
    for document in documents:
        if document.path.endswith("snippets.yaml"):
            found = _snippets(document, problems)
            snippets.update(found)
            origins.update({f"snippets.{key}": f"{document.path}:{document.lines.get(key, 0)}" for key in found})
            continue
        for key, value in _fields(document, problems).items():
            merged[key] = value
            origins[key] = f"{document.path}:{line}" if (line := document.lines.get(key, 0)) else document.path
    if problems:
        raise DeclarationError(problems)
    return SidecarType(
        name=definition.name,
        snippets=snippets,
        origins=origins,
        folders=tuple(map(Path, definition.folders)),
        files=definition.files,
        programs=definition.programs,
        withheld=definition.withheld,
        **merged,
    )


def _fields(document: Document, problems: list[Problem]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in document.values.items():
        if key not in FIELDS:
            problems.append(document.unknown(key, FIELDS))
            continue
        try:
            found[key] = read_rules(document, value, problems) if key == "rules" else FIELDS[key].convert(value)
        except ValueError as error:
            problems.append(document.problem(str(error), key))
    return found


def _snippets(document: Document, problems: list[Problem]) -> dict[str, str]:
    found = {}
    for key, value in document.values.items():
        if isinstance(value, str) and value.strip():
            found[key] = " ".join(value.split())
        else:
            problems.append(document.problem("a snippet is one or two sentences of text", key))
    return found


def _contradictions(made: SidecarType) -> list[Problem]:
    """What is wrong between fields that are right by themselves."""
    problems = []

    def wrong(message: str, key: str) -> None:
        file, _, line = made.origins.get(key.split(".", maxsplit=1)[0], made.name).rpartition(":")
        problems.append(Problem(message, file or line, int(line) if file and line.isdigit() else 0, key))

    for index, rule in enumerate(made.rules):
        if rule.snippet and rule.snippet not in made.snippets:
            known = ", ".join(made.snippets) or "none"
            wrong(f"rule {rule.name!r} names no snippet of snippets.yaml (known: {known})", f"rules.{index}.snippet")
    if "rules" in made.judge and not made.rules:
        wrong(f"judge {made.judge!r} needs at least one rule", "judge")
    if made.judge == "command" and not made.command:
        wrong("judge 'command' needs the key command", "judge")
    if made.asks_model and not made.prompt.strip():
        wrong(f"judge {made.judge!r} needs prompt.md", "judge")
    return problems
