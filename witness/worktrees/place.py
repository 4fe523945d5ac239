"""Where worktrees stand, and what we keep beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from witness.config.town import Town
from witness.errors import UsageError
from witness.files import locked, make_folder, read_bytes, read_json, replace_file
from witness.journal import Worktree
from witness.names import GroupId
from witness.worktrees.findings import Fingerprint

# A file in a large repository's set-up has some 150 bytes here.
_LARGEST = 256 << 20


def worktrees_dir(town: Town) -> Path:
    """The folder of a town's worktrees: beside the runtime folder, which people delete to begin anew."""
    return town.root / ".worktrees"


def worktree_path(town: Town, group: GroupId) -> Path:
    """Where a run's worktree is: named after its polecat and its run."""
    return worktrees_dir(town) / group.rig / f"{group.polecat}-{group.run[:8]}"


def trash_path(town: Town, run: str) -> Path:
    """Where a worktree goes once it is certain that nothing of it is wanted: what lies here was judged."""
    return worktrees_dir(town) / ".removed" / run


def make_places(town: Town, group: GroupId) -> None:
    """Make the folders that a worktree is made in.

    Raises:
        UsageError: they cannot be made.
    """
    try:
        top = worktrees_dir(town)
        for folder in (top / ".removed", top / group.rig):
            make_folder(folder, below=town.root)
        ignored = top / ".gitignore"
        if not ignored.exists():  # a town may be a repository, and nothing of this is to be committed
            replace_file(ignored, "*\n", durable=False, below=top)
        make_folder(_records(town), below=town.runtime)
    except OSError as error:
        raise UsageError(f"the folder of worktrees cannot be used: {error}") from error


def _records(town: Town) -> Path:
    return town.runtime / "worktrees"


@contextmanager
def held(town: Town, run: str, patience: float = 0.0) -> Iterator[bool]:
    """Hold a run's worktree: one process at a time makes, judges or removes it.

    Args:
        town: its town.
        run: whose.
        patience: seconds to wait for another holder.

    Yields:
        Whether it could be had.
    """
    folder = _records(town)
    make_folder(folder, below=town.runtime)
    with locked(folder / f"{run}.lock", patience) as handle:
        yield handle is not None


def save_laid(town: Town, run: str, laid: Mapping[str, Fingerprint]) -> None:
    """Keep what was laid in a worktree before its agent began."""
    text = json.dumps({name: found for name, found in laid.items()}, ensure_ascii=True)
    replace_file(_records(town) / f"{run}.json", text, below=town.runtime)


def read_laid(town: Town, run: str) -> dict[str, Fingerprint]:
    """What was laid; empty where that is not known, so that all counts as work."""
    try:
        found = read_json(_records(town) / f"{run}.json", _LARGEST, below=town.runtime)
        return {
            name: None if value is None else (value[0], value[1], value[2], value[3], value[4])
            for name, value in found.items()
        }
    except (OSError, ValueError, TypeError, IndexError, AttributeError, KeyError):
        return {}


def hand_over_laid(town: Town, run: str, to: str) -> None:
    """Let the next run of a polecat know what was laid in its worktree."""
    folder = _records(town)
    if (folder / f"{run}.json").exists():
        replace_file(folder / f"{to}.json", read_bytes(folder / f"{run}.json", _LARGEST), below=town.runtime)


def forget(town: Town, worktree: Worktree) -> None:
    """Remove what we kept beside a worktree that is gone."""
    for name in (f"{worktree.run}.json", f"{worktree.run}.lock"):
        (_records(town) / name).unlink(missing_ok=True)
