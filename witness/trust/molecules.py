"""What a molecule asks for beyond data: the program that is the agent, and more of the machine than the town gives."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from witness.config.resources import molecules_dir
from witness.files import project_top, repository_of
from witness.trust.asking import Asking
from witness.trust.definition import allowed, digest_of, programs_of
from witness.trust.layers import held_by_project
from witness.trust.pins import Pins

_FORMULAS = Path(".beads") / "formulas"


def molecule_asking(
    path: Path, asked: Mapping[str, Any], town: Path | None = None, rig: str = "", workdir: Path | None = None
) -> Asking:
    """Judge what one molecule's file asks for.

    Args:
        path: the file.
        asked: all of its values that run or reach, by key: its ``agent`` and its limits.
        town, rig, workdir: as ``resolve``.
    """
    project = project_of(path, town, rig, workdir)
    if project is None or not asked:
        return Asking(path, "molecule", {}, "", {}, True)
    asks = {key: f"runs {value!r}" if key == "agent" else f"sets {value!r}" for key, value in asked.items()}
    words = _words(asked.get("agent"))
    programs = programs_of(words, project, project)
    digest = digest_of(["molecule", dict(asked), programs])
    # From another folder the same words may name another program of the project, which nobody has looked at.
    known = programs_of(words, project, workdir or project).items() <= programs.items()
    counts = allowed(project, town, rig, workdir) or (known and Pins().hold(path, digest))
    return Asking(path, "molecule", asks, digest, programs, counts)


def _words(command: Any) -> list[str]:
    try:
        return shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return []


def project_of(path: Path, town: Path | None, rig: str, workdir: Path | None) -> Path | None:
    """The project that a molecule's file came with; None where it is the product's or the user's own."""
    place = path.resolve()
    home = Path(os.environ.get("HOME") or Path.home())
    if any(place.is_relative_to(ours.resolve()) for ours in (molecules_dir(), home / _FORMULAS)):
        return None
    top = project_top(workdir) if workdir is not None else None
    for root in [] if town is None else [town, town / rig]:
        if place.is_relative_to((root / _FORMULAS).resolve()):
            return held_by_project(root, top)
    if top is not None and place.is_relative_to(top.resolve()):
        return top
    return repository_of(place.parent)
