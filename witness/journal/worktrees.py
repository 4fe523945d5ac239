"""The journal's worktrees: they outlive their runs for as long as they hold work."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from witness.journal.records import Worktree, WorktreeState

if TYPE_CHECKING:
    from witness.journal.database import Journal

_COLUMNS = "run, rig, polecat, path, repository, branch, base, state, since, reason, discard"


class WorktreeTable:
    """Reads and writes worktrees."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def add(self, worktree: Worktree) -> None:
        """Record one that is about to be made."""
        self._journal.run(
            f"INSERT INTO worktrees ({_COLUMNS}) VALUES ({', '.join('?' * 11)})",  # noqa: S608 - our own text
            *astuple(worktree),
        )

    def get(self, run: str) -> Worktree | None:
        """That of a run, whatever became of it."""
        return next(iter(self._select("run = ?", run)), None)

    def of_runs(self, runs: Collection[str]) -> dict[str, Worktree]:
        """Those of some runs, by run."""
        return {run: found for run in runs if (found := self.get(run))}

    def standing(self) -> list[Worktree]:
        """All that were not removed, the oldest first."""
        return self._select("state != 'REMOVED'")

    def unsettled(self) -> list[Worktree]:
        """Those of runs that are over, and of which nobody has said yet whether they are kept."""
        return self._select(
            "(state IN ('MAKING', 'READY') OR (discard AND state = 'KEPT'))"
            " AND NOT EXISTS (SELECT 1 FROM groups WHERE groups.run = worktrees.run AND groups.state != 'NUKED')"
        )

    def move(self, run: str, state: WorktreeState, at: float, reason: str = "") -> None:
        """Write where one stands, and why."""
        self._journal.run("UPDATE worktrees SET state = ?, since = ?, reason = ? WHERE run = ?", state, at, reason, run)

    def hand_over(self, run: str, to: str, at: float, reason: str) -> None:
        """Give one to the next run of its polecat; until that begins, nobody judges it."""
        self._journal.run(
            "UPDATE worktrees SET run = ?, state = 'KEPT', since = ?, reason = ?, discard = 0 WHERE run = ?",
            to, at, reason, run,
        )  # fmt: skip

    def set_discard(self, run: str) -> None:
        """Record that one is to be removed with all that it holds."""
        self._journal.run("UPDATE worktrees SET discard = 1 WHERE run = ?", run)

    def _select(self, where: str, *values: Any) -> list[Worktree]:
        rows = self._journal.run(
            f"SELECT {_COLUMNS} FROM worktrees WHERE {where} ORDER BY since, run",  # noqa: S608 - our own text
            *values,
        ).fetchall()
        return [_worktree(*row) for row in rows]


def _worktree(
    run: str, rig: str, polecat: str, path: str, repository: str, branch: str, base: str, state: str, since: float,
    reason: str, discard: int,
) -> Worktree:  # fmt: skip
    return Worktree(
        run, rig, polecat, path, repository, branch, base, WorktreeState(state), since, reason, bool(discard)
    )
