"""The two lives: of a member (one process) and of a group (a polecat with its sidecars).

Every change of state anywhere goes through ``next_member`` or ``next_group``. A pair that is not listed raises and
changes nothing. Where an event leads to different states for different kinds of member, there is a table for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from witness.errors import WitnessError
from witness.journal import GroupState, MemberKind, MemberState


class MemberEvent(StrEnum):
    """What can happen to a member."""

    SPAWN = "spawn"
    ADOPTED = "adopted"
    READY = "ready"
    SPAWN_FAILED = "spawn_failed"
    EXITED = "exited"
    HUNG = "hung"
    VANISHED = "vanished"
    RETRY_DUE = "retry_due"
    RETRIES_SPENT = "retries_spent"
    RESET = "reset"
    STOP = "stop"
    TREE_GONE = "tree_gone"
    SURVIVORS = "survivors"


class GroupEvent(StrEnum):
    """What can happen to a group."""

    COMPLETE = "complete"
    SIDECAR_DOWN = "sidecar_down"
    DONE = "done"
    FOUND_ZOMBIE = "found_zombie"
    RECOVERED = "recovered"
    NUKE = "nuke"
    GONE = "gone"


class IllegalMoveError(WitnessError):
    """An event that has no place in the state it met: a fault of ours."""

    def __init__(self, state: str, event: str) -> None:
        self.state, self.event = state, event
        super().__init__(f"a {state} member or group cannot take the event {event!r}")


_S, _E = MemberState, MemberEvent

_SIDECAR: Mapping[MemberState, Mapping[MemberEvent, MemberState]] = {
    _S.DECLARED: {_E.SPAWN: _S.SPAWNING, _E.ADOPTED: _S.RUNNING, _E.STOP: _S.STOPPED},
    _S.SPAWNING: {
        _E.READY: _S.RUNNING,
        _E.SPAWN_FAILED: _S.BACKOFF,
        _E.EXITED: _S.BACKOFF,
        _E.VANISHED: _S.LOST,
        _E.STOP: _S.STOPPING,
    },
    _S.RUNNING: {
        _E.EXITED: _S.BACKOFF,
        _E.HUNG: _S.BACKOFF,
        _E.VANISHED: _S.LOST,
        _E.STOP: _S.STOPPING,
    },
    _S.BACKOFF: {_E.RETRY_DUE: _S.SPAWNING, _E.RETRIES_SPENT: _S.FAILED, _E.STOP: _S.STOPPING},
    _S.STOPPING: {_E.TREE_GONE: _S.STOPPED, _E.SURVIVORS: _S.LOST},
    _S.STOPPED: {},
    _S.EXITED: {},
    _S.FAILED: {_E.RESET: _S.SPAWNING, _E.STOP: _S.STOPPING},
    _S.LOST: {_E.ADOPTED: _S.RUNNING, _E.TREE_GONE: _S.STOPPED, _E.STOP: _S.STOPPING},
}
# The polecat itself and its reaper are never respawned: their end is the end of the run.
_LEADER: Mapping[MemberState, Mapping[MemberEvent, MemberState]] = {
    **_SIDECAR,
    _S.SPAWNING: {**_SIDECAR[_S.SPAWNING], _E.EXITED: _S.EXITED, _E.SPAWN_FAILED: _S.EXITED},
    _S.RUNNING: {_E.EXITED: _S.EXITED, _E.VANISHED: _S.LOST, _E.STOP: _S.STOPPING},
    _S.BACKOFF: {},
    _S.FAILED: {},
    _S.EXITED: {_E.STOP: _S.STOPPING},
}

_G, _F = GroupState, GroupEvent

_GROUP: Mapping[GroupState, Mapping[GroupEvent, GroupState]] = {
    _G.SPAWNING: {
        _F.COMPLETE: _G.RUNNING,
        _F.SIDECAR_DOWN: _G.DEGRADED,
        _F.DONE: _G.DONE,
        _F.FOUND_ZOMBIE: _G.ZOMBIE,
        _F.NUKE: _G.NUKING,
    },
    _G.RUNNING: {
        _F.SIDECAR_DOWN: _G.DEGRADED,
        _F.DONE: _G.DONE,
        _F.FOUND_ZOMBIE: _G.ZOMBIE,
        _F.NUKE: _G.NUKING,
    },
    _G.DEGRADED: {
        _F.COMPLETE: _G.RUNNING,
        _F.DONE: _G.DONE,
        _F.FOUND_ZOMBIE: _G.ZOMBIE,
        _F.NUKE: _G.NUKING,
    },
    _G.DONE: {_F.FOUND_ZOMBIE: _G.ZOMBIE, _F.NUKE: _G.NUKING},
    _G.ZOMBIE: {_F.RECOVERED: _G.RUNNING, _F.DONE: _G.DONE, _F.NUKE: _G.NUKING},
    _G.NUKING: {_F.GONE: _G.NUKED},
    _G.NUKED: {},
}


def next_member(kind: MemberKind, state: MemberState, event: MemberEvent) -> MemberState:
    """The state that a member goes to.

    Raises:
        IllegalMoveError: the event has no place in this state.
    """
    table = _SIDECAR if kind is MemberKind.SIDECAR else _LEADER
    try:
        return table[state][event]
    except KeyError:
        raise IllegalMoveError(state, event) from None


def next_group(state: GroupState, event: GroupEvent) -> GroupState:
    """The state that a group goes to.

    Raises:
        IllegalMoveError: the event has no place in this state.
    """
    try:
        return _GROUP[state][event]
    except KeyError:
        raise IllegalMoveError(state, event) from None
