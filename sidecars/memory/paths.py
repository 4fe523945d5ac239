"""Where an agent's memory is kept, and how an agent may be named."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from witness.errors import UsageError
from witness.files import read_project

# MDAN's own rule for what may become a file name.
_AGENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")

STATE = Path("_mdan") / "state"
SUFFIX = ".sidecar.json"
ROOT_VARIABLE = "GT_MEMORY_ROOT"
ROOT_VARIABLES = (ROOT_VARIABLE, "MDAN_PROJECT_ROOT")
# Names the session where it is not the polecat's own run: in a party.
SESSION_VARIABLE = "GT_MEMORY_SESSION"


def is_agent(name: str) -> bool:
    """Whether it can be an agent's name: it becomes a file name, so it must not lead elsewhere."""
    return _AGENT.fullmatch(name) is not None and ".." not in name


def check_agent(name: str) -> str:
    """Return ``name`` when it can be an agent's name.

    Raises:
        UsageError: as a file name it could lead elsewhere.
    """
    if not is_agent(name):
        raise UsageError(
            f"agent {name!r} is not a usable name: letters, digits, '.', '_' and '-', at most 128,"
            " beginning with a letter or digit, no '..'"
        )
    return name


@dataclass(frozen=True, slots=True)
class Place:
    """The files of one agent.

    Args:
        folder: where all agents' files of the project are.
        agent: the agent's checked name.
    """

    folder: Path
    agent: str

    @property
    def file(self) -> Path:
        """The memory itself, in the shared format."""
        return self.folder / f"{self.agent}{SUFFIX}"

    @property
    def journal(self) -> Path:
        """What was added since the last fold."""
        return self.folder / f"{self.agent}.journal.jsonl"

    @property
    def archive(self) -> Path:
        """What the memory no longer holds; see ``sidecars.memory.archive``."""
        return self.folder / f"{self.agent}.archive.jsonl"

    @property
    def refused(self) -> Path:
        """Journal entries that no longer fitted when they were folded, with the reason."""
        return self.folder / f"{self.agent}.refused.jsonl"

    @property
    def lock(self) -> Path:
        """Held by a process that changes one of these files."""
        return self.folder / f"{self.agent}.flock"

    @property
    def foreign_lock(self) -> Path:
        """The folder that MDAN's own program makes while it writes."""
        return self.folder / f"{self.agent}{SUFFIX}.lock"

    def aside(self, why: str, stamp: str) -> Path:
        """Where a file goes that is kept but no longer used."""
        return self.folder / f"{self.agent}{SUFFIX}.{why}-{re.sub(r'[^0-9TZ]', '', stamp)}"


def sidecars_folder(root: Path) -> Path:
    """The folder of a project's memories."""
    return root / STATE / "sidecars"


def place_of(root: Path, agent: str) -> Place:
    """The files of an agent in a project.

    Raises:
        UsageError: the name is not usable.
    """
    return Place(sidecars_folder(root), check_agent(agent))


def find_root(start: Path, environ: Mapping[str, str] | None = None) -> Path:
    """The project whose memories a command run in ``start`` means.

    A polecat's worktree goes when the polecat goes, so the memory is kept in the repository that the worktree belongs
    to, never in the worktree.

    Args:
        start: the working directory.
        environ: where ``GT_MEMORY_ROOT`` and ``MDAN_PROJECT_ROOT`` are looked up; the process's own when None.

    Returns:
        The variable's value; else the nearest folder upwards with ``_mdan``; else the repository; else ``start``.
    """
    environ = os.environ if environ is None else environ
    for variable in ROOT_VARIABLES:
        if environ.get(variable):
            return Path(environ[variable]).expanduser().absolute()
    start = start.absolute()
    for place in (start, *start.parents):
        if (place / ".git").is_file():
            main = _main_worktree(place / ".git")
            if main is not None:
                return main
        if (place / "_mdan").is_dir() or (place / ".git").exists():
            return place
    return start


def _main_worktree(pointer: Path) -> Path | None:
    # A linked worktree's .git is a file naming its folder below the repository's own, where "commondir" leads back.
    try:
        text = read_project(pointer, 4096).decode().strip()
        if not text.startswith("gitdir:"):
            return None
        own = (pointer.parent / text.removeprefix("gitdir:").strip()).resolve()
        common = (own / read_project(own / "commondir", 4096).decode().strip()).resolve()
    except (OSError, ValueError):
        return None  # a submodule has no commondir: it is a project of its own
    # Beside a bare repository the worktrees have no main one: the folder that holds it is the project.
    return common.parent
