"""Where a formula of a given name is looked for, and in which order."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path

from witness.config.resources import molecules_dir
from witness.config.town import Town
from witness.errors import NotFoundError

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
        target = (place / ".beads" / "redirect").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return
    if target:
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
        raise NotFoundError("molecule file", name, hint if shipped and beside.is_file() else "")
    folders = formula_folders(town, workdir, shipped=shipped)
    for folder in folders:
        for ending in ENDINGS:
            if (folder / f"{name}{ending}").is_file():
                return folder / f"{name}{ending}"
    known = {
        path.name.partition(".")[0] for folder in folders for path in folder.glob("*") if path.name.endswith(ENDINGS)
    }
    near = difflib.get_close_matches(name, sorted(known), n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    raise NotFoundError("molecule", name, f"{meant}looked in {', '.join(map(str, folders))}")


def find_beside(
    name: str, child: Path, town: Town | None = None, workdir: Path | None = None, *, shipped: bool = True
) -> Path:
    """The file of a formula that another one refers to: from that one's own folder first, then as ``find_formula``.

    Raises:
        NotFoundError: there is none.
    """
    beside = (child.parent / f"{name}{ending}" for ending in ENDINGS)
    return next((path for path in beside if path.is_file()), None) or find_formula(name, town, workdir, shipped=shipped)
