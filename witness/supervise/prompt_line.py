"""The one line about a polecat that a client with our mod shows above its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from witness.files import replace_file
from witness.journal import Group

#: In the run's folder; hooks/gt_mod.py reads it.
FILE = "prompt-line"


def prompt_line(group: Group, tally: Sequence[tuple[str, int, int, int]]) -> str:
    """``gt main/toast RUNNING · scope 3→3→2``: for each sidecar what it reported, what was said of it, what was seen.

    Args:
        group: the polecat.
        tally: as the journal's ``decisions.tally`` gives it.
    """
    parts = [f"{name} {reported}→{said}→{seen}" for name, reported, said, seen in tally]
    return " · ".join([f"gt {group.id.address} {group.state}", *parts])


def write_prompt_line(group: Group, tally: Sequence[tuple[str, int, int, int]], run_dir: Path) -> None:
    """Leave the line where the mod's server finds it; a run that is just ending has no place for it any more."""
    with suppress(OSError):
        replace_file(run_dir / FILE, prompt_line(group, tally), durable=False, below=run_dir)
