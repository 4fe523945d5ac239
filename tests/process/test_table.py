"""Identity, kinship and signals against the kernel's own table."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.programs import BY_NAME, recording
from witness.process import ProcessId, table
from witness.process.table import (
    HELPER,
    GroupMembership,
    Mark,
    Markers,
    Row,
    ancestors,
    identify,
    is_alive,
    read_table,
    send,
    usage_of,
)

LINUX_ONLY = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
MARKER = f"main/toast/{os.getpid()}"


@contextmanager
def _sleeper(**environment: str) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(["sleep", "60"], env={"PATH": os.environ["PATH"], **environment})
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def _me(child: subprocess.Popen[bytes]) -> ProcessId:
    found = identify(child.pid)
    assert found
    return found


def test_a_living_process_is_identified_the_same_way_every_time() -> None:
    with _sleeper() as child:
        me = _me(child)
        assert me.known
        assert me == _me(child) == read_table()[child.pid].process
        assert is_alive(me)
        assert is_alive(me, read_table())


def test_a_process_that_waits_to_be_reaped_is_dead() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    row = table.look_up(child.pid)
    assert row
    assert row.defunct
    assert not is_alive(row.process)
    assert identify(child.pid) is None
    assert not send(row.process, signal.SIGTERM)
    child.wait()
    assert not is_alive(row.process)


@LINUX_ONLY
def test_a_process_whose_first_thread_has_ended_is_alive(tmp_path: Path) -> None:
    with recording(tmp_path) as record:
        leader = subprocess.Popen(BY_NAME["headless"].argv(record.path), start_new_session=True)
        try:
            record.wait_stands()
            headless = [ProcessId(*each) for each in record.living() if each[0] != leader.pid]
            assert headless
            assert all(is_alive(process) and is_alive(process, read_table()) for process in headless)
        finally:
            leader.kill()
            leader.wait()


def test_a_later_owner_of_the_pid_is_never_signalled() -> None:
    with _sleeper() as child:
        former = ProcessId(child.pid, _me(child).started - 1)
        assert not is_alive(former)
        assert not is_alive(former, read_table())
        assert not send(former, signal.SIGKILL)
        assert child.poll() is None


def test_what_a_process_uses_is_of_exactly_that_process() -> None:
    with _sleeper() as child:
        own = identify(os.getpid())
        assert own
        mine = usage_of(own)
        assert mine
        assert mine.memory > 0
        assert mine.processor > 0
        usage = usage_of(_me(child))
        assert usage
        assert 0 <= usage.processor < 60
        assert usage_of(ProcessId(child.pid, _me(child).started - 1)) is None


@pytest.mark.parametrize("process", [ProcessId(0, 5), ProcessId(1, 5), ProcessId(-1, 5)])
def test_no_signal_without_a_full_identity(process: ProcessId) -> None:
    assert not process.known
    assert not send(process, signal.SIGCONT)


def test_an_unknown_creation_time_is_not_signalled() -> None:
    with _sleeper() as child:
        assert not send(ProcessId(child.pid, 0), signal.SIGKILL)
        assert child.poll() is None


def test_send_reaches_exactly_that_process() -> None:
    with _sleeper() as child:
        assert send(_me(child), signal.SIGTERM)
        assert child.wait(10) == -signal.SIGTERM


@LINUX_ONLY
def test_a_name_with_parentheses_and_spaces_is_read(tmp_path: Path) -> None:
    odd = tmp_path / ") Z 1 (x"
    odd.symlink_to("/bin/sleep")
    child = subprocess.Popen([odd, "60"])
    try:
        row = read_table()[child.pid]
        assert row.parent == os.getpid()
        assert not row.defunct
    finally:
        child.kill()
        child.wait()


def test_the_portable_reading_knows_the_same_processes() -> None:
    with _sleeper() as child:
        row = table.read_psutil()[child.pid]
        assert row.parent == os.getpid()
        assert row.process.started > 0
        assert not row.defunct


def test_ancestors_hold_the_process_and_all_above() -> None:
    line = ancestors(os.getpid(), read_table())
    assert {os.getpid(), os.getppid()} <= line


def test_ancestors_of_a_loop_end() -> None:
    table = {5: Row(ProcessId(5, 1), 6, False), 6: Row(ProcessId(6, 1), 5, False)}
    assert ancestors(5, table) == {5, 6}


# -- markers --------------------------------------------------------------------------------------------------------


def test_the_marker_is_read_from_the_environment_of_others() -> None:
    with _sleeper(GT_WITNESS_GROUP=MARKER) as marked, _sleeper(NOT_GT_WITNESS_GROUP="x/y/z") as bare:
        carried = Markers().read(read_table())
        assert carried[_me(marked)] == MARKER
        assert _me(bare) not in carried


@pytest.mark.parametrize("settled", [100, -1], ids=["young", "settled"])
def test_a_marker_that_comes_with_an_exec_is_seen_at_the_next_look(
    settled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "SETTLED", settled)
    script = f"read go; GT_WITNESS_GROUP={MARKER} exec cat"
    child = subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"PATH": os.environ["PATH"]}
    )
    assert child.stdin
    assert child.stdout
    try:
        markers, me = Markers(), _me(child)
        assert me not in markers.read(read_table())
        assert me not in markers.read(read_table())
        child.stdin.write(b"go\nover\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"over\n"  # by cat: the exec is done
        assert markers.read(read_table())[me] == MARKER
    finally:
        child.kill()
        child.communicate()


# -- kinship (pure) -------------------------------------------------------------------------------------------------


def _table(*rows: tuple[int, int]) -> dict[int, Row]:
    return {pid: Row(ProcessId(pid, pid * 10), parent, False) for pid, parent in rows}


def _ids(*pids: int) -> set[ProcessId]:
    return {ProcessId(pid, pid * 10) for pid in pids}


def test_a_group_is_recorded_and_marked_processes_and_all_below_them() -> None:
    table = _table((1, 0), (10, 1), (11, 10), (12, 11), (20, 1), (21, 20), (30, 1))
    kinship = GroupMembership(table, {ProcessId(20, 200): Mark(MARKER)})
    assert kinship.group(MARKER, _ids(10)) == _ids(10, 11, 12, 20, 21)


def test_a_recorded_pid_that_belongs_to_somebody_else_now_counts_for_nothing() -> None:
    kinship = GroupMembership(_table((1, 0), (10, 1), (11, 10)), {})
    assert kinship.group(MARKER, {ProcessId(10, 7)}) == set()


def test_foreign_ones_are_left_out_with_all_below_them() -> None:
    table = _table((1, 0), (10, 1), (11, 10), (12, 11), (13, 10))
    assert GroupMembership(table, {}).group(MARKER, _ids(10), _ids(11)) == _ids(10, 13)


def test_a_child_that_carries_another_groups_marker_is_still_a_child() -> None:
    """It could write that marker itself; what is another group's by record is foreign."""
    table = _table((1, 0), (10, 1), (11, 10), (12, 11))
    kinship = GroupMembership(table, {ProcessId(11, 110): Mark(f"{MARKER}-2", "%2")})
    assert kinship.group(MARKER, _ids(10)) == _ids(10, 11, 12)
    assert kinship.group(MARKER, _ids(10), _ids(11)) == _ids(10)
    assert kinship.group(f"{MARKER}-2", set(), pane="%2") == _ids(11, 12)


