"""A session's memory from its start to its end: load, add, save.

These are what the spawn of a polecat, the command line and a party call. Each does its writing through the store, so
that a session that dies at any point has lost nothing that was acknowledged.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from sidecars.memory.briefing import polecat_briefing
from sidecars.memory.paths import ROOT_VARIABLE, check_agent
from sidecars.memory.protocol import apply
from sidecars.memory.record import Entry, Sidecar
from sidecars.memory.store import MemoryStore
from witness.clock import Clock
from witness.errors import UsageError
from witness.names import GroupId

MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class SessionId:
    """Which session is meant.

    Args:
        name: what memories name as their source: a polecat's run, a party's id, or a date.
        holder: who sits in it; its next session saves one that ended without a word.
    """

    name: str
    holder: str = MANUAL

    @classmethod
    def of_group(cls, group: GroupId) -> SessionId:
        """The session of a polecat's run."""
        return cls(group.run, group.address)


def manual_session(store: MemoryStore, agent: str, *, fresh: bool = False) -> SessionId:
    """The session of somebody who is in no polecat: the open one, else one named by the date.

    Args:
        store: the project's memories.
        agent: whose session.
        fresh: begin a new one.
    """
    sessions = store.read(agent).books.sessions.items()
    current = [name for name, session in sessions if session.holder == MANUAL and session.is_open]
    return SessionId(current[-1] if current and not fresh else store.now)


@dataclass(frozen=True, slots=True)
class Gains:
    """What a session brought, all of it optional.

    Args:
        memories: as ``{"content", "type", "basis", "evidence", "tags"}``.
        relations: pairs (relationship, other agent), one for each time that it was seen.
        decisions: as ``{"dr_id", "role", "position", "outcome"}``.
        used: ids of memories that were used again.
    """

    memories: tuple[Mapping[str, Any], ...] = ()
    relations: tuple[tuple[str, str], ...] = ()
    decisions: tuple[Mapping[str, Any], ...] = ()
    used: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Saved:
    """A session that was saved.

    Args:
        sidecar: the memory after it.
        refused: one line for each thing that broke a rule and was left out.
    """

    sidecar: Sidecar
    refused: tuple[str, ...] = field(default=())


def load(
    store: MemoryStore, agent: str, session: SessionId, is_over: Callable[[str], bool] = lambda name: False
) -> Sidecar:
    """Begin a session: save what a crashed one left, make an empty memory when there is none.

    Args:
        store: the project's memories.
        agent: whose session.
        session: which; one that is known already just goes on.
        is_over: whether an open session of somebody else is known to have ended (a run that was nuked).

    Raises:
        UsageError: the agent's name is not usable.
        MemoryBusyError, MemoryFileError: the memory is out of reach.
    """
    others = store.read(agent).books.sessions.items()
    over = [name for name, other in others if other.is_open and name != session.name and is_over(name)]
    store.change(agent, "open", session.name, {"holder": session.holder, "over": over})
    return store.fold(agent)


def _operations(gains: Gains) -> Iterable[tuple[str, Mapping[str, Any]]]:
    yield from (("use", {"id": used}) for used in gains.used)
    yield from (("add", memory) for memory in gains.memories)
    yield from (("relate", {"kind": kind, "other": other}) for kind, other in gains.relations)
    yield from (("decide", decision) for decision in gains.decisions)


def save(store: MemoryStore, agent: str, session: SessionId, gains: Gains | None = None) -> Saved:
    """End a session: take in what it brought, count it, let what was not reinforced fade, write the file.

    A session is counted once and its gains are taken in once, however often this is told.

    Raises:
        MemoryBusyError, MemoryFileError: the memory is out of reach.
    """
    allowed, refused = _allowed(store.read(agent), session, gains or Gains())
    applied = store.change(agent, "close", session.name, {"holder": session.holder, "gains": allowed})
    refused += applied.refused
    return Saved(store.fold(agent), tuple(f"{agent}: {line}" for line in refused))


def _allowed(
    sidecar: Sidecar, session: SessionId, gains: Gains
) -> tuple[list[tuple[str, Mapping[str, Any]]], tuple[str, ...]]:
    # Tried before anything is written: what is refused, a secret above all, must not reach the journal.
    allowed, refused = [], []
    for op, data in _operations(gains):
        entry = Entry(uuid4().hex, sidecar.last_updated, session.name, op, data)
        try:
            sidecar = apply(sidecar, entry).sidecar
            allowed.append((op, data))
        except UsageError as error:
            refused.append(str(error))
    return allowed, tuple(refused)


