"""``specs:docs/api-spec.md,tools,scope``: which sidecars a polecat gets, as one string."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from witness.config.town import Town
from witness.declare.source import Source
from witness.errors import DeclarationError, NotFoundError, Problem, UsageError
from witness.files import files_matching, is_glob
from witness.names import check_name
from witness.trust import Definition, resolve

ACCEPTED_FORM = "write type[:argument], separated by commas, as in specs:docs/api-spec.md,tools,scope"


@dataclass(frozen=True, slots=True)
class SidecarSpec:
    """One sidecar that is asked for.

    Args:
        name: unique within the group; the type, with ``-2`` and so on behind it for a further one.
        type: the sidecar type.
        argument: what followed the colon, empty when nothing did.
    """

    name: str
    type: str
    argument: str = ""


def _split(text: str) -> Iterator[tuple[str, str | None]]:
    """The entries as (type, argument); the argument is None without a colon. ``\\,`` ``\\:`` ``\\\\`` are literal."""
    parts: list[list[str]] = [[]]
    position = 0
    while position < len(text):
        mark = text[position]
        if mark == "\\" and text[position + 1 : position + 2] in (",", ":", "\\"):
            parts[-1].append(text[position + 1])
            position += 2
            continue
        if mark == ",":
            yield _entry(parts)
            parts = [[]]
        elif mark == ":" and len(parts) == 1:  # only the first colon ends the type
            parts.append([])
        else:
            parts[-1].append(mark)
        position += 1
    yield _entry(parts)


def _entry(parts: list[list[str]]) -> tuple[str, str | None]:
    kind = "".join(parts[0]).strip()
    return kind, "".join(parts[1]).strip() if len(parts) == 2 else None


def _free_name(kind: str, taken: set[str]) -> str:
    name, number = kind, 1
    while name in taken:
        number += 1
        name = f"{kind}-{number}"
    return name


def read_entries(text: str, source: Source) -> tuple[tuple[SidecarSpec, ...], list[Problem]]:
    """Read a spec string as far as it can be read.

    Returns:
        (the specs that stand, the faults of the others).
    """
    specs: list[SidecarSpec] = []
    problems: list[Problem] = []
    if not text.strip():
        return (), []
    for kind, argument in _split(text):
        if not kind:
            wrong = "an entry without a type" if argument else "an empty entry (two commas, or one at an end)"
            problems.append(source.problem(f"{wrong}: {ACCEPTED_FORM}"))
            continue
        try:
            check_name("sidecar type", kind)
        except UsageError as error:
            problems.append(source.problem(f"{error}; {ACCEPTED_FORM}"))
            continue
        if argument == "":
            problems.append(source.problem(f"{kind}: nothing follows the colon: write {kind} or {kind}:ARGUMENT"))
            continue
        if any(spec.type == kind and spec.argument == (argument or "") for spec in specs):
            written = f"{kind}:{argument}" if argument else kind
            problems.append(source.problem(f"{written} is declared twice: once is enough"))
            continue
        specs.append(SidecarSpec(_free_name(kind, {spec.name for spec in specs}), kind, argument or ""))
    return tuple(specs), problems


def parse_specs(text: str, source: str | Source) -> tuple[SidecarSpec, ...]:
    """Read a spec string.

    Args:
        text: ``type[:argument]`` by comma; ``\\,`` and ``\\:`` are literal. Empty means no sidecars.
        source: where it was written; errors name it.

    Raises:
        DeclarationError: an entry is empty, has no type, a wrong name, or is there twice. Holds all such faults.
    """
    specs, problems = read_entries(text, source if isinstance(source, Source) else Source(source))
    if problems:
        raise DeclarationError(problems)
    return specs


def format_specs(specs: tuple[SidecarSpec, ...]) -> str:
    """The string that ``parse_specs`` reads back as ``specs``."""

    def literal(text: str) -> str:
        return text.replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")

    return ",".join(spec.type + (f":{literal(spec.argument)}" if spec.argument else "") for spec in specs)


# Which sidecars a spec means: the definition of each type, and whether the files that it names are there.


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
        if not _readable(path) and not (is_glob(part) and any(map(_readable, files_matching(part, workdir)))):
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
