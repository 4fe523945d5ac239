"""What is old goes, in steps that hold nobody up; what lives, holds work or lies outside stays."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.supervise.command import gt_json
from witness import Town
from witness.clock import SystemClock
from witness.journal import (
    Decision,
    Group,
    GroupState,
    Journal,
    Member,
    MemberKind,
    MemberState,
    Worktree,
    WorktreeState,
)
from witness.journal.pruning import shrink
from witness.names import GroupId
from witness.supervise.reconcile import Reconciler
from witness.supervise.retention import KEPT_LONGER, Swept, is_due, sweep

_DAY = 86400.0
_MONTH = 30 * _DAY
_NOW = 1_790_000_000.0


@pytest.fixture
def town(tmp_path: Path) -> Town:
    town = Town.init(tmp_path / "town")
    town.make_runtime()
    return town


def _run(town: Town, journal: Journal, name: str, days: float, *, state: GroupState = GroupState.NUKED) -> Path:
    """A run whose last word came so many days ago, with all that a run leaves."""
    ended = _NOW - days * _DAY
    group = Group(GroupId("main", name, name), f"gt-{name}", state, "boot", 1.0, ended - 60, "/w")
    with journal.transaction():
        journal.groups.add(group)
        journal.members.add(Member(name, "agent", MemberKind.AGENT, MemberState.STOPPED))
        journal.decisions.add(Decision(f"d-{name}", name, "scope", ended, 1.0, "injected", line=f"d-{name}"))
        for _ in range(600):
            journal.note(ended, "nuked", run=name)
    folder = town.run_dir(name)
    (folder / "spool").mkdir(parents=True)
    (folder / "spool" / "events.jsonl").write_bytes(b"x" * 100_000)
    for file in ("screen.txt", "exit.json", "usage.json", "launch.log"):
        (folder / file).write_text("{}")
    return folder


def _sweep(town: Town, journal: Journal, retention: float = _MONTH) -> Swept:
    return sweep(town, journal, retention, _NOW)


def test_the_bulk_goes_first_and_all_of_it_later(town: Town) -> None:
    with Journal(town.journal_path) as journal:
        young = _run(town, journal, "young", 29)
        old = _run(town, journal, "old", 31)
        oldest = _run(town, journal, "oldest", 30 * KEPT_LONGER + 1)
        living = _run(town, journal, "living", 400, state=GroupState.RUNNING)
        journal.note(_NOW - 1000 * _DAY, "witness-started", pid=1)
        swept = _sweep(town, journal)
        assert (swept.emptied, swept.forgotten, swept.errors) == (1, 1, [])
        assert swept.freed >= 200_000
        assert sorted(os.listdir(old)) == ["exit.json", "screen.txt", "usage.json"]
        assert not oldest.exists()
        for folder in (young, living):
            assert (folder / "spool" / "events.jsonl").exists()
        assert journal.groups.get("oldest") is None
        assert journal.history("oldest") == []
        assert journal.decisions.of("oldest") == []
        assert journal.members.of("oldest") == []
        assert journal.groups.get("old")
        assert len(journal.history("old", 1000)) == 600
        told = journal.history("", 5000)
        assert "witness-started" not in {event.kind for event in told}
        assert told[-1].kind == "swept"
        again = _sweep(town, journal)
        assert (again.emptied, again.forgotten) == (0, 0)


def test_zero_keeps_everything(town: Town) -> None:
    with Journal(town.journal_path) as journal:
        folder = _run(town, journal, "old", 4000)
        assert _sweep(town, journal, 0).emptied == 0
        assert (folder / "spool").exists()


def test_a_run_whose_worktree_stands_is_left_alone(town: Town) -> None:
    with Journal(town.journal_path) as journal:
        folder = _run(town, journal, "old", 4000)
        journal.worktrees.add(
            Worktree("old", "main", "old", "/w/t", "/w", "b", "c", WorktreeState.KEPT, _NOW, "unpushed")
        )
        _sweep(town, journal)
        assert (folder / "spool").exists()
        journal.worktrees.move("old", WorktreeState.REMOVED, _NOW)
        _sweep(town, journal)
        assert not folder.exists()
        assert journal.run("SELECT COUNT(*) FROM worktrees").fetchone() == (0,)


def test_a_link_is_removed_and_not_followed(town: Town, tmp_path: Path) -> None:
    outside = tmp_path / "mine"
    outside.mkdir()
    (outside / "precious").write_text("x")
    with Journal(town.journal_path) as journal:
        folder = _run(town, journal, "old", 31)
        (folder / "link").symlink_to(outside)
        (folder / "spool" / "link").symlink_to(outside)
        other = _run(town, journal, "linked", 31)
        os.rename(other, tmp_path / "elsewhere")
        other.symlink_to(tmp_path / "elsewhere")
        swept = _sweep(town, journal)
        assert swept.emptied == 1
        assert len(swept.errors) == 1
        assert "linked" in swept.errors[0]
    assert (outside / "precious").exists()
    assert (tmp_path / "elsewhere" / "spool" / "events.jsonl").exists()
    assert not (folder / "link").is_symlink()


def test_pages_go_back_to_the_disk_while_others_write(town: Town) -> None:
    with Journal(town.journal_path) as journal, closing(sqlite3.connect(town.journal_path, timeout=0)) as other:
        for number in range(8):
            _run(town, journal, f"r{number}", 4000)
        other.execute("BEGIN")
        before = other.execute("SELECT COUNT(*) FROM groups").fetchone()  # a reader that holds on to what it saw
        pages = journal.run("PRAGMA page_count").fetchone()[0]
        assert _sweep(town, journal).forgotten == 8
        assert journal.run("PRAGMA page_count").fetchone()[0] < pages / 2
        assert journal.run("PRAGMA freelist_count").fetchone()[0] == 0
        assert other.execute("SELECT COUNT(*) FROM groups").fetchone() == before


def test_a_journal_of_an_older_build_is_written_anew_only_when_nobody_waits(tmp_path: Path) -> None:
    path = tmp_path / "witness.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE ballast (x)")
    with Journal(path) as journal:
        with journal.transaction():
            for _ in range(3000):
                journal.run("INSERT INTO ballast VALUES (randomblob(4000))")
        journal.run("DELETE FROM ballast")
        pages = journal.run("PRAGMA page_count").fetchone()[0]
        shrink(journal, alone=False)
        assert journal.run("PRAGMA page_count").fetchone()[0] == pages
        shrink(journal, alone=True)
        assert journal.run("PRAGMA page_count").fetchone()[0] < 200
        assert journal.run("PRAGMA auto_vacuum").fetchone()[0] == 2


def test_the_patrol_sweeps_once_an_hour(town: Town) -> None:
    (town.root / "settings").mkdir(exist_ok=True)
    (town.root / "settings" / "witness.yaml").write_text("retention: 1d\n")
    with Journal(town.journal_path) as journal:
        folder = _run(town, journal, "old", 4)
        clock = SystemClock()
        assert is_due(town, clock.wall())
        reconciler = Reconciler(town, journal, clock)
        try:
            reconciler.patrol()
            assert not (folder / "spool").exists()
            assert not is_due(town, clock.wall())
            assert is_due(town, clock.wall() + 4000)
            kept = _run(town, journal, "other", 4)
            reconciler.patrol()
            assert (kept / "spool").exists()
        finally:
            reconciler.close()


def test_what_it_takes_is_told(town: Town) -> None:
    with Journal(town.journal_path) as journal:
        _run(town, journal, "big", 1)
    found = gt_json(town.root, "du")
    (run,) = found["runs"]
    assert (run["address"], found["run_count"]) == ("main/big", 1)
    assert run["bytes"] >= 100_000
    assert found["parts"]["journal"] > 10_000
    assert found["bytes"] == sum(found["parts"].values())
    assert (found["retention"], found["retention_kept"]) == (_MONTH, _MONTH * KEPT_LONGER)
