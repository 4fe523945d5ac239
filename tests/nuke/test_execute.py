"""Ending groups of real processes; ``tests/real/test_awkward.py`` has the awkward kinds."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.programs import BY_NAME, Record, alive
from tests.waiting import until
from witness.clock import SystemClock
from witness.nuke import Target, TerminationResult, end_groups, foreign_to, is_inside
from witness.process import ProcessId
from witness.process.table import Table, identify, read_table

GRACE = 0.3
# Tests run side by side on one machine: each process of pytest has groups of its own.
OURS = f"main/toast/{os.getpid()}"
OTHERS = f"main/other/{os.getpid()}"


class Stage:
    """Starts programs and knows what of them lives."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack, self._number = folder, stack, 0

    def program(self, name: str, marker: str = "") -> tuple[Record, ProcessId]:
        self._number += 1
        record = Record(self._folder, f"{name}-{self._number}")
        self._stack.callback(record.end)
        environment = {"PATH": os.environ["PATH"], **({"GT_WITNESS_GROUP": marker} if marker else {})}
        leader = self.start(BY_NAME[name].argv(record.path), environment)
        record.wait_stands()
        return record, leader

    def start(self, argv: list[str], environment: dict[str, str] | None = None) -> ProcessId:
        child = subprocess.Popen(argv, start_new_session=True, env=environment)
        self._stack.callback(child.wait)
        self._stack.callback(child.kill)
        me = identify(child.pid)
        assert me
        return me

    def sleeper(self, marker: str = "") -> ProcessId:
        environment = {"PATH": os.environ["PATH"], **({"GT_WITNESS_GROUP": marker} if marker else {})}
        return self.start(["sleep", "60"], environment)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(tmp_path, stack)


def _nobody(table: Table) -> set[ProcessId]:
    return foreign_to(table, (), ())


def _target(*recorded: ProcessId, run: str = "run1", marker: str = OURS) -> Target:
    return Target(run, marker, frozenset(recorded))


def _end(*targets: Target, grace: float = GRACE) -> list[TerminationResult]:
    return end_groups(targets, _nobody, grace)


def _lives(process: ProcessId) -> bool:
    return alive((process.pid, process.started))


def test_those_that_obey_are_gone_long_before_the_grace(stage: Stage) -> None:
    record, leader = stage.program("plain")
    (ended,) = _end(_target(leader), grace=30.0)
    assert ended.survivors == ()
    assert ended.ended == 4
    assert ended.seconds < 1.0
    assert not record.survivors()


def test_those_that_ignore_are_killed_right_after_the_grace(stage: Stage) -> None:
    record, leader = stage.program("stubborn")
    (ended,) = _end(_target(leader))
    assert not record.survivors()
    assert not ended.survivors
    assert GRACE <= ended.seconds < GRACE + 1.0


def test_stopped_ones_take_their_term(stage: Stage) -> None:
    sleeper = stage.sleeper()
    os.kill(sleeper.pid, signal.SIGSTOP)
    os.waitpid(sleeper.pid, os.WUNTRACED)
    (ended,) = _end(_target(sleeper), grace=30.0)
    assert ended.seconds < 5
    assert not _lives(sleeper)


@pytest.mark.parametrize("name", ["phoenix", "late", "twins", "chain"])
def test_those_that_fork_when_term_comes(stage: Stage, name: str) -> None:
    record, leader = stage.program(name, OURS)
    (ended,) = _end(_target(leader))
    assert not record.survivors()
    assert not ended.survivors


def test_a_marked_process_that_nobody_recorded_belongs_to_the_group(stage: Stage) -> None:
    unrecorded = stage.sleeper(OURS)
    stranger = stage.sleeper(OTHERS)
    bare = stage.sleeper()
    (ended,) = _end(_target())
    assert ended.ended == 1
    assert not _lives(unrecorded)
    assert _lives(stranger)
    assert _lives(bare)


