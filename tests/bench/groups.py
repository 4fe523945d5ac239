"""Our own demands on ourselves: nukes, respawns, a hundred sidecars, a patrol over five hundred groups."""

from __future__ import annotations

import os
import select
import shlex
import signal
import statistics
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.bench.measure import identity, milliseconds, pss, replaced_after, share_of_core
from tests.bench.supervision import scratch
from tests.bench.table import Row
from tests.bench.towns import ScratchTown
from tests.programs import BY_NAME, recording
from witness.clock import SystemClock
from witness.journal import Group, GroupState, Member, MemberKind, MemberState
from witness.names import MARKER_VARIABLE, GroupId
from witness.process import ProcessId

_SLEEP = "sleep 300"
_GROUPS = 25
_NUKES = 9
_RESPAWNS = 15
_IDLE_SECONDS = 10.0
_PATROLLED = 500


def nukes() -> list[Row]:
    """The end of groups, as a library call: one that obeys, one that ignores TERM, twenty-five at once."""
    grace = 1000.0
    with ScratchTown() as town, scratch() as name:
        plain = [_nuke(town, "plain", Path(name), number) for number in range(_NUKES)]
        stubborn = [_nuke(town, "stubborn", Path(name), 100 + number) for number in range(3)]
        many = _nuke_many(town, "plain", Path(name), _GROUPS)
        deaf = _nuke_many(town, "stubborn", Path(name), _GROUPS)
    return [
        _demand("a group that obeys TERM, ms", milliseconds(plain), 50.0),
        _demand("a group that ignores TERM, ms beyond its grace", (milliseconds(stubborn) or 0) - grace, 50.0),
        _demand("twenty-five groups at once, ms", many * 1000),
        _demand("twenty-five that ignore TERM at once, ms beyond their grace", deaf * 1000 - grace),
    ]


def _demand(what: str, measured: float | None, most: float | None = None) -> Row:
    met = None if most is None or measured is None else measured <= most
    return Row({"what": what, "measured": measured, "at most": most, "met": met})


def _nuke(town: ScratchTown, kind: str, folder: Path, number: int) -> float:
    place = folder / f"{kind}{number}"
    place.mkdir()
    with recording(place) as record:
        agent = shlex.join(BY_NAME[kind].argv(record.path))
        town.witness.spawn(f"p{number}", workdir=town.work, agent=agent, sidecars="", witness=False)
        record.wait_stands()
        began = time.monotonic()
        [nuked] = town.witness.nuke([f"p{number}"])
        span = time.monotonic() - began
        assert nuked.result
        assert not record.survivors(0)
        return span


def _nuke_many(town: ScratchTown, kind: str, folder: Path, count: int) -> float:
    with ExitStack() as stack:
        records = []
        for number in range(count):
            place = folder / f"{kind}-of-many{number}"
            place.mkdir()
            records.append(stack.enter_context(recording(place)))
            agent = shlex.join(BY_NAME[kind].argv(records[-1].path))
            town.witness.spawn(f"m{number}", workdir=town.work, agent=agent, sidecars="", witness=False)
        for record in records:
            record.wait_stands()
        began = time.monotonic()
        ended = town.witness.nuke([f"m{number}" for number in range(count)])
        span = time.monotonic() - began
        assert len(ended) == count
        assert not any(record.survivors(0) for record in records)
        return span


def respawns() -> list[Row]:
    """From `kill -9` of a sidecar, with the Witness running, until its successor exists, and until it observes."""
    existing, observing = [], []
    with ScratchTown() as town:
        town.witness.spawn("toast", workdir=town.work, agent=_SLEEP, sidecars=town.four_sidecars())
        fork_server = town.fork_server
        assert fork_server
        for _ in range(_RESPAWNS):
            # The crash before is forgotten after a second; a second crash within it would have to wait.
            select.select([], [], [], 1.2)
            member = town.sidecars()[0]
            assert member.process
            pid = member.process.pid
            began = time.monotonic()
            span = replaced_after(fork_server.pid, pid, lambda pid=pid: os.kill(pid, signal.SIGKILL))  # type: ignore[misc]
            existing += [span] if span is not None else []
            observing.append(town.wait_running(1, began)[0].since - began)
    return [
        _demand("a sidecar's successor exists, ms", milliseconds(existing), 5.0),
        _demand("it observes, ms", milliseconds(observing), 50.0),
    ]


