"""Finding a sidecar type and putting its layers together; the nearest wins, field by field.

From far to near: shipped, the town's folder, the town's settings, the rig's folder, the rig's settings, the project's
folder, then whatever the molecule overrides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sidecars.definition.rule_reader import SHIPPED, read_rules
from sidecars.definition.sidecar_type import SidecarType
from sidecars.definition.type_schema import FIELDS
from witness.config.yaml_document import Document, load_yaml
from witness.errors import DeclarationError, NotFoundError, Problem

OWN_FOLDER = Path(".gt") / "sidecars"
_PARTS = ("sidecar.yaml", "prompt.md", "snippets.yaml")


def type_folders(town: Path | None, rig: str, workdir: Path | None) -> list[Path]:
    """The folders in which types are looked for, the farthest first."""
    folders = [SHIPPED]
    if town is not None:
        folders.append(town / OWN_FOLDER)
        if rig:
            folders.append(town / rig / OWN_FOLDER)
    if workdir is not None:
        folders += [place / OWN_FOLDER for place in _project(workdir)]
    return list(dict.fromkeys(folders))


def _project(workdir: Path) -> list[Path]:
    """The folders from the repository's top down to the working directory."""
    above = [workdir, *workdir.parents]
    top = next((at for at, place in enumerate(above) if (place / ".git").exists()), 0)
    return above[top::-1]


def type_names(town: Path | None = None, rig: str = "", workdir: Path | None = None) -> list[str]:
    """Every type that is known from here, in order of their names."""
    names: set[str] = set()
    for folder in type_folders(town, rig, workdir):
        if folder.is_dir():
            names.update(place.name for place in folder.iterdir() if any((place / part).is_file() for part in _PARTS))
    return sorted(names)


def load_type(
    name: str,
    town: Path | None = None,
    rig: str = "",
    workdir: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    own: Path | None = None,
) -> SidecarType:
    """Put a type together from all its layers.

    Args:
        name: the type's name.
        town: the town's root, None outside of any.
        rig: the rig's name.
        workdir: where the agent works; its ``.gt/sidecars`` is the project's layer.
        overrides: fields given by a molecule or by the command line; they beat every file.
        own: one more folder of this very type, nearer than all others.

    Raises:
        NotFoundError: no folder of that name stands anywhere.
        DeclarationError: a layer is wrong; every fault is named with file, line and key.
    """
    folders = [folder / name for folder in type_folders(town, rig, workdir)]
    if own is not None and own.resolve() not in [folder.resolve() for folder in folders]:
        folders.append(own)
    layers = [folder for folder in folders if _is_type(folder)]
    if not layers:
        known = ", ".join(type_names(town, rig, workdir))
        raise NotFoundError("sidecar type", name, f"known here are {known}")
    layers.reverse()
    made = _merge(name, tuple(layers), _documents(folders, town, rig, overrides))
    if problems := _contradictions(made):
        raise DeclarationError(problems)
    return made


def _merge(name: str, layers: tuple[Path, ...], documents: Iterator[Document]) -> SidecarType:
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
    return SidecarType(name=name, snippets=snippets, origins=origins, folders=layers, **merged)


def _is_type(place: Path) -> bool:
    return any((place / part).is_file() for part in _PARTS)


def _documents(
    folders: list[Path], town: Path | None, rig: str, overrides: Mapping[str, Any] | None
) -> Iterator[Document]:
    for place in folders:
        prompt = place / "prompt.md"
        if prompt.is_file():
            try:
                yield Document(str(prompt), {"prompt": prompt.read_text(encoding="utf-8")})
            except (OSError, UnicodeDecodeError) as error:
                raise DeclarationError([Problem(f"cannot be read: {error}", str(prompt))]) from error
        yield load_yaml(place / "sidecar.yaml")
        yield load_yaml(place / "snippets.yaml")
        if town is not None and place.parent == town / OWN_FOLDER:
            yield from _settings(town / "settings" / "witness.yaml", place.name)
        if town is not None and rig and place.parent == town / rig / OWN_FOLDER:
            yield from _settings(town / rig / "settings" / "witness.yaml", place.name)
    yield Document("overrides", dict(overrides or {}))


def _settings(path: Path, name: str) -> Iterator[Document]:
    document = load_yaml(path)
    types = document.values.get("types")
    own = types.get(name) if isinstance(types, dict) else None
    if isinstance(own, dict):
        prefix = f"types.{name}."
        lines = {key[len(prefix) :]: line for key, line in document.lines.items() if key.startswith(prefix)}
        yield Document(str(path), own, lines)


def _fields(document: Document, problems: list[Problem]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in document.values.items():
        if key not in FIELDS:
            problems.append(document.problem(f"unknown key; known are {', '.join(FIELDS)}", key))
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
