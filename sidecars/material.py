"""What a sidecar knows besides what it sees: its context, gathered once when it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sidecars.sidecar_type import SidecarType
from sidecars.yamlfile import parse_yaml
from witness.assignment import Assignment
from witness.errors import DeclarationError, Problem

_LONGEST_FILE = 200_000


@dataclass(frozen=True, slots=True)
class Material:
    """A sidecar's context.

    Args:
        sets: globs by set name, as rules name them with ``@``.
        documents: title and text of what a model is given.
        blocks: types of the blocks that the polecat's prompt holds; None when its prompt is not known.
    """

    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    documents: tuple[tuple[str, str], ...] = ()
    blocks: frozenset[str] | None = None


def gather(kind: SidecarType, assignment: Assignment) -> Material:
    """Gather what the type's ``context`` names.

    Raises:
        DeclarationError: a file that the argument names is missing or wrong.
    """
    material = Material()
    for source in kind.context:
        if source == "issue":
            material = _add_issue(material, assignment)
    return material


# -- the issue ------------------------------------------------------------------------------------------------------


def split_front_matter(text: str, path: str) -> tuple[dict[str, tuple[str, ...]], str]:
    """Split an issue into the path lists of its front matter and its body.

    Args:
        text: the issue.
        path: named in errors.

    Returns:
        (``{"files": …, "not": …}`` as far as given, the body).

    Raises:
        DeclarationError: the front matter is not YAML, or one of the two is not a list of globs.
    """
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    if not lines or lines[0].strip() != "---":
        return {}, text
    end = next((at for at, line in enumerate(lines[1:], 1) if line.strip() in ("---", "...")), 0)
    if not end:
        return {}, text
    document = parse_yaml("".join(lines[1:end]), path, first_line=2)
    sets = {}
    for key in ("files", "not"):
        value = document.values.get(key)
        if value is None:
            continue
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",")]
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise DeclarationError([document.problem("must be a list of paths or globs", key)])
        sets[key] = tuple(each for each in value if each)
    return sets, "".join(lines[end + 1 :])


def _add_issue(material: Material, assignment: Assignment) -> Material:
    text, path = assignment.task, "--task"
    sets: dict[str, tuple[str, ...]] = {}
    argument = assignment.argument
    if argument and ("!" in argument or any(sign in argument for sign in "*?[")):
        globs = [part.strip() for part in argument.split(",") if part.strip()]
        sets["files"] = tuple(glob for glob in globs if not glob.startswith("!"))
        sets["not"] = tuple(glob[1:] for glob in globs if glob.startswith("!"))
    elif argument:
        path = str(Path(assignment.workdir, argument))
        text = read_text(Path(path))
    found, body = split_front_matter(text, path)
    for name, globs_found in found.items():
        sets.setdefault(name, globs_found)
    for name in ("files", "not"):
        given = assignment.variables.get(f"scope_{name}", "")
        if given.strip():
            sets[name] = tuple(part.strip() for part in given.split(",") if part.strip())
    documents = material.documents + ((("issue", body.strip()),) if body.strip() else ())
    return replace(material, sets={**material.sets, **sets}, documents=documents)


def read_text(path: Path) -> str:
    """Read a file of the project, at most 200,000 bytes of it.

    Raises:
        DeclarationError: it is missing, no regular file, or cannot be read.
    """
    try:
        if not path.is_file():
            raise DeclarationError([Problem("no such file", str(path))])
        with path.open("rb") as file:
            return file.read(_LONGEST_FILE).decode("utf-8", "replace")
    except OSError as error:
        raise DeclarationError([Problem(f"cannot be read: {error}", str(path))]) from error
