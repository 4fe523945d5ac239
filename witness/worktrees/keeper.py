"""What becomes of a worktree when its polecat has ended: it is kept while it holds work, and else removed.

Theory of operation. ``settle`` takes up every worktree whose run is over and that nobody has judged: at the end of a
nuke, at each patrol, after a crash. It is the only place that removes one, and takes three steps that may each be
broken off:

1. ``look`` says that nothing in it is wanted (or the journal says MAKING: no agent has ever been in it; or somebody
   has said ``--discard``).
2. The folder is renamed into ``.worktrees/.removed/<run>``: one step, whole or not at all. What lies there was judged.
3. Git's record of it, its branch where another branch has all of it, and the folder are deleted; then REMOVED is
   written.

A worktree that stands in its place is always judged anew, one in ``.removed`` never again. Whatever goes wrong keeps
it, with the reason.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness.clock import Clock
from witness.config.town import Town
from witness.errors import WitnessError
from witness.files import read_from
from witness.journal import Journal, Worktree, WorktreeState
from witness.process.git import GitError, git, git_line
from witness.worktrees.findings import look
from witness.worktrees.place import forget, held, read_laid, trash_path

Throwaway = Callable[[str], Collection[str]]


@dataclass(frozen=True, slots=True)
class WorktreeEnd:
    """What became of a worktree.

    Args:
        worktree: as it is recorded now.
        kept: whether it stands.
        words: why, or how it went; one line.
    """

    worktree: Worktree
    kept: bool
    words: str

    @property
    def command(self) -> str:
        """The command that shows what it holds."""
        return f"gt diff {self.worktree.address}"

    def as_json(self) -> dict[str, Any]:
        """The form that listings promise."""
        found = self.worktree
        return {"path": found.path, "branch": found.branch, "kept": self.kept, "reason": self.words}

    def __str__(self) -> str:
        if not self.kept:
            return f"its worktree is removed: {self.words}"
        return (
            f"its worktree is kept: {self.words}: {self.worktree.path} (branch {self.worktree.branch}); {self.command}"
        )


class WorktreeKeeper:
    """Judges the worktrees of one town.

    Args:
        town: the town.
        journal: its journal.
        clock: time.
        throwaway: given a rig, the names of ignored files there that anybody can make again.
    """

    def __init__(self, town: Town, journal: Journal, clock: Clock, throwaway: Throwaway) -> None:
        self._town, self._journal, self._clock, self._throwaway = town, journal, clock, throwaway

    def pending(self) -> bool:
        """Whether there is anything to settle; one query."""
        return bool(self._journal.worktrees.unsettled())

    def settle(self, runs: Collection[str] | None = None, *, patience: float = 0.0) -> dict[str, WorktreeEnd]:
        """Keep or remove the worktrees of runs that are over; one that another process is at is left to it.

        Args:
            runs: only those of these; all when None.
            patience: seconds to wait for another process.

        Returns:
            What became of each, by run.
        """
        return {
            found.run: end
            for found in self._journal.worktrees.unsettled()
            if (runs is None or found.run in runs) and (end := self._settle(found.run, patience))
        }

    def prune(self, *, dry_run: bool = False) -> list[WorktreeEnd]:
        """Look again at those that are kept, and remove the ones whose work is elsewhere by now.

        Args:
            dry_run: only say what would become of them.
        """
        ends = [] if dry_run else list(self.settle(patience=1.0).values())
        for found in self._journal.worktrees.standing():
            if found.state is WorktreeState.KEPT:
                if dry_run:
                    words = self.judge(found)
                    ends.append(WorktreeEnd(found, bool(words), words or _NOTHING))
                elif end := self._settle(found.run, 1.0):
                    ends.append(end)
        return ends

    def _settle(self, run: str, patience: float) -> WorktreeEnd | None:
        try:
            with held(self._town, run, patience) as ours:
                found = self._journal.worktrees.get(run) if ours else None
                if found is None or found.state is WorktreeState.REMOVED:
                    return None
                return self._end(found)
        except OSError as error:
            found = self._journal.worktrees.get(run)
            return self._keep(found, f"it could not be looked at: {error}") if found else None

    def _end(self, found: Worktree) -> WorktreeEnd:
        path, trash = Path(found.path), trash_path(self._town, found.run)
        try:
            if os.path.lexists(trash):
                # A removal that was broken off. Something new in the old place is not what was judged.
                if os.path.lexists(path):
                    return self._keep(found, "something stands there again since it was removed")
            elif not os.path.lexists(path):
                return self._finish(found, "nothing stands there any more")
            else:
                words = "" if found.discard or found.state is WorktreeState.MAKING else self.judge(found)
                if words:
                    return self._keep(found, words)
                path.rename(trash)
            said = "discarded" if found.discard else _NOTHING
            return self._finish(found, said)
        except (OSError, WitnessError) as error:
            return self._keep(found, f"it could not be removed: {error}")

    def judge(self, found: Worktree) -> str:
        """Why a worktree would be kept if its polecat ended now; empty when it would be removed."""
        try:
            laid = read_laid(self._town, found.run)
            return look(Path(found.path), found.branch, found.base, laid, self._throwaway(found.rig)).words
        except (OSError, WitnessError, ValueError) as error:
            return f"it could not be looked at: {error}"

    def _keep(self, found: Worktree, words: str) -> WorktreeEnd:
        if (found.state, found.reason) != (WorktreeState.KEPT, words):
            self._move(found, WorktreeState.KEPT, words)
        return WorktreeEnd(self._journal.worktrees.get(found.run) or found, True, words)

    def _finish(self, found: Worktree, words: str) -> WorktreeEnd:
        _drop_admin(found)
        if gone := self._drop_branch(found):
            words += f"; {gone}"
        _delete(trash_path(self._town, found.run))
        self._move(found, WorktreeState.REMOVED, words)
        with contextlib.suppress(OSError):
            forget(self._town, found)
        return WorktreeEnd(self._journal.worktrees.get(found.run) or found, False, words)

    def _move(self, found: Worktree, state: WorktreeState, words: str) -> None:
        now = self._clock.wall()
        with self._journal.transaction():
            self._journal.worktrees.move(found.run, state, now, words)
            kind = "worktree-kept" if state is WorktreeState.KEPT else "worktree-removed"
            self._journal.note(now, kind, found.run, path=found.path, branch=found.branch, reason=words, polecat=found.address)  # noqa: E501 # fmt: skip

    def _drop_branch(self, found: Worktree) -> str:
        """Delete the branch where nothing is lost with it; what became of it, in words, where it is of interest."""
        ref = f"refs/heads/{found.branch}"
        try:
            tip = git_line(found.repository, "rev-parse", "-q", "--verify", ref)
        except GitError:
            return ""  # it was never made, or somebody has deleted it
        known = [f"--exclude={ref}", "--glob=refs/heads/*", found.base]
        if not found.discard and git_line(found.repository, "rev-list", "--max-count=1", ref, "--not", *known):
            return f"its branch {found.branch} stays"
        if _is_checked_out(found.repository, ref):
            return f"its branch {found.branch} is checked out elsewhere and stays"
        git(found.repository, "update-ref", "-d", ref, tip)
        if found.discard and tip != found.base:
            return f"its branch {found.branch} was at {tip[:12]}"
        return ""


_NOTHING = "nothing in it was unsaved"


def _is_checked_out(repository: str, ref: str) -> bool:
    listed = os.fsdecode(git(repository, "worktree", "list", "--porcelain"))
    return any(line == f"branch {ref}" for line in listed.splitlines())


def _drop_admin(found: Worktree) -> None:
    """Delete what git itself remembers of exactly this worktree; "git worktree prune" would take others along."""
    folder = Path(found.repository) / "worktrees"
    try:
        entries = list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        try:
            pointer = os.fsdecode(read_from(entry / "gitdir", 0, 1 << 16, owners=())).strip()
        except OSError:
            continue
        if os.path.realpath(os.path.dirname(pointer)) == os.path.realpath(found.path):  # noqa: PTH120
            _delete(entry)
    with contextlib.suppress(OSError):
        folder.rmdir()  # as git does, with the last one


def _delete(path: Path) -> None:
    """Delete a folder, those in it that are closed included; no link is followed."""

    def open_and_retry(function: Callable[[str], Any], name: str, error: tuple[Any, ...]) -> None:
        if isinstance(error[1], FileNotFoundError):
            return
        for each in (os.path.dirname(name), name):  # noqa: PTH120
            with contextlib.suppress(OSError):
                if stat.S_ISDIR(os.lstat(each).st_mode):
                    os.chmod(each, 0o700)  # noqa: PTH101
        if function in (os.scandir, os.open):
            _delete(Path(name))
        else:
            function(name)

    if path.is_symlink():
        path.unlink()
    elif os.path.lexists(path):
        shutil.rmtree(path, onerror=open_and_retry)