def test_a_later_owner_of_a_recorded_pid_is_not_touched(stage: Stage) -> None:
    owner = stage.sleeper()
    (ended,) = _end(_target(ProcessId(owner.pid, owner.started - 1)))
    assert ended.ended == 0
    assert ended.survivors == ()
    assert _lives(owner)


def test_a_process_of_unknown_age_is_not_touched(stage: Stage) -> None:
    owner = stage.sleeper()
    _end(_target(ProcessId(owner.pid, 0)))
    assert _lives(owner)


def test_foreign_processes_are_not_touched_wherever_they_descend_from(stage: Stage) -> None:
    script = "import subprocess,sys; [subprocess.Popen(['sleep','60']) for _ in 'ab']; print('up',flush=True); sys.stdin.read()"  # noqa: E501
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout
    assert parent.stdout.readline()
    table = read_table()
    children = sorted(row.process for row in table.values() if row.parent == parent.pid)
    spared, doomed = children
    try:
        mine = identify(parent.pid)
        assert mine
        end_groups([_target(mine)], lambda table: foreign_to(table, [spared], ()), GRACE)
        assert not _lives(doomed)
        assert not _lives(mine)
        assert _lives(spared)
    finally:
        os.kill(spared.pid, signal.SIGKILL)
        parent.wait()
        parent.stdout.close()
        assert parent.stdin
        parent.stdin.close()


def test_the_caller_and_its_ancestors_are_never_touched(stage: Stage) -> None:
    me, parent = identify(os.getpid()), identify(os.getppid())
    assert me
    assert parent
    sleeper = stage.sleeper()
    (ended,) = _end(_target(me, parent, sleeper))
    assert ended.ended == 1
    assert not _lives(sleeper)
    assert _lives(parent)


def test_the_keepers_are_spared_until_they_are_alone(stage: Stage, tmp_path: Path) -> None:
    # A keeper that writes down what signals it gets, and a stubborn companion.
    log = tmp_path / "signals"
    script = (
        "import signal,sys,time\n"
        "def note(n, f): open(sys.argv[1],'a').write(signal.Signals(n).name+'\\n')\n"
        "for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(n, note)\n"
        "open(sys.argv[1],'a').write('up\\n')\n"
        "while True: signal.pause()\n"
    )
    keeper = stage.start([sys.executable, "-c", script, str(log)])
    until(log.exists, "the keeper is not up")
    record, leader = stage.program("stubborn")
    goal = Target("run1", OURS, frozenset({keeper, leader}), frozenset({keeper}))
    (ended,) = _end(goal)
    assert log.read_text() == "up\n"
    assert not record.survivors()
    assert not _lives(keeper)
    assert ended.survivors == ()


def test_many_groups_take_about_as_long_as_one(stage: Stage) -> None:
    goals = []
    for number in range(8):
        _, leader = stage.program("stubborn-child")
        goals.append(_target(leader, run=f"run{number}", marker=f"{OURS}-{number}"))
    began = time.monotonic()
    results = _end(*goals)
    assert time.monotonic() - began < GRACE + 2.0
    assert [each.run for each in results] == [f"run{number}" for number in range(8)]
    assert not any(each.survivors for each in results)


def test_a_group_of_nobody_is_ended_at_once() -> None:
    began = time.monotonic()
    (result,) = _end(_target(), grace=30.0)
    assert result == TerminationResult("run1", 0, (), result.seconds)
    assert result.seconds < 1.0
    assert time.monotonic() - began < 2


def test_what_a_further_net_holds_is_ended_too(stage: Stage) -> None:
    held = stage.sleeper()
    end_groups([_target()], _nobody, GRACE, extra=lambda run: {held.pid} if run == "run1" else set())
    assert not _lives(held)


class _SleepyClock(SystemClock):
    """A minute passes between any two questions: the caller is suspended again and again."""

    passed = 0.0

    def monotonic(self) -> float:
        self.passed += 60.0
        return super().monotonic() + self.passed


