"""A type's declaration, put together from the layers that count, as it is journaled and given to its sidecar."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from witness.config.settings import load_settings
from witness.config.yaml_document import BYTES, Document
from witness.errors import DeclarationError, Problem
from witness.files import open_regular, read_text
from witness.trust.asking import Asking
from witness.trust.layers import (
    OWN_FOLDER,
    PARTS,
    Layer,
    is_snippets,
    is_type,
    layers_of,
    settings_are_ours,
    unknown_type,
)
from witness.trust.pins import Pins
from witness.trust.requests import asked_for

_LARGEST_PROGRAM = 256 << 20


@dataclass(frozen=True, slots=True)
class Definition:
    """What a sidecar of one type is, whatever happens to the files from now on.

    Args:
        name: the type's name.
        documents: what the layers that count say, the farthest first.
        folders: the folders among them, the nearest first.
        files: files of those folders that its context names (``own:FILE``), by name.
        programs: files of the project that its command names, and the SHA-256 of each when it was trusted.
        withheld: one line for each layer that does not count.
    """

    name: str
    documents: tuple[Document, ...] = ()
    folders: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, str] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 of all that counts."""
        return digest_of([self.name, [asdict(each) for each in self.documents], self.files, self.programs])

    def fields(self) -> dict[str, Any]:
        """Its fields as they are written, the nearest layer's value each; the snippets are no field."""
        return _fields(self.documents)

    def to_json(self) -> str:
        return _json(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Definition:
        """Read what ``to_json`` wrote.

        Raises:
            ValueError: it is no definition.
        """
        try:
            raw = json.loads(text)
            documents = tuple(Document(**each) for each in raw.pop("documents"))
            folders, withheld = tuple(raw.pop("folders")), tuple(raw.pop("withheld"))
            return cls(documents=documents, folders=folders, withheld=withheld, **raw)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"not a definition: {error}") from error


@dataclass(frozen=True, slots=True)
class Judged(Asking):
    """A layer of a type that was judged: of ``asks`` by what it says beyond those that count below it."""

    layer: Layer


def resolve(
    name: str,
    town: Path | None = None,
    rig: str = "",
    workdir: Path | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    own: Path | None = None,
    believe: bool = False,
) -> Definition:
    """Put a type's declaration together from the layers that count.

    Args:
        name, town, rig, workdir, own: as ``layers_of``.
        overrides: fields given by the user, which beat every file.
        believe: count every layer, for a look at what a project declares. Nothing of the result may be run.

    Raises:
        NotFoundError: no folder of that name stands anywhere.
        DeclarationError: a file cannot be read, or all that declares the type is a project's and is not trusted.
    """
    counting: list[Layer] = []
    programs: dict[str, str] = {}
    withheld: list[str] = []
    for each in examine(name, town, rig, workdir, own, believe=believe):
        if each.counts:
            counting.append(each.layer)
            programs |= each.programs
        else:
            withheld.append(each.withheld())
    folders = [layer.subject for layer in counting if layer.is_folder]
    if not folders:
        if withheld:
            raise DeclarationError([Problem(line) for line in withheld])
        raise unknown_type(name, town, rig, workdir)
    folders.reverse()
    documents = [document for layer in counting for document in layer.documents]
    if overrides:
        documents.append(Document("overrides", dict(overrides)))
    return Definition(
        name,
        tuple(documents),
        tuple(map(str, folders)),
        _own_files(_fields(documents).get("context"), folders),
        programs,
        tuple(withheld),
    )


def examine(
    name: str,
    town: Path | None = None,
    rig: str = "",
    workdir: Path | None = None,
    own: Path | None = None,
    *,
    believe: bool = False,
) -> list[Judged]:
    """Every layer of a type, the farthest first, each judged by what it asks for beyond those that count below it.

    Raises:
        DeclarationError: a file cannot be read.
    """
    judged: list[Judged] = []
    merged: dict[str, Any] = {}
    pins = Pins()
    for layer in layers_of(name, town, rig, workdir, own):
        if layer.project is None:
            each = Judged(layer.subject, f"type {name}", {}, "", {}, True, layer)
        else:
            asks = asked_for(layer.fields, merged)
            words = layer.fields.get("command") if "command" in asks else []
            listed = words if isinstance(words, list) else [words]
            programs = programs_of(listed, layer.project, workdir or layer.project)
            digest = digest_of([name, layer.content, programs])
            counts = believe or not asks or allowed(layer.project, town, rig, workdir)
            counts = counts or pins.hold(layer.subject, digest)
            each = Judged(layer.subject, f"type {name}", asks, digest, programs, counts, layer)
        judged.append(each)
        if each.counts:
            merged |= layer.fields
    return judged


