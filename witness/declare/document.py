"""A formula file: where it is looked for by name, and its keys and values with the line of each."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness.config.resources import molecules_dir
from witness.config.town import Town
from witness.declare.source import Place, Source, dotted, json_lines, line_of, toml_lines
from witness.errors import DeclarationError, NotFoundError, Problem
from witness.files import parse_toml, read_project

# The largest formula that Gas Town ships has 60 KB; past this it is some other file, named by mistake.
MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Document:
    """What a formula file holds.

    Args:
        path: the file.
        raw: its keys and values, unchecked.
        lines: the line of each place in it.
        json: whether it is a JSON formula; there a variable must be an object.
    """

    path: Path
    raw: Mapping[str, Any]
    lines: Mapping[Place, int]
    json: bool = False

    def source(self, *place: str | int) -> Source:
        """Where ``place`` stands, as ``source("vars", "sidecars")``."""
        return Source(str(self.path), line_of(self.lines, place), dotted(place))


def read_document(path: Path) -> Document:
    """Read a TOML or JSON formula; a byte order mark and CRLF line ends are accepted.

    Raises:
        DeclarationError: it cannot be read, is neither TOML nor JSON, or holds no table.
    """
    text = _read_text(path)
    if path.suffix == ".json":
        raw, lines = _load_json(path, text), json_lines
    else:
        raw, lines = _load_toml(path, text), toml_lines
    if not isinstance(raw, dict):
        raise DeclarationError([Problem("not a formula: a JSON object is expected", str(path), 1)])
    return Document(path, raw, lines(text), path.suffix == ".json")


def _read_text(path: Path) -> str:
    try:
        data = read_project(path, MAX_BYTES)
    except OSError as error:
        raise DeclarationError([Problem(f"cannot be read: {error.strerror}", str(path))]) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DeclarationError([Problem("not UTF-8 text: save the file as UTF-8", str(path), line)]) from error


def _load_toml(path: Path, text: str) -> Any:
    try:
        return parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+)", str(error))
        line = int(found.group(1)) if found else text.count("\n") + 1
        reason = str(error).partition(" (at ")[0]
        raise DeclarationError([Problem(f"not TOML: {reason}", str(path), line)]) from error
    except ValueError as error:
        raise DeclarationError([Problem(f"not TOML: {error}", str(path))]) from error


def _load_json(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DeclarationError([Problem(f"not JSON: {error.msg}", str(path), error.lineno)]) from error
    except RecursionError as error:
        raise DeclarationError([Problem("not JSON: nested too deeply", str(path))]) from error
    except ValueError as error:
        raise DeclarationError([Problem("not JSON: a number of too many digits", str(path))]) from error


# Where a formula of a given name is looked for, and in which order.

FOLDER = Path(".beads") / "formulas"
# The first that exists wins. `.toml` alone is how our own examples are named.
ENDINGS = (".formula.toml", ".formula.json", ".toml")


def formula_folders(town: Town | None, workdir: Path | None, *, shipped: bool = True) -> list[Path]:
    """The folders that formulas are read from, first one first.

    The working directory's and its repository's (worktrees lead to their rig's by ``.beads/redirect``), the town's, the
    user's, then the shipped ones.
    """
    folders: list[Path] = []
    if workdir is not None:
        for place in _up_to_repository(workdir):
            folders += [place / FOLDER, *_redirected(place)]
    if town is not None:
        folders.append(town.root / FOLDER)
    folders.append(Path(os.environ.get("HOME") or Path.home()) / FOLDER)
    if shipped:
        folders.append(molecules_dir())
    return list(dict.fromkeys(folders))


def _up_to_repository(workdir: Path) -> Iterator[Path]:
    yield workdir
    for place in (workdir, *workdir.parents):
        if (place / ".git").exists():
            yield place
            return


def _redirected(place: Path) -> Iterator[Path]:
    """The formulas' folder that a worktree shares with its rig."""
    try:
        target = read_project(place / ".beads" / "redirect", 4096).decode().strip()
    except (OSError, UnicodeDecodeError):
        return
    if target and "\0" not in target:
        yield place / target / FOLDER.name


def find_formula(name: str, town: Town | None = None, workdir: Path | None = None, *, shipped: bool = True) -> Path:
    """The file of a formula: ``name`` itself when it is a path, else the first of that name in the search folders.

    Args:
        name: a name (``mol-polecat-work``) or a path (``molecules/mol-demo.toml``), relative to the caller.
        town, workdir: where names are looked for.
        shipped: whether the molecules that ride along count too.

    Raises:
        NotFoundError: there is none; the message says where it was looked for.
    """
    path = Path(name).expanduser()
    if path.is_file():
        return path
    if "/" in name or path.suffix in (".toml", ".json"):
        if workdir is not None and (workdir / path).is_file():
            return workdir / path
        beside = molecules_dir() / path.name
        hint = f"the one that is shipped is named without a path: {path.name.partition('.')[0]}"
        raise NotFoundError(
            "molecule file", name, hint if shipped and beside.is_file() else "make it, or name another one"
        )
    folders = formula_folders(town, workdir, shipped=shipped)
    for folder in folders:
        for ending in ENDINGS:
            if (folder / f"{name}{ending}").is_file():
                return folder / f"{name}{ending}"
    known = {
        path.name.partition(".")[0] for folder in folders for path in folder.glob("*") if path.name.endswith(ENDINGS)
    }
    raise NotFoundError("molecule", name, f"looked in {', '.join(map(str, folders))}", known)


def find_beside(
    name: str, child: Path, town: Town | None = None, workdir: Path | None = None, *, shipped: bool = True
) -> Path:
    """The file of a formula that another one refers to: from that one's own folder first, then as ``find_formula``.

    Raises:
        NotFoundError: there is none.
    """
    beside = (child.parent / f"{name}{ending}" for ending in ENDINGS)
    return next((path for path in beside if path.is_file()), None) or find_formula(name, town, workdir, shipped=shipped)