@pytest.mark.parametrize("name", ["plain", "stubborn"])
def test_a_caller_that_is_suspended_asks_and_forces_before_it_gives_up(stage: Stage, name: str) -> None:
    record, leader = stage.program(name)
    (ended,) = end_groups([_target(leader)], _nobody, GRACE, clock=_SleepyClock())
    assert ended.survivors == ()
    assert not record.survivors()


def test_a_survivor_is_named(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    # A process in uninterruptible sleep cannot be made here; that signals do nothing looks the same from outside.
    monkeypatch.setattr("witness.nuke.send", lambda process, number: False)
    monkeypatch.setattr("witness.nuke.KILL_SECONDS", 0.1)
    sleeper = stage.sleeper()
    (ended,) = _end(_target(sleeper), grace=0.1)
    assert [(each.process, each.name) for each in ended.survivors] == [(sleeper, "sleep")]
    assert ended.ended == 0
    assert _lives(sleeper)


def test_a_caller_inside_the_group_is_recognised(stage: Stage) -> None:
    parent = identify(os.getppid())
    assert parent
    assert is_inside([_target(parent)], read_table())
    assert not is_inside([_target(stage.sleeper())], read_table())


_CHAIN = """
import os
os.write(1, b"%d\\n" % os.getpid())
while os.read(0, 1):
    if os.fork():
        os._exit(0)
    os.write(1, b"%d\\n" % os.getpid())
"""


class _Chain:
    """A process that on demand forks its successor and ends: the interleaving of a busy machine, at will."""

    def __init__(self, stack: ExitStack) -> None:
        # Started by a shell that ends, so that no link is a child of the test and stays defunct.
        environment = {"PATH": os.environ["PATH"], "GT_WITNESS_GROUP": OURS}
        argv = ["sh", "-c", 'exec 3<&0; "$0" -S -I -c "$1" <&3 & exit 0', sys.executable, _CHAIN]
        shell = subprocess.Popen(
            argv, env=environment, start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        stack.enter_context(shell)
        self._shell = shell
        self.link = self._next()
        stack.callback(self._end)

    def _next(self) -> ProcessId:
        assert self._shell.stdout
        link = identify(int(self._shell.stdout.readline()))
        assert link
        return link

    def advance(self) -> None:
        if not _lives(self.link):
            return
        handle = os.pidfd_open(self.link.pid)
        assert self._shell.stdin
        self._shell.stdin.write(b"n")
        self.link = self._next()
        select.select([handle], [], [])
        os.close(handle)

    def _end(self) -> None:
        if _lives(self.link):
            os.kill(self.link.pid, signal.SIGKILL)


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], _Chain]]:
    """Starts a chain whose living link ends, and forks the next, after each of so many listings of ``/proc``."""
    list_names = os.listdir
    with ExitStack() as stack:

        def start(listings: int) -> _Chain:
            made, left = _Chain(stack), iter(range(listings))

            def list_and_advance(path: str = ".") -> list[str]:
                names = list_names(path)
                if path == "/proc" and next(left, None) is not None:
                    made.advance()
                return names

            monkeypatch.setattr(os, "listdir", list_and_advance)
            return made

        yield start


@pytest.mark.parametrize("listings", [1, 2, 5])
def test_a_successor_forked_between_the_listing_and_the_look_is_found(
    chain: Callable[[int], _Chain], listings: int
) -> None:
    last = chain(listings)
    (ended,) = _end(_target(last.link))
    assert not _lives(last.link)
    assert ended.survivors == ()
    assert ended.ended == 1


def test_what_forks_faster_than_it_can_be_looked_at_is_not_called_gone(
    chain: Callable[[int], _Chain], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("witness.nuke.KILL_SECONDS", 0.2)
    last = chain(100_000)
    (ended,) = _end(_target(last.link), grace=0.1)
    assert _lives(last.link)
    assert ended.survivors
