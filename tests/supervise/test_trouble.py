"""A full disk, a damaged or locked journal, a read-only folder: one clear line, and the polecat is never the victim."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.real.conftest import SETTINGS, Place
from tests.supervise.command import GT, bare_environment, gt, gt_json
from tests.waiting import until
from witness.errors import JournalCorruptError, JournalError
from witness.journal import Journal, MemberState
from witness.launch import town_witness
from witness.process.exits import wait_gone
from witness.process.table import is_alive

AGENT = ["sleep", "60"]


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[None]:
    """A file system of its own, as small as that."""
    folder.mkdir()
    options = ["-o", f"size={kilobytes}k"]
    done = subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", folder], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("no file system may be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Place]:
    """A town that lives on a small disk."""
    with small_disk(tmp_path / "disk", 4000):
        place = Place(tmp_path / "disk" / "town", SETTINGS + "patrol_interval: 100ms\n")
        (place.work / "issue.md").write_text("only `a/**`\n")
        try:
            yield place
        finally:
            place.close()


def fill(place: Place) -> Path:
    """Use up the disk to its last byte."""
    ballast = place.town.root / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return ballast


def _one_line(done: subprocess.CompletedProcess[str], *pieces: str) -> None:
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert all(piece in done.stderr for piece in pieces), done.stderr


# -- a full disk ----------------------------------------------------------------------------------------------------


def test_a_full_disk_stops_nobody_and_passes(small: Place) -> None:
    spawned = small.spawn("x", AGENT, daemon=True, sidecars="scope:issue.md")
    (scope,) = spawned.sidecars
    witness = town_witness.witness_process(small.town)
    ballast = fill(small)
    small.kill(scope.process)
    done = gt(small.work, "polecat", "spawn", "y", "--agent", "sleep 60", "--no-witness")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert witness
    assert is_alive(witness), (small.town.runtime / "witness.log").read_text()[-3000:]
    assert is_alive(spawned.agent)
    assert small.sessions() == ["gt-x"]
    ballast.unlink()

    def replaced() -> bool:
        now = small.members("x")["scope"]
        return now.state is MemberState.RUNNING and now.process not in (None, scope.process)

    until(replaced, f"not replaced: {(small.town.runtime / 'witness.log').read_text()[-2000:]}")
    assert is_alive(witness)
    assert is_alive(spawned.agent)


def test_a_nuke_on_a_full_disk_is_told_and_done_later(small: Place) -> None:
    spawned = small.spawn("x", AGENT)
    ballast = fill(small)
    done = gt(small.work, "polecat", "nuke", "x")
    if done.returncode == 0:  # the journal's own file had room left
        assert not is_alive(spawned.agent)
        return
    _one_line(done, "journal")
    assert is_alive(spawned.agent)
    ballast.unlink()
    assert gt(small.work, "polecat", "nuke", "x").returncode == 0
    assert not is_alive(spawned.agent)


def test_a_spawn_that_meets_a_full_journal_half_way_leaves_nobody(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the moment the agent has started, nothing can be written."""
    real = Journal.run
    journal = place.witness.journal

    def run(self: Journal, sql: str, *values: object) -> sqlite3.Cursor:
        started = self is journal and list(place.town.runtime.glob("runs/*/started.json"))
        if started and sql.startswith(("INSERT", "UPDATE", "BEGIN")):
            raise JournalError(f"the journal {self.path} cannot be used: database or disk is full")
        return real(self, sql, *values)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "run", run)
        with pytest.raises(JournalError, match="disk is full"):
            place.spawn("x", AGENT)
        assert place.marked() == set()
        assert place.sessions() == []
    place.witness.patrol()
    until(lambda: not place.witness.patrol().errors and not place.witness.polecats(), "not closed", every=0.05)
    assert place.spawn("x", AGENT).agent.known


# -- the journal ----------------------------------------------------------------------------------------------------


def _damage(journal: Path) -> None:
    for suffix in ("-wal", "-shm"):
        journal.with_name(journal.name + suffix).unlink(missing_ok=True)
    with journal.open("r+b") as file:
        file.write(b"this is no database at all" * 400)


def test_a_damaged_journal_is_one_line_and_the_polecat_lives(place: Place) -> None:
    spawned = place.spawn("x", AGENT)
    place.witness.close()
    good = place.town.journal_path.read_bytes()
    _damage(place.town.journal_path)
    for command in (["polecat", "list"], ["polecat", "nuke", "x"], ["witness", "patrol"], ["polecat", "spawn", "y"]):
        _one_line(gt(place.work, *command), "damaged", "gt doctor --fix")
    assert is_alive(spawned.agent)
    with pytest.raises(JournalCorruptError):
        Journal(place.town.journal_path)
    place.town.journal_path.write_bytes(good)
    place.witness.__init__(place.town)  # type: ignore[misc]


def test_the_daemon_outlives_a_damaged_journal_and_a_new_one(place: Place) -> None:
    (place.work / "issue.md").write_text("only `a/**`\n")
    (place.town.root / "settings" / "witness.yaml").write_text(SETTINGS + "patrol_interval: 100ms\n")
    spawned = place.spawn("x", AGENT, daemon=True, sidecars="scope:issue.md")
    (scope,) = spawned.sidecars
    witness = town_witness.witness_process(place.town)
    assert witness
    place.witness.close()
    # Damaged in place, and its log of changes gone, under a Witness that has it open.
    _damage(place.town.journal_path)
    fixed = gt(place.work, "doctor", "--fix")
    assert "Traceback" not in fixed.stderr, fixed.stderr
    place.witness.__init__(place.town)  # type: ignore[misc]
    until(lambda: [g.id.polecat for g, _ in place.witness.polecats()] == ["x"], f"not adopted: {fixed.stdout}")
    until(lambda: not place.witness.patrol().errors, "the daemon did not find the new journal", every=0.05)
    assert is_alive(spawned.agent)
    # The sidecar had the old file open; it, too, is to write into the new one.
    until(lambda: place.members("x")["scope"].process not in (None, scope.process), "the sidecar was not replaced", 30)
    [nuked] = place.witness.nuke(["x"])
    assert nuked.result
    assert nuked.result.survivors == ()
    assert place.marked() == set()


