"""Which sidecar types exist, and whether the files that a spec names are there. What they mean, sidecars know."""

from __future__ import annotations

import difflib
import glob
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from witness.config.town import Town
from witness.config.yaml_document import load_yaml
from witness.declare.sidecar_spec import SidecarSpec, read_entries
from witness.declare.source import Source
from witness.errors import DeclarationError, NotFoundError

TYPE_FILE = "sidecar.yaml"
# Where towns, rigs and projects keep types of their own, or override fields of shipped ones.
OWN_FOLDER = Path(".gt") / "sidecars"


def shipped_types() -> Path:
    """The folder of the types that ride along; found without importing a line of the sidecars' code."""
    spec = importlib.util.find_spec("sidecars")
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise NotFoundError("package", "sidecars", "reinstall gt-witness")
    return Path(places[0]) / "types"


def type_folders(town: Town | None, rig: str = "", workdir: Path | None = None) -> list[Path]:
    """The folders that hold types, nearest first: project, rig, town, shipped."""
    folders: list[Path] = []
    if workdir is not None:
        folders += [place / OWN_FOLDER for place in _project(workdir)]
    if town is not None:
        if rig:
            folders.append(town.root / rig / OWN_FOLDER)
        folders.append(town.root / OWN_FOLDER)
    folders.append(shipped_types())
    return list(dict.fromkeys(folders))


def _project(workdir: Path) -> Iterator[Path]:
    """The working directory and what is above it, up to the repository's top."""
    above = [workdir, *workdir.parents]
    top = next((at for at, place in enumerate(above) if (place / ".git").exists()), 0)
    yield from above[: top + 1]


def find_type(name: str, town: Town | None = None, rig: str = "", workdir: Path | None = None) -> Path:
    """The nearest folder of a sidecar type.

    Raises:
        NotFoundError: no such type; the message names those that exist, and a near one first.
    """
    folders = type_folders(town, rig, workdir)
    for folder in folders:
        if (folder / name / TYPE_FILE).is_file():
            return folder / name
    known = sorted({path.parent.name for folder in folders for path in folder.glob(f"*/{TYPE_FILE}")})
    near = difflib.get_close_matches(name, known, n=1)
    hint = (f"did you mean {near[0]}? " if near else "") + f"known types: {', '.join(known) or 'none'}"
    raise NotFoundError("sidecar type", name, hint)


def _argument_kind(name: str, folders: list[Path]) -> str:
    """What the type says its argument is (``files``, ``text``, ``none``); empty when it does not say."""
    for folder in folders:
        try:
            document = load_yaml(folder / name / TYPE_FILE)
        except DeclarationError:
            continue  # the sidecars' own linter names file and line
        if isinstance(kind := document.values.get("argument"), str):
            return kind
    return ""


def argument_files(argument: str) -> list[str]:
    """The files and globs that an argument names: one, or several by comma (``specs:a.md\\,b.md``)."""
    return [part for part in (each.strip() for each in argument.split(",")) if part]


def missing_files(argument: str, workdir: Path) -> list[str]:
    """Those parts of an argument that name no file or folder that can be read, seen from ``workdir``."""
    missing = []
    for part in argument_files(argument):
        path = workdir / Path(part).expanduser()
        # An absolute pattern is no business of Path.glob's.
        if not _readable(path) and not any(map(_readable, map(Path, glob.iglob(str(path), recursive=True)))):  # noqa: PTH207
            missing.append(part)
    return missing


def _readable(path: Path) -> bool:
    # No device, no FIFO, no link that leads nowhere or to itself: a sidecar would wait for it, or fail at its start.
    return (path.is_file() or path.is_dir()) and os.access(path, os.R_OK)


def resolve_specs(
    text: str, source: str | Source, *, town: Town | None = None, rig: str = "", workdir: Path
) -> tuple[SidecarSpec, ...]:
    """Read a spec string and check that every type and every file it names exists.

    Args:
        text: as for ``parse_specs``.
        source: where it was written; errors name it.
        town, rig: where types of one's own are looked for.
        workdir: the polecat's working directory; the files of an argument are read from there.

    Raises:
        DeclarationError: all faults at once, those of the text and those of the types and files.
    """
    place = source if isinstance(source, Source) else Source(source)
    specs, problems = read_entries(text, place)
    folders = type_folders(town, rig, workdir)
    for spec in specs:
        try:
            find_type(spec.type, town, rig, workdir)
        except NotFoundError as error:
            problems.append(place.problem(str(error)))
            continue
        problems += map(place.problem, _argument_faults(spec, _argument_kind(spec.type, folders), workdir))
    if problems:
        raise DeclarationError(problems)
    return specs


def _argument_faults(spec: SidecarSpec, kind: str, workdir: Path) -> list[str]:
    if kind == "none" and spec.argument:
        return [f"{spec.type} takes no argument, got {spec.argument!r}"]
    if kind == "files":
        return [f"{spec.type}: no file {part!r} under {workdir}" for part in missing_files(spec.argument, workdir)]
    return []
