from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from witness.process import ProcessId, exits
from witness.process.exits import ExitWatch, open_exit_handle, wait_gone
from witness.process.table import identify


@contextmanager
def _child(*argv: str) -> Iterator[tuple[subprocess.Popen[bytes], ProcessId]]:
    child = subprocess.Popen(argv or ("sleep", "60"))
    me = identify(child.pid)
    assert me
    try:
        yield child, me
    finally:
        child.kill()
        child.wait()


@pytest.fixture(params=["handles", "polling"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tests with the kernel's handles and without them (macOS, too many open files)."""
    if request.param == "polling":
        monkeypatch.setattr(exits, "open_exit_handle", lambda process: None)


@pytest.mark.usefixtures("_both_ways")
def test_the_one_that_ends_is_told_and_the_other_not() -> None:
    with _child() as (first, one), _child() as (_, two), ExitWatch() as watch:
        assert watch.add(one)
        assert watch.add(two)
        first.kill()
        assert watch.wait(10) == {one}
        assert watch.wait(0) == set()


@pytest.mark.usefixtures("_both_ways")
def test_who_is_gone_already_is_not_watched() -> None:
    with _child() as (child, me):
        child.kill()
        child.wait()
        with ExitWatch() as watch:
            assert not watch.add(me)


@pytest.mark.usefixtures("_both_ways")
def test_an_unreaped_child_counts_as_ended() -> None:
    with _child() as (child, me), ExitWatch() as watch:
        watch.add(me)
        os.kill(child.pid, signal.SIGKILL)
        assert watch.wait(10) == {me}


@pytest.mark.usefixtures("_both_ways")
def test_waiting_ends_with_the_limit_and_names_who_lives() -> None:
    with _child() as (_, me):
        began = time.monotonic()
        assert wait_gone([me], 0.1) == {me}
        assert 0.1 <= time.monotonic() - began < 5


@pytest.mark.usefixtures("_both_ways")
def test_waiting_ends_with_the_last_of_many() -> None:
    with ExitStack() as stack:
        children = [stack.enter_context(_child()) for _ in range(20)]
        for child, _ in children:
            child.terminate()
        assert wait_gone([me for _, me in children], 20) == set()


def test_a_recycled_pid_is_not_watched() -> None:
    with _child() as (_, me):
        assert open_exit_handle(ProcessId(me.pid, me.started - 1)) is None
        assert wait_gone([ProcessId(me.pid, me.started - 1)], 0) == set()


def test_a_handle_turns_readable_at_the_end() -> None:
    with _child() as (child, me):
        handle = open_exit_handle(me)
        if handle is None:
            pytest.skip("no pidfds here")
        try:
            assert not select.select([handle], [], [], 0)[0]
            child.kill()
            assert select.select([handle], [], [], 10)[0]
        finally:
            os.close(handle)