def hundred_sidecars() -> list[Row]:
    """A hundred sidecars of twenty-five polecats: their start, their memory, their idling."""
    with ScratchTown() as town:
        specs = town.four_sidecars()
        began = time.monotonic()
        for number in range(_GROUPS):
            town.witness.spawn(f"p{number}", workdir=town.work, agent=_SLEEP, sidecars=specs)
        spawned = time.monotonic() - began
        count = 4 * _GROUPS
        town.wait_running(count, 0.0)
        daemon, fork_server = town.daemon, town.fork_server
        assert daemon
        assert fork_server
        pids = [member.process.pid for member in town.sidecars() if member.process]
        each = [pss([pid]) for pid in pids]
        rows = [
            _demand("25 spawns one after the other, s", spawned),
            _demand("memory of a sidecar (PSS), MiB", statistics.mean(each), 8.0),
            _demand("memory of the Witness (PSS), MiB", pss([daemon.pid]), 25.0),
            _demand("memory of the fork server (PSS), MiB", pss([fork_server.pid])),
            _demand("the Witness, % of a core", share_of_core([daemon.pid], _IDLE_SECONDS), 0.5),
            _demand("a hundred sidecars, % of a core", share_of_core(pids, _IDLE_SECONDS), 3.0),
        ]
        began = time.monotonic()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        up = max(member.since for member in town.wait_running(count, began)) - began
        rows.append(_demand("a hundred killed at once, until all observe again, s", up, 2.0))
    return rows


def patrols() -> list[Row]:
    """Processor time of one patrol over five hundred groups with two thousand processes, in a process of its own."""
    with ScratchTown() as town:
        _populate(town, _PATROLLED)
        first, second, third = (_processor_time(town.witness.patrol) for _ in range(3))
        living = len(town.witness.polecats())
        assert living == _PATROLLED, f"the patrol took {_PATROLLED - living} sound groups for dead"
        return [
            _demand("the first patrol (every marker is read), ms", first, 150.0),
            _demand("each further one of a running Witness, ms", min(second, third), 150.0),
        ]


def _processor_time(work: Callable[[], object]) -> float:
    before = os.times()
    work()
    after = os.times()
    # Children too: tmux's client is one.
    return 1000 * (sum(after[:4]) - sum(before[:4]))


def _populate(town: ScratchTown, count: int) -> None:
    """Groups as a spawn leaves them, with four processes each that cost little."""
    clock = SystemClock()
    fifo = town.work / "here"
    os.mkfifo(fifo)
    told = os.open(fifo, os.O_RDWR)
    script = f'sleep 300 & A=$!; sleep 300 & B=$!; sleep 300 & echo "$0 $$ $A $B $!" >{shlex.quote(str(fifo))}; wait'
    groups = [GroupId("main", f"g{number}", f"{number:032x}") for number in range(count)]
    for group in groups:
        session = town.town.session(group.rig, group.polecat)
        subprocess.run(
            ["tmux", "-L", town.town.socket, "new-session", "-d", "-s", session, "-e",
             f"{MARKER_VARIABLE}={group.marker}", "sh", "-c", script, group.polecat],
            check=True, stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
    text = ""
    while text.count("\n") < count:
        text += os.read(told, 65536).decode()
    os.close(told)
    pids = {
        words[0]: [ProcessId(*identity(int(pid))) for pid in words[1:]]
        for words in map(str.split, text.split("\n"))
        if words
    }
    now = clock.monotonic()
    journal = town.witness.journal
    with journal.transaction():
        for group in groups:
            journal.groups.add(
                Group(
                    group,
                    town.town.session(group.rig, group.polecat),
                    GroupState.RUNNING,
                    clock.boot,
                    now,
                    clock.wall(),
                    str(town.work),
                    agent=("sleep", "300"),
                )
            )
            (town.town.run_dir(group.run) / "beats").mkdir(parents=True)
            for name, kind, process in zip(_NAMES, _KINDS, pids[group.polecat], strict=True):
                journal.members.add(Member(group.run, name, kind, MemberState.RUNNING, process, "scope", since=now))


_NAMES = ("reaper", "keeper", "agent", "scope")
_KINDS = (MemberKind.REAPER, MemberKind.REAPER, MemberKind.AGENT, MemberKind.SIDECAR)