def test_a_marker_alone_is_an_export_and_no_proof() -> None:
    table = _table((1, 0), (10, 1), (20, 1), (30, 1), (40, 1), (41, 40))
    marks = {10: Mark(MARKER, "%3"), 20: Mark(MARKER, "%4"), 30: Mark(MARKER), 40: Mark(MARKER, HELPER)}
    kinship = GroupMembership(table, {ProcessId(pid, pid * 10): mark for pid, mark in marks.items()})
    assert kinship.group(MARKER, set(), pane="%3") == _ids(10, 40, 41)


def test_a_defunct_process_is_nobody() -> None:
    table = {**_table((1, 0), (10, 1)), 11: Row(ProcessId(11, 110), 10, True)}
    assert GroupMembership(table, {}).group(MARKER, _ids(10, 11)) == _ids(10)


def test_the_tops_of_a_set() -> None:
    kinship = GroupMembership(_table((1, 0), (10, 1), (11, 10), (20, 1)), {})
    assert set(kinship.roots(_ids(10, 11, 20))) == _ids(10, 20)


@pytest.mark.parametrize("error", [psutil.AccessDenied(1), OSError(22, "EINVAL"), ValueError("no number")])
def test_what_cannot_be_looked_at_is_unknown_and_not_dead(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(table, "LINUX", False)
    me = table.identify(os.getpid())
    assert me
    real = psutil.Process.create_time

    def create_time(self: psutil.Process) -> float:
        if self.pid == me.pid:
            raise error
        return real(self)

    monkeypatch.setattr(psutil.Process, "create_time", create_time)
    rows = table.read_table()
    assert len(rows) > 1
    assert table.is_alive(me, rows)
    assert table.is_alive(me)
    assert not table.is_alive(ProcessId(1 << 22, me.started), rows)
    assert not table.send(me, 0)  # what is not known is not signalled


@LINUX_ONLY
def test_without_a_descriptor_to_look_with_nobody_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    me = table.identify(os.getpid())
    assert me

    def no_more(*_: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "open", no_more)
    assert table.is_alive(me)
    assert not table.is_alive(ProcessId(me.pid, me.started), {})
