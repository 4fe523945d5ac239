"""Seeing Gas Town's polecats: their panes, their agents, their heartbeats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

from witness.config.town import Town
from witness.files import read_json
from witness.gastown.follow_plan import ObservedPolecat
from witness.process import ProcessId
from witness.process.table import Table, command_line, process_name
from witness.tmux import Pane

# What a pane may run before, or around, the agent itself.
_SHELLS = frozenset(["sh", "bash", "dash", "zsh", "fish", "ksh"])
_WRAPPERS = frozenset(["env", "sudo", "login"])


def see(town: Town, panes: Iterable[Pane], read: Callable[[], Table]) -> Iterator[ObservedPolecat]:
    """Every polecat of Gas Town whose session stands and in whose pane an agent runs.

    Args:
        town: a Gas Town.
        panes: all panes of its tmux.
        read: reads the process table; not asked when no session could be a polecat's.
    """
    table: Table = {}
    below: dict[int, list[int]] = {}
    seen: set[str] = set()
    # The oldest first: what a person has opened beside the agent is none of ours.
    for pane in sorted(panes, key=lambda each: each.age):
        if pane.session in seen:
            continue
        parsed = town.parse_session(pane.session)
        # A registered prefix and a worktree: sessions that only look like polecats are people's own.
        if pane.dead or parsed is None or parsed[1] != "polecat" or parsed[0] not in town.prefixes:
            continue
        rig, _, polecat = parsed
        workdir = town.worktree(rig, polecat)
        if workdir is None:
            continue
        if not table:
            table = read()
            for pid, row in table.items():
                below.setdefault(row.parent, []).append(pid)
        agent = _agent(pane.pid, table, below)
        if agent is None:
            continue
        seen.add(pane.session)
        state, at, explicit = read_heartbeat(town, pane.session)
        yield ObservedPolecat(rig, polecat, pane.session, agent, str(workdir), state, at, explicit, pane.id)


def _agent(pid: int, table: Table, below: dict[int, list[int]]) -> ProcessId | None:
    """The first process in a pane that is no shell; None while there are only shells."""
    waiting = [pid]
    while waiting:
        current = waiting.pop(0)
        row = table.get(current)
        if row is None or row.defunct:
            continue
        if not _is_shell(row.process):
            return row.process
        waiting += sorted(below.get(current, ()))
    return None


def _is_shell(process: ProcessId) -> bool:
    name = process_name(process).lstrip("-")
    if name in _WRAPPERS:
        return True
    # An agent may itself be a shell script: a shell with a file to run is none that waits for something.
    words = command_line(process).split()
    return name in _SHELLS and (len(words) < 2 or words[1].startswith("-"))


def read_heartbeat(town: Town, session: str) -> tuple[str, float, bool]:
    """What a polecat last reported.

    Returns:
        (state, wall clock, whether it said its state itself); ("", 0, False) without a readable heartbeat.
    """
    try:
        path = town.root / ".runtime" / "heartbeats" / f"{session}.json"
        raw: Any = read_json(path, below=town.root / ".runtime")
        at = datetime.fromisoformat(_micro(str(raw["timestamp"]))).timestamp()
        state = str(raw.get("state") or "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "", 0.0, False
    return state or "working", at, bool(state)


def _micro(text: str) -> str:
    """Go writes nanoseconds, Python reads microseconds."""
    head, dot, tail = text.replace("Z", "+00:00").partition(".")
    if not dot:
        return head
    digits = tail[: len(tail) - len(tail.lstrip("0123456789"))]
    return f"{head}.{digits[:6]:0<6}{tail[len(digits) :]}"
