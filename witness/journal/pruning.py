"""Taking out of the journal what is old, in steps so short that nobody waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from witness.journal.database import Journal

# Rows of one transaction, and pages of one: some milliseconds each.
_ROWS = 500
_PAGES = 500
_TABLES = ("events", "decisions", "members", "seen", "sidecars", "types_of_run")
# A journal of an older build gives pages back by a VACUUM alone, which is worth its time when so much is free.
_WORTH_PAGES = 1000
_WORTH_SHARE = 0.25
_INCREMENTAL = 2


def ended_before(journal: Journal, when: float, after: str = "", most: int = 1000) -> list[tuple[str, float]]:
    """Runs that were over before that time and hold no worktree: their ids in order, and when something last happened.

    Args:
        journal: where.
        when: wall clock.
        after: only ids that come after this one.
        most: so many.
    """
    rows = journal.run(
        "SELECT g.run, MAX(g.created, IFNULL("
        "  (SELECT e.time FROM events e WHERE e.run = g.run ORDER BY e.id DESC LIMIT 1), 0)) AS last FROM groups g"
        " WHERE g.state = 'NUKED' AND g.run > ? AND last < ?"
        " AND NOT EXISTS (SELECT 1 FROM worktrees w WHERE w.run = g.run AND w.state != 'REMOVED')"
        " ORDER BY g.run LIMIT ?",
        after, when, most,
    ).fetchall()  # fmt: skip
    return [(run, last) for run, last in rows]


def forget_run(journal: Journal, run: str) -> None:
    """Take all of a run that is over out of the journal."""
    for table in _TABLES:
        key = "rowid" if table in ("events", "decisions") else ""
        if key:  # the large ones, piece by piece
            part = f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE run = ? LIMIT {_ROWS})"  # noqa: S608
            while journal.run(part, run).rowcount >= _ROWS:
                pass
        else:
            journal.run(f"DELETE FROM {table} WHERE run = ?", run)  # noqa: S608 - our own words
    with journal.transaction():
        journal.run("DELETE FROM worktrees WHERE run = ? AND state = 'REMOVED'", run)
        journal.run("DELETE FROM groups WHERE run = ? AND state = 'NUKED'", run)


def forget_history(journal: Journal, when: float) -> None:
    """Take out what happened in the town at large before that time, and definitions that no run has any more."""
    part = f"DELETE FROM events WHERE id IN (SELECT id FROM events WHERE run = '' AND time < ? LIMIT {_ROWS})"  # noqa: S608
    while journal.run(part, when).rowcount >= _ROWS:
        pass
    journal.run("DELETE FROM definitions WHERE digest NOT IN (SELECT digest FROM types_of_run)")


def shrink(journal: Journal, *, alone: bool) -> None:
    """Give pages that are free back to the disk.

    Args:
        journal: which.
        alone: nobody works with it: one of an older build may be written anew, for which others would have to wait.
    """
    free, pages = _pragma(journal, "freelist_count"), _pragma(journal, "page_count")
    if _pragma(journal, "auto_vacuum") == _INCREMENTAL:
        while free > 0:
            journal.run(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()
            before, free = free, _pragma(journal, "freelist_count")
            if free >= before:
                break
    elif alone and free >= _WORTH_PAGES and free >= pages * _WORTH_SHARE:
        journal.run("PRAGMA auto_vacuum = INCREMENTAL")
        journal.run("VACUUM")
        journal.run("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _pragma(journal: Journal, name: str) -> int:
    return int(journal.run(f"PRAGMA {name}").fetchone()[0])