def test_a_locked_journal_is_told(place: Place) -> None:
    with closing(sqlite3.connect(place.town.journal_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with Journal(place.town.journal_path, 0.1) as journal, pytest.raises(JournalError, match="somebody holds it"):
            journal.note(0.0, "x")
        other.execute("ROLLBACK")


@pytest.mark.real
def test_the_daemon_waits_for_a_locked_journal(place: Place) -> None:
    (place.work / "issue.md").write_text("only `a/**`\n")
    (place.town.root / "settings" / "witness.yaml").write_text(SETTINGS + "patrol_interval: 100ms\n")
    spawned = place.spawn("x", AGENT, daemon=True, sidecars="scope:issue.md")
    (scope,) = spawned.sidecars
    with closing(sqlite3.connect(place.town.journal_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        place.kill(scope.process)
        log = place.town.runtime / "witness.log"
        until(lambda: "somebody holds it" in log.read_text(), "the daemon says nothing")
        other.execute("ROLLBACK")
    until(lambda: place.members("x")["scope"].state is MemberState.RUNNING, "not replaced")
    assert is_alive(spawned.agent)


# -- a folder that cannot be written --------------------------------------------------------------------------------


def test_a_read_only_runtime_is_one_line_and_the_polecat_lives(small: Place) -> None:
    spawned = small.spawn("x", AGENT)
    small.witness.close()
    disk = small.town.root.parent
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    try:
        for command in (
            ["polecat", "nuke", "x"],
            ["witness", "patrol"],
            ["polecat", "spawn", "y", "--agent", "sleep 9"],
        ):
            _one_line(gt(small.work, *command))
        assert is_alive(spawned.agent)
    finally:
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        small.witness.__init__(small.town)  # type: ignore[misc]
    [nuked] = small.witness.nuke(["x"])
    assert nuked.result
    assert not nuked.result.survivors


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unwritable for root")
def test_a_town_without_permission_to_write_is_one_line(place: Place) -> None:
    (place.town.root / ".runtime").chmod(0o500)
    try:
        _one_line(gt(place.work, "polecat", "spawn", "y", "--agent", "sleep 9"))
    finally:
        (place.town.root / ".runtime").chmod(0o700)


# -- a town that is moved or deleted --------------------------------------------------------------------------------


@pytest.mark.real
def test_a_town_that_was_moved_goes_on_in_its_new_place(place: Place, tmp_path: Path) -> None:
    """The Witness of the old place leaves by itself; the next command starts one that adopts who lives."""
    (place.town.root / "settings" / "witness.yaml").write_text(SETTINGS + "patrol_interval: 100ms\n")
    spawned = place.spawn("x", AGENT, daemon=True)
    old = town_witness.witness_process(place.town)
    assert old
    moved = place.town.root.rename(tmp_path / "moved")
    try:
        assert not wait_gone({old}, 20)
        assert not place.town.root.exists()
        assert "was moved or deleted" in (moved / ".runtime" / "witness" / "witness.log").read_text()
        assert is_alive(spawned.agent)
        assert gt_json(moved, "witness", "patrol")["checked"] == 1
        done = gt(moved, "polecat", "nuke", "x")
        assert (done.returncode, "none survived" in done.stdout) == (0, True), done
        assert not is_alive(spawned.agent)
        assert gt(moved, "witness", "stop").returncode == 0
    finally:
        moved.rename(place.town.root)


@pytest.mark.real
def test_the_witness_of_a_deleted_town_leaves(place: Place) -> None:
    (place.town.root / "settings" / "witness.yaml").write_text(SETTINGS + "patrol_interval: 100ms\n")
    spawned = place.spawn("x", AGENT, daemon=True)
    old = town_witness.witness_process(place.town)
    assert old
    members = {member.process for member in place.members("x").values() if member.process}
    shutil.rmtree(place.town.root)
    try:
        assert not wait_gone({old}, 20)
        assert is_alive(spawned.agent), "nobody is ended whose record is gone"
        assert not place.town.root.exists()
    finally:
        for process in members:
            place.kill(process)


@pytest.mark.real
def test_a_done_waits_for_a_locked_journal(place: Place) -> None:
    """An agent says it once; somebody who copies the journal holds it for longer than any transaction of ours."""
    spawned = place.spawn("x", AGENT)
    environment = bare_environment() | {"GT_WITNESS_GROUP": spawned.group.marker}
    with closing(sqlite3.connect(place.town.journal_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        command = [*GT, "done"]
        done = subprocess.Popen(command, cwd=place.town.root, env=environment, stderr=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):  # longer than the five seconds of everybody else
            done.wait(8)
        other.execute("ROLLBACK")
    _, said = done.communicate(timeout=40)
    # It bears the polecat's marker, and on a busy machine may end with it before it has said good-bye.
    assert said == ""
    assert not wait_gone({spawned.agent}, 20)
    assert [event.kind for event in place.witness.journal.history(spawned.group.run)].count("done") == 1
