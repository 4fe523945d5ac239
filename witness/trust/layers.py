"""Where the declarations of sidecar types stand, and whose each is. Nobody else looks for them."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from witness.config.yaml_document import BYTES, Document, parse_yaml
from witness.errors import DeclarationError, NotFoundError, Problem
from witness.files import project_top, read_project

# Where towns, rigs and projects keep types of their own, or override fields of shipped ones.
OWN_FOLDER = Path(".gt") / "sidecars"
PARTS = ("prompt.md", "sidecar.yaml", "snippets.yaml")
_SETTINGS = Path("settings") / "witness.yaml"


@dataclass(frozen=True, slots=True)
class Layer:
    """One place that says something of a type.

    Args:
        subject: the type's folder, or the settings file.
        project: the top of the project that it came with; None where it is the user's own.
        documents: what it says, by field; its prompt and its snippets are documents of their own.
        content: SHA-256 of each of its files by name, as they were read.
    """

    subject: Path
    project: Path | None
    documents: tuple[Document, ...]
    content: Mapping[str, str]

    @property
    def is_folder(self) -> bool:
        return self.subject.name != _SETTINGS.name

    @property
    def fields(self) -> Mapping[str, object]:
        """All its fields but the snippets."""
        return {key: value for each in self.documents if not is_snippets(each) for key, value in each.values.items()}


def is_snippets(document: Document) -> bool:
    """Whether a document holds snippets rather than fields."""
    return document.path.endswith(f"/{PARTS[2]}")


@cache
def shipped_types() -> Path:
    """The folder of the types that ride along; found without importing a line of the sidecars' code."""
    spec = importlib.util.find_spec("sidecars")
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise NotFoundError("package", "sidecars", "reinstall gt-witness")
    return Path(places[0]).resolve() / "types"


def type_names(town: Path | None = None, rig: str = "", workdir: Path | None = None) -> list[str]:
    """Every type that is known from here, in order of their names."""
    names: set[str] = set()
    for folder, _ in _folders(town, rig, workdir):
        if folder.is_dir():
            names.update(place.name for place in folder.iterdir() if is_type(place))
    return sorted(names)


def is_type(folder: Path) -> bool:
    """Whether a folder says anything of a type."""
    return any((folder / part).is_file() for part in PARTS)


def unknown_type(name: str, town: Path | None, rig: str, workdir: Path | None) -> NotFoundError:
    """The error for a type that stands nowhere: it names those that do, and a near one first."""
    known = type_names(town, rig, workdir)
    return NotFoundError(
        "sidecar type",
        name,
        f"known types: {', '.join(known) or 'none'}; a project's own stand in .gt/sidecars/",
        known,
    )


def layers_of(
    name: str, town: Path | None = None, rig: str = "", workdir: Path | None = None, own: Path | None = None
) -> list[Layer]:
    """What is said of a type, the farthest first.

    Args:
        name: the type's name.
        town: the town's root, None outside of any.
        rig: the rig's name.
        workdir: where the agent works; its ``.gt/sidecars`` and those above it in its repository are the project's.
        own: one more folder of this very type, nearer than all others.

    Raises:
        DeclarationError: a file cannot be read; it is named with its line.
    """
    top = project_top(workdir) if workdir is not None else None
    found: list[Layer] = []
    for folder, project in _folders(town, rig, workdir):
        if is_type(folder / name):
            found.append(_folder_layer(folder / name, project))
        for root in _roots(town, rig):
            holder = held_by_project(root, top)
            if folder == root / OWN_FOLDER and (said := _settings_layer(root / _SETTINGS, name, holder)):
                found.append(said)
    if own is not None and own.resolve() not in [layer.subject.resolve() for layer in found]:
        found.append(_folder_layer(own, top))
    return found


def _roots(town: Path | None, rig: str) -> list[Path]:
    """The folders that are the user's: the town's and the rig's."""
    return [] if town is None else [town, town / rig] if rig else [town]


def settings_are_ours(root: Path, workdir: Path | None) -> bool:
    """Whether a town's or a rig's settings are the user's, and not a part of the project that is worked on."""
    return workdir is None or held_by_project(root, project_top(workdir)) is None


def held_by_project(root: Path, top: Path | None) -> Path | None:
    """The project, where what stands in ``root`` is a part of it: a town, or a rig, within the repository."""
    if top is None or not (top / ".git").exists() or not root.resolve().is_relative_to(top.resolve()):
        return None
    return top


def _folders(town: Path | None, rig: str, workdir: Path | None) -> list[tuple[Path, Path | None]]:
    """The folders that hold types, the farthest first, each with the project that it came with."""
    top = project_top(workdir) if workdir is not None else None
    folders: dict[Path, Path | None] = {shipped_types(): None}
    for root in _roots(town, rig):
        folders[root / OWN_FOLDER] = held_by_project(root, top)
    if workdir is not None and top is not None:
        places = [workdir, *workdir.parents]
        for place in reversed(places[: places.index(top) + 1]):
            folders.setdefault(place / OWN_FOLDER, top)
    return list(folders.items())


def _folder_layer(folder: Path, project: Path | None) -> Layer:
    documents, content = [], {}
    for name in PARTS:
        path = folder / name
        if (text := _read(path)) is None:
            continue
        content[name] = _digest(text)
        document = Document(str(path), {"prompt": text}) if path.suffix == ".md" else parse_yaml(text, str(path))
        if document.values:
            documents.append(document)
    return Layer(folder, project, tuple(documents), content)


def _settings_layer(path: Path, name: str, project: Path | None) -> Layer | None:
    if (text := _read(path)) is None:
        return None
    document = parse_yaml(text, str(path))
    types = document.values.get("types")
    own = types.get(name) if isinstance(types, dict) else None
    if not isinstance(own, dict):
        return None
    prefix = f"types.{name}."
    lines = {key[len(prefix) :]: line for key, line in document.lines.items() if key.startswith(prefix)}
    return Layer(path, project, (Document(str(path), own, lines),), {path.name: _digest(text)})


def _read(path: Path) -> str | None:
    """A file's text; None where there is none."""
    try:
        return read_project(path, BYTES).decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or error
        raise DeclarationError([Problem(f"cannot be read: {what}", str(path))]) from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
