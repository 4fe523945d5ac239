"""Keeping a town small: what runs that are over left behind goes after a while.

Theory of operation. Once an hour the patrol looks for runs that ended longer ago than ``retention``. Of these the bulky
part goes: spools, logs, everything in the run's folder but how it ended, what it had used and its last screen. That,
and all that the journal knows of the run, stays ``KEPT_LONGER`` times as long. A run whose worktree still stands is
left alone, whatever its age, and one that lives always.

The Witness does it in a thread with a connection of its own, and every step is short: a supervised polecat's next event
never waits for what is swept. Folders are entered by descriptor from the town's runtime folder on; a link in the place
of one is not followed.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from witness.agents.usage import COUNTED
from witness.config.town import Town
from witness.files import replace_file
from witness.files.opening import FOLDER, open_beneath, opened_folder
from witness.journal import Journal
from witness.journal.pruning import ended_before, forget_history, forget_run, shrink
from witness.launch.pane import LAST_SCREEN

#: What the journal knows of a run, its last screen and how it ended stay so many times ``retention``.
KEPT_LONGER = 6
#: What of a run's folder stays that long.
KEPT = frozenset([LAST_SCREEN, "exit.json", COUNTED])
_STAMP = "retention.stamp"
_EVERY = 3600.0


@dataclass
class Swept:
    """What one sweep has removed.

    Args:
        emptied: runs whose spools and logs went.
        forgotten: runs that went whole.
        freed: bytes on the disk, those of the journal included.
        errors: one line for each thing that could not be removed.
    """

    emptied: int = 0
    forgotten: int = 0
    freed: int = 0
    errors: list[str] = field(default_factory=list)


def is_due(town: Town, now: float) -> bool:
    """Whether the last sweep was an hour ago; one look at one file.

    Args:
        town: which.
        now: wall clock.
    """
    try:
        return not 0 <= now - (town.runtime / _STAMP).lstat().st_mtime < _EVERY
    except OSError:
        return True


def sweep(
    town: Town, journal: Journal, retention: float, now: float, stop: Callable[[], bool] = lambda: False
) -> Swept:
    """Remove what is older than it has to stay.

    Args:
        town: which.
        journal: its journal.
        retention: seconds after a run's end for which its folder stays whole; 0 keeps everything for ever.
        now: wall clock.
        stop: asked between two runs; what is left is left to the next sweep.

    Raises:
        JournalError: the journal cannot be used; the next sweep goes on.
    """
    swept = Swept()
    with suppress(OSError):  # a full disk: then a sweep an hour is the least of its troubles
        replace_file(town.runtime / _STAMP, "", durable=False, below=town.runtime)
    if retention <= 0:
        return swept
    before = _journal_size(town)
    for run, last in _over(journal, now - retention):
        if stop():
            return swept
        gone = last < now - retention * KEPT_LONGER
        try:
            freed = _clear(town, run, frozenset() if gone else KEPT)
        except OSError as error:
            swept.errors.append(f"the folder of run {run} could not be cleared: {error}")
            continue
        swept.freed += freed or 0
        swept.emptied += bool(freed) and not gone
        if gone:
            forget_run(journal, run)
            swept.forgotten += 1
    forget_history(journal, now - retention * KEPT_LONGER)
    shrink(journal, alone=not journal.groups.living())
    swept.freed += max(before - _journal_size(town), 0)
    if swept.emptied or swept.forgotten:
        journal.note(now, "swept", emptied=swept.emptied, forgotten=swept.forgotten, freed=swept.freed)
    return swept


def _over(journal: Journal, when: float) -> Iterator[tuple[str, float]]:
    after = ""
    while found := ended_before(journal, when, after):
        yield from found
        after = found[-1][0]


def _journal_size(town: Town) -> int:
    try:
        return town.journal_path.lstat().st_size
    except OSError:
        return 0


def _clear(town: Town, run: str, kept: frozenset[str]) -> int | None:
    """Empty a run's folder but for some names, or remove it where none is kept; bytes on the disk that were freed.

    Returns:
        None where there was no folder.
    """
    try:
        with opened_folder(town.runtime) as top:
            at = open_beneath(top, f"runs/{run}", FOLDER)
            try:
                freed = sum(_remove(name, at) for name in os.listdir(at) if name not in kept)  # noqa: PTH208
            finally:
                os.close(at)
            if not kept:
                runs = open_beneath(top, "runs", FOLDER)
                try:
                    os.rmdir(run, dir_fd=runs)
                finally:
                    os.close(runs)
    except FileNotFoundError:
        return None
    return freed


def _remove(name: str, at: int) -> int:
    status = os.lstat(name, dir_fd=at)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=at)
        return status.st_blocks * 512
    size = folder_size(name, at)
    shutil.rmtree(name, dir_fd=at)
    return size


def folder_size(folder: Path | str, at: int | None = None) -> int:
    """Bytes that a folder takes on the disk with all below it; no link is followed, and what goes meanwhile is 0.

    Args:
        folder: its path.
        at: descriptor of the folder that a relative path is seen from.
    """
    total = 0
    with suppress(FileNotFoundError):
        for _, _, files, here in os.fwalk(folder, dir_fd=at, follow_symlinks=False):
            for name in files:
                with suppress(OSError):
                    total += os.lstat(name, dir_fd=here).st_blocks * 512
            with suppress(OSError):
                total += os.fstat(here).st_blocks * 512
    return total