# -- for the spawn and the end of a polecat -------------------------------------------------------------------------


def briefing(
    project_root: Path,
    agent: str,
    task: str = "",
    *,
    group: GroupId | None = None,
    is_over: Callable[[str], bool] = lambda name: False,
    clock: Clock | None = None,
) -> str:
    """Begin a polecat's session and return what goes into its minimal prompt.

    Args:
        project_root: whose memories (``place.find_root`` of the working directory).
        agent: the agent's name in the memory, not the polecat's.
        task: the polecat's task; it decides which memories are told.
        group: the polecat's run; None for a session by hand.
        is_over: whether another run is known to have ended; see ``load``.
        clock: where the dates come from.

    Raises:
        UsageError: the agent's name is not usable.
        WitnessError: the memory is out of reach.
    """
    store = MemoryStore(project_root, clock)
    session = SessionId.of_group(group) if group else manual_session(store, agent, fresh=True)
    return polecat_briefing(load(store, agent, session, is_over), task)


def end_session(
    project_root: Path,
    agent: str,
    *,
    group: GroupId | None = None,
    gains: Gains | None = None,
    clock: Clock | None = None,
) -> Saved:
    """End a polecat's session: safe to call twice, and for a run that crashed.

    Args: as for ``briefing``; ``gains`` is what the session brought beyond what the agent added itself.

    Raises:
        WitnessError: the memory is out of reach; what was added stands in the journal.
    """
    store = MemoryStore(project_root, clock)
    session = SessionId.of_group(group) if group else manual_session(store, agent)
    return save(store, agent, session, gains)


def environment(project_root: Path, agent: str) -> dict[str, str]:
    """What the polecat's environment needs, so that ``gt memory`` in its worktree finds the same memory."""
    return {ROOT_VARIABLE: str(project_root), "GT_MEMORY_AGENT": check_agent(agent)}


# What the agent's client does for the memory by itself: fold before compaction, save at the end, tell it anew after.
#
# The client's context is rebuilt at a compaction, so what the prompt said of the memory is lost there unless it is
# told again. The three events run one command, `gt memory hook`.

# Seconds; the client allows 1.5 s for all hooks of SessionEnd unless an entry asks for more.
_TIMEOUT = 20
# After these a client's session goes on under another name.
_GOES_ON = ("clear", "resume")
# At these the context is new and the prompt that held the memory is gone.
_STARTS_ANEW = ("compact", "clear")


def memory_hooks(agent: str) -> dict[str, list[dict[str, Any]]]:
    """Entries for the ``hooks`` of a client's settings, by event.

    Args:
        agent: the agent's checked name.
    """
    handler = {
        "type": "command",
        # One line, which a client of any version runs; old ones know no "args". -P: the agent's working directory must
        # not be able to put its own modules in front of ours.
        "command": shlex.join([sys.executable, "-P", "-m", "witness.cli", "memory", "hook", agent]),
        "timeout": _TIMEOUT,
    }
    return {
        "SessionStart": [{"matcher": "|".join(_STARTS_ANEW), "hooks": [handler]}],
        "PreCompact": [{"hooks": [handler]}],
        "SessionEnd": [{"hooks": [handler]}],
    }


def with_memory_hooks(settings: Mapping[str, Any], agent: str) -> dict[str, Any]:
    """A client's settings with the memory's entries after those that it has."""
    hooks = {event: list(entries) for event, entries in settings.get("hooks", {}).items()}
    for event, entries in memory_hooks(agent).items():
        hooks[event] = [*hooks.get(event, []), *entries]
    return {**settings, "hooks": hooks}


def on_event(store: MemoryStore, agent: str, session: SessionId, event: Mapping[str, Any]) -> str:
    """Do what one of the client's events asks for.

    Args:
        store: the project's memories.
        agent: whose memory.
        session: the session that the client runs.
        event: the hook's input.

    Returns:
        What the agent is to be told; empty for nothing.
    """
    name = event.get("hook_event_name")
    if name == "SessionStart":
        return polecat_briefing(store.fold(agent)) if event.get("source") in _STARTS_ANEW else ""
    if name == "SessionEnd" and event.get("reason") not in _GOES_ON:
        save(store, agent, session)
    elif name in ("PreCompact", "SessionEnd"):
        store.fold(agent)
    return ""
