"""Starting a polecat: its folder, its pane, its reaper, its agent."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness.errors import SpawnError
from witness.files import clear_place, make_folder, parse_json, replace_file, report_of, typed
from witness.names import MARKER_VARIABLE
from witness.process import ProcessId
from witness.process.table import is_alive, read_marker
from witness.tmux import Pane, Tmux

# A python that starts and forks twice needs 50 ms; a machine under full load may need a hundred times that.
_START_SECONDS = 20.0
# What stands in the session's own environment: Gas Town's doctor looks there for what its agent is called.
_OF_SESSION = (MARKER_VARIABLE, "GT_AGENT", "GT_PROCESS_NAMES")
_SIZE = (220, 50)
#: In a run's folder: what its screen showed last, and how many lines of it; the reaper has the same.
LAST_SCREEN, LAST_LINES = "screen.txt", 200
_REAPER = Path(__file__).with_name("reaper.py")


@dataclass(frozen=True, slots=True)
class StartedPolecat:
    """The processes of a polecat that runs.

    Args:
        reaper: the pane's first process.
        keeper: its second half.
        agent: the agent itself.
        pane: as tmux sees it.
    """

    reaper: ProcessId
    keeper: ProcessId
    agent: ProcessId
    pane: Pane


def make_run_dir(run_dir: Path) -> None:
    """Make a run's folder, closed to everybody else.

    Raises:
        OSError: it cannot be made, or something else stands there.
    """
    for name in ("spool", "beats", "logs", "exits", "sidecars"):
        make_folder(run_dir / name, below=run_dir.parent.parent)


def start_polecat(
    tmux: Tmux,
    session: str,
    run_dir: Path,
    argv: list[str],
    workdir: Path,
    environment: Mapping[str, str],
    grace: float,
    cgroup: str = "",
    limits: Sequence[str] = (),
    outer: Tmux | None = None,
) -> StartedPolecat:
    """Start the agent in a new tmux session, below its reaper.

    Args:
        tmux: the town's tmux.
        session: name of the session.
        run_dir: the run's folder, made by ``make_run_dir``.
        argv: the agent.
        workdir: where it works.
        environment: its whole environment; it may hold keys, so it goes through a private file that the reaper removes.
        grace: seconds that the reaper gives to what the agent leaves behind.
        cgroup: the group's own cgroup, which the reaper goes into; empty for none.
        limits: the cgroups that bound the agent, which it goes into or does not start.
        outer: the tmux that holds the polecat that we ourselves run in, if any.

    Raises:
        SpawnError: the agent could not be started; the pane may still stand.
        TmuxError: tmux could not make the session.
    """
    launch: dict[str, Any] = {"argv": argv, "cwd": str(workdir), "environment": dict(environment), "grace": grace}
    launch |= {"cgroup": cgroup, "limits": list(limits)}
    replace_file(run_dir / "launch.json", json.dumps(launch), durable=False, below=run_dir.parent)
    with _fifo(run_dir / "started.fifo") as fifo:
        pane = tmux.new_session(
            session,
            str(workdir),
            [sys.executable, "-S", "-I", str(_REAPER), str(run_dir)],
            {name: environment[name] for name in _OF_SESSION if name in environment},
            _SIZE,
            outer,
        )
        line = _first_line(fifo, pane.pid)
    try:
        fact = _checked(parse_json(line)) if line else read_started(run_dir)
    except ValueError:
        fact = None
    if not fact:
        raise SpawnError(session, "its reaper did not report a start")
    if "error" in fact:
        raise SpawnError(session, fact["error"])
    return StartedPolecat(ProcessId(*fact["reaper"]), ProcessId(*fact["keeper"]), ProcessId(*fact["agent"]), pane)


def read_started(run_dir: Path, told: Callable[[str], None] | None = None) -> dict[str, Any] | None:
    """What the reaper reported: ``reaper``, ``keeper`` and ``agent`` as [pid, start], or ``error``; None so far.

    Args:
        run_dir: the run's folder.
        told: hears what is wrong with the report, in one line.
    """
    path = run_dir / "started.json"
    fact = report_of(path, below=run_dir.parent, told=told)
    try:
        return None if fact is None else _checked(fact)
    except ValueError as error:
        if told is not None:
            told(f"{path}: {error}")
        return None


def reported_processes(run_dir: Path, marker: str, told: Callable[[str], None] | None = None) -> dict[str, ProcessId]:
    """The processes that the reaper reported, as far as they are the group's.

    The agent can write that report too, so it is a hint: one that lives must carry the group's marker. None of the
    report counts where that fails.

    Args:
        run_dir: the run's folder.
        marker: the group's marker.
        told: hears what is wrong with the report, in one line.
    """
    report = read_started(run_dir, told) or {}
    names = ("reaper", "keeper", "agent")
    found: dict[str, ProcessId] = {name: ProcessId(*report[name]) for name in names if name in report}
    for process in found.values():
        if is_alive(process) and read_marker(process.pid).marker != marker:
            if told is not None:
                told(f"{run_dir / 'started.json'} names process {process.pid}, which is not of this run: not believed")
            return {}
    return found


def _checked(fact: Any) -> dict[str, Any]:
    if typed(fact, "error", str, ""):
        return {"error": fact["error"]}
    found = {}
    for name in ("reaper", "keeper", "agent"):
        if name in fact:
            numbers = typed(fact, name, list)
            if len(numbers) != 2 or any(type(each) is not int or not 0 < each < 1 << 63 for each in numbers):
                raise ValueError(f"{name!r} must be [pid, start]")
            found[name] = numbers
    return found


@contextmanager
def _fifo(path: Path) -> Iterator[int]:
    clear_place(path)
    os.mkfifo(path, 0o600)
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)
        clear_place(path)


def _first_line(fifo: int, pane_pid: int) -> str:
    """Wait for the reaper's report, or for its end."""
    poller = select.poll()
    poller.register(fifo, select.POLLIN)
    try:
        death = os.pidfd_open(pane_pid) if hasattr(os, "pidfd_open") else -1
    except OSError:
        death = -1
    try:
        if death >= 0:
            poller.register(death, select.POLLIN)
        ready = {handle for handle, _ in poller.poll(_START_SECONDS * 1000)}
        return os.read(fifo, 4096).decode() if fifo in ready or death in ready else ""
    finally:
        if death >= 0:
            os.close(death)
