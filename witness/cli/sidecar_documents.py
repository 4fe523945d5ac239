"""What a sidecar knows, as artifacts that can be asked."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from sidecars.observer.context.files import find
from sidecars.observer.context.gather import gather
from sidecars.type_reader.sidecar_type import SidecarType
from sidecars.type_reader.type_loader import assigned_type
from witness.assignment import Assignment
from witness.errors import NotFoundError


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
