"""The journal's file: the user's alone, opened without side effects, taken over from an older release."""

from __future__ import annotations

import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from witness.errors import JournalError, UsageError
from witness.journal import (
    Candidate,
    Decision,
    Group,
    GroupState,
    Journal,
    ModelRest,
    RunState,
    SidecarState,
    Subject,
    Usage,
)
from witness.journal.schema import STEPS
from witness.names import GroupId
from witness.process import ProcessId

# Made with the first release: see its first line.
FIRST = Path(__file__).with_name("journals") / "schema-1.sql"


def test_many_threads_that_open_journals_leave_the_umask_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:

        def open_one(number: int) -> int:
            path = tmp_path / f"{number}.db"
            with Journal(path) as journal:
                journal.town.events_position = "b"
                return max(stat.S_IMODE(each.stat().st_mode) for each in tmp_path.glob(f"{number}.db*"))

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(open_one, range(64))) == {0o600}
        now = os.umask(0o022)
        assert now == 0o022
    finally:
        os.umask(before)


# -- a journal of the first release ---------------------------------------------------------------------------------


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A journal as the first release has left it."""
    path = tmp_path / "witness.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(FIRST.read_text(encoding="utf-8"))
    return path


def test_what_the_first_release_kept_of_a_run_is_taken_over(old: Path) -> None:
    with Journal(old) as journal:
        (living,) = journal.groups.living()
        ended = journal.groups.last("toast")
        members = journal.members.of(living.id.run)
        at_most_one = journal.groups.last_of_each()
    assert living.run_state == RunState(
        task="Fix the bill",
        bead="gt-12",
        variables={"a": "b"},
        overrides={"scope": {"cap": 3}},
        followed=True,
        cgroup="/sys/fs/cgroup/gt",
        worker=ProcessId(41, 99),
        orphans=(7, 8),
        session_missing=12.5,
        activity="1/2",
        activity_at=13.0,
    )
    assert [each.name for each in members] == ["agent"]
    assert ended is not None
    assert (ended.state, ended.run_state.followed, ended.run_state.orphans) == (GroupState.NUKED, False, ())
    assert ended.run_state.variables["issue"] == "docs/issue.md"
    assert "Orders with a bad quantity" in ended.run_state.task
    assert {each.id.polecat for each in at_most_one} == {"toast", "nux"}


def test_what_the_first_release_decided_is_read_as_columns(old: Path) -> None:
    with Journal(old) as journal:
        decisions = {each.id: each for each in journal.decisions.of("run-followed")}
        toast = journal.groups.last("toast")
        assert toast is not None
        said = journal.decisions.said(toast.id.run)
        costs = journal.decisions.costs("sidecar")
    first = decisions["s"]
    assert (first.rule, first.gate, first.words, first.line) == ("edited-outside", "", "a.py was changed.", "s")
    assert (first.spoken, first.age, first.heeded, first.stage) == (20.0, None, "", "seen")
    assert first.usage == Usage("m", 1, 2, 3, 4, 0.5, 0.25, 1)
    assert [decisions[name].rule for name in ("ss", "sss", "ssss")] == ["", "new-text, new-code", ""]
    assert (decisions["sssss"].gate, decisions["sssss"].line) == ("cooldown", "")
    assert decisions["ssssss"].reason == "timeout: no verdict within 5 s (no answer)"
    assert [(each.sidecar, each.rule) for each in said] == [("scope", "edited-what-is-not")]
    assert {row.key: row.injected for row in costs} == {"scope": 5, "conventions": 0, "specs": 0, "tools": 0}


def test_where_readers_stood_is_taken_over(old: Path) -> None:
    with Journal(old) as journal:
        scope = journal.sidecars.get("run-followed", "scope")
        assert scope == SidecarState("7:120", "no key in GT_WITNESS_API_KEY: it stays silent", "7:120", 2)
        assert journal.sidecars.get("run-followed", "specs") == SidecarState(starts=1)
        assert journal.sidecars.count_start("run-followed", "scope") == 3
        queue = journal.queues.get("gt-nux")
        assert queue is not None
        assert (queue.position, queue.transcript, queue.receipts[0]["file"]) == (42, "/t.jsonl", "1.json")
        assert journal.queues.get("gt-old") is None
        assert journal.town.events_position == "9:77"
        assert journal.town.model_rest == ModelRest(1_790_000_100.25, 30.0)
        assert journal.town.candidate("main", "ace") == Candidate(ProcessId(5, 6), 1_790_000_200.5, 40.0, renewed=True)
        assert journal.town.candidate("main", "nux") == Candidate()


def test_an_old_journal_serves_as_a_new_one(old: Path) -> None:
    with Journal(old) as journal:
        journal.groups.change("run-followed", worker=None, orphans=(), session_missing=None, activity_at=14.0)
        group = journal.groups.get("run-followed")
        assert group is not None
        assert group.run_state == replace(
            group.run_state, worker=None, orphans=(), session_missing=None, activity="1/2", activity_at=14.0
        )
        again = Group(GroupId("main", "nux", "run-again"), "gt-nux", GroupState.RUNNING, "boot", 0.0, 0.0, "/")
        with pytest.raises(UsageError, match="already running"):
            journal.groups.add(again)
        newer = Decision(
            "new",
            "run-followed",
            "scope",
            1_790_001_000.0,
            1.0,
            "silent",
            subjects=(Subject("a b", "x"), Subject("c")),
            age=1.5,
        )
        journal.decisions.add(newer)
        assert replace(journal.decisions.of("run-followed")[-1], usage=None) == newer


def test_two_that_open_an_old_journal_at_once_take_it_over_once(old: Path) -> None:
    def open_it(_: int) -> int:
        with Journal(old) as journal:
            return len(journal.decisions.of("run-followed"))

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(open_it, range(8))) == {6}


def test_a_journal_that_cannot_be_taken_over_stays_as_it_was(old: Path) -> None:
    with closing(sqlite3.connect(old)) as database:
        database.execute("UPDATE groups SET details = 'no json' WHERE run = 'run-followed'")
        database.commit()
    with pytest.raises(JournalError):
        Journal(old)
    with closing(sqlite3.connect(old)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)
        assert database.execute("SELECT details FROM groups WHERE run = 'run-followed'").fetchone() == ("no json",)


def test_a_journal_of_a_later_release_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "witness.db"
    with Journal(path):
        pass
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
    with pytest.raises(JournalError) as refused:
        Journal(path)
    assert str(refused.value).splitlines() == [
        f"{path} was written by a newer gt-witness (schema {len(STEPS) + 1}): upgrade this one"
    ]
