"""Looks at the process table: whom one misses, it counts."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from witness.process import ProcessId
from witness.process.looks import Looks
from witness.process.table import LINUX, Markers, identify

pytestmark = pytest.mark.skipif(not LINUX, reason="elsewhere psutil reads the table")


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as started:
        yield started
        started.kill()


def _identity(child: subprocess.Popen[bytes]) -> ProcessId:
    found = identify(child.pid)
    assert found
    return found


def _end(child: subprocess.Popen[bytes]) -> None:
    """End it, and leave it defunct."""
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


def test_one_that_ended_since_the_last_look_is_missed_once(child: subprocess.Popen[bytes]) -> None:
    looks = Looks(Markers())
    assert child.pid not in looks.take().missed
    _end(child)
    assert child.pid in looks.take().missed
    assert child.pid not in looks.take().missed


def test_one_that_is_gone_when_it_is_read_is_missed(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = [os.getpid(), child.pid]
    monkeypatch.setattr("witness.process.looks.list_pids", lambda: pids)
    child.kill()
    child.wait()
    look = Looks(Markers()).take()
    assert look.missed == {child.pid}
    assert list(look.table) == [os.getpid()]


def test_one_that_ends_before_its_environment_is_read_is_missed(child: subprocess.Popen[bytes]) -> None:
    class Late(Markers):
        def marks(self, table):  # type: ignore[no-untyped-def]
            _end(child)
            return super().marks(table)

    assert child.pid in Looks(Late()).take().missed


def test_a_look_during_which_pids_begin_anew_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([4000, 12, 13, 14])
    monkeypatch.setattr("witness.process.looks.newest_pid", lambda: next(answers))
    monkeypatch.setattr("witness.process.looks.list_pids", lambda: [os.getpid()])
    looks = Looks(Markers())
    assert looks.take().missed == {4000}
    assert not looks.take().missed


def test_a_later_look_of_a_row_reads_what_is_new(child: subprocess.Popen[bytes]) -> None:
    looks, known = Looks(Markers()), _identity(child)
    looks.take()
    with subprocess.Popen(["sleep", "60"]) as newer:
        look = looks.take(afresh=False)
        assert look.table[newer.pid].process == _identity(newer)
        assert look.table[child.pid].process == known
        newer.kill()
    assert newer.pid not in looks.take(afresh=False).table