def withheld(name: str, town: Path | None = None, rig: str = "", workdir: Path | None = None) -> list[str]:
    """One line for each layer of a type that does not count.

    Raises:
        DeclarationError: a file cannot be read.
    """
    return [each.withheld() for each in examine(name, town, rig, workdir) if not each.counts]


def allowed(project: Path, town: Path | None, rig: str, workdir: Path | None) -> bool:
    """Whether the town's own settings allow the project; settings that came with the project allow nothing."""
    if town is None or not settings_are_ours(town, workdir):
        return False
    ours = rig if rig and settings_are_ours(town / rig, workdir) else ""
    top = project.resolve()
    return any(
        top.is_relative_to((town / os.path.expanduser(each)).resolve())  # noqa: PTH111
        for each in load_settings(town, ours).trust
    )


def _fields(documents: Iterable[Document]) -> dict[str, Any]:
    return {key: value for each in documents if not is_snippets(each) for key, value in each.values.items()}


def _own_files(context: Any, folders: list[Path]) -> dict[str, str]:
    """The files of the type's own folders that its context names, each from the nearest folder that has it."""
    found = {}
    for source in context if isinstance(context, list) else [context]:
        kind, _, name = source.partition(":") if isinstance(source, str) else ("", "", "")
        if kind != "own" or not name:
            continue
        for folder in folders:
            try:
                found[name] = read_text(folder / name, BYTES, below=folder, owners=())
                break
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                raise DeclarationError([Problem(f"cannot be read: {error}", str(folder / PARTS[1]), 0, "context")]) from error  # noqa: E501 # fmt: skip
    return found


def programs_of(words: Iterable[Any], project: Path, workdir: Path) -> dict[str, str]:
    """The files of the project that a command's words name, by their paths, with their digests."""
    top, found = project.resolve(), {}
    for word in words:
        if not isinstance(word, str) or not word:
            continue
        path = (workdir / word).resolve()
        if path.is_file() and path.is_relative_to(top):
            found[str(path)] = file_digest(path)
    return found


def file_digest(path: Path) -> str:
    """SHA-256 of a regular file.

    Raises:
        DeclarationError: it cannot be read.
    """
    try:
        with os.fdopen(open_regular(path, owners=()), "rb") as file:
            if os.fstat(file.fileno()).st_size > _LARGEST_PROGRAM:
                raise DeclarationError([Problem("is too large for a program that is to be trusted", str(path))])
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DeclarationError([Problem(f"cannot be read: {error}", str(path))]) from error


def digest_of(value: Any) -> str:
    """SHA-256 of a value's JSON form."""
    return hashlib.sha256(_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def _json(value: Any) -> str:
    # A date, a number without an end and the like are what they are written as; the sidecar says what is wrong there.
    return json.dumps(value, sort_keys=True, default=str)


def subjects_at(place: Path) -> list[Path]:
    """The type folders and settings that a path means: itself, or all that a project or a folder of types holds."""
    place = Path(os.path.abspath(place))  # noqa: PTH100 - links stay as the user wrote them
    if place.is_file():
        return [place.parent] if place.name in PARTS else [place]
    if is_type(place):
        return [place]
    found: list[Path] = []
    for folder in (place / OWN_FOLDER, place / OWN_FOLDER.name, *([place] if place.name == OWN_FOLDER.name else [])):
        if folder.is_dir():
            found += sorted(each for each in folder.iterdir() if is_type(each))
    settings = place / "settings" / "witness.yaml"
    return [*found, *([settings] if settings.is_file() else [])]
