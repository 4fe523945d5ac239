"""Which sidecars a spec means: the definition of each type, and whether the files that it names are there."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from witness.config.town import Town
from witness.declare.sidecar_spec import SidecarSpec, read_entries
from witness.declare.source import Source
from witness.errors import DeclarationError, NotFoundError
from witness.trust import Definition, resolve


@dataclass(frozen=True, slots=True)
class ResolvedSidecars:
    """What a spec string means here and now.

    Args:
        specs: the sidecars.
        definitions: the definition of each type among them, by name.
    """

    specs: tuple[SidecarSpec, ...] = ()
    definitions: Mapping[str, Definition] = field(default_factory=dict)

    @property
    def withheld(self) -> tuple[str, ...]:
        """One line for each declaration of the project that does not count."""
        return tuple(line for each in self.definitions.values() for line in each.withheld)


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
) -> ResolvedSidecars:
    """Read a spec string, put together what declares its types, and check that every file it names exists.

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
    definitions: dict[str, Definition] = {}
    for spec in specs:
        try:
            definition = definitions.get(spec.type) or resolve(spec.type, town.root if town else None, rig, workdir)
        except NotFoundError as error:
            problems.append(place.problem(str(error)))
            continue
        except DeclarationError as error:
            problems += [problem for problem in error.problems if problem not in problems]
            continue
        definitions[spec.type] = definition
        kind = definition.fields().get("argument")
        problems += map(place.problem, _argument_faults(spec, str(kind or ""), workdir))
    if problems:
        raise DeclarationError(problems)
    return ResolvedSidecars(specs, definitions)


def _argument_faults(spec: SidecarSpec, kind: str, workdir: Path) -> list[str]:
    if kind == "none" and spec.argument:
        return [f"{spec.type} takes no argument, got {spec.argument!r}"]
    if kind == "files":
        return [f"{spec.type}: no file {part!r} under {workdir}" for part in missing_files(spec.argument, workdir)]
    return []
