"""The states of a member (one process) and of a group (a polecat with its sidecars).

Theory of operation. A group is recorded, then its members: a reaper, a keeper and an agent (the leaders) and any
number of sidecars. What a member or a group *is* stands in its state; what somebody *wants* of it (run, done, nuke)
is an intent of the group, and what the patrol *thinks* of it (zombie classes) an opinion: three separate columns of
the journal.

A leader has a short life. It is DECLARED with its group, RUNNING once the reaper has reported its pid, and is never
tried again: that it has ended is the end of the run, which is a matter of the group (ZOMBIE, then NUKING). A sidecar
is tried again: SPAWNING until its first sign of life, RUNNING, BACKOFF between a crash and the next try, FAILED when
it crashed too often within the settings' window; FAILED decays by itself (``reset``). Both end alike: STOPPING is
written before the first signal, STOPPED after the check that nothing is left, LOST where something was. LOST is no
resting place: the next round stops it again.

A group is SPAWNING until all its members run, DEGRADED while a sidecar does not, DONE from the agent's own word until
its grace is over, ZOMBIE when it cannot go on, NUKING from the intent to the proof, NUKED at the end. Only NUKED is
final.

Every change of state anywhere goes through ``next_member`` or ``next_group``. A pair that is not listed raises and
changes nothing; every pair that is listed is taken by the executor or the plan (``tests/supervise/test_states.py``).
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

# Ending is the same for every process; what may follow LOST is another try to end it.
_ENDING: Mapping[MemberState, Mapping[MemberEvent, MemberState]] = {
    _S.STOPPING: {_E.TREE_GONE: _S.STOPPED, _E.SURVIVORS: _S.LOST},
    _S.LOST: {_E.STOP: _S.STOPPING},
    _S.STOPPED: {},
}
_SIDECAR: Mapping[MemberState, Mapping[MemberEvent, MemberState]] = {
    _S.DECLARED: {_E.SPAWN: _S.SPAWNING, _E.STOP: _S.STOPPED},
    _S.SPAWNING: {
        _E.READY: _S.RUNNING,
        _E.SPAWN_FAILED: _S.BACKOFF,
        _E.EXITED: _S.BACKOFF,
        _E.STOP: _S.STOPPING,
    },
    _S.RUNNING: {_E.EXITED: _S.BACKOFF, _E.HUNG: _S.BACKOFF, _E.STOP: _S.STOPPING},
    _S.BACKOFF: {_E.RETRY_DUE: _S.SPAWNING, _E.RETRIES_SPENT: _S.FAILED, _E.STOP: _S.STOPPING},
    _S.FAILED: {_E.RESET: _S.SPAWNING, _E.STOP: _S.STOPPING},
    **_ENDING,
}
_LEADER: Mapping[MemberState, Mapping[MemberEvent, MemberState]] = {
    _S.DECLARED: {_E.ADOPTED: _S.RUNNING, _E.STOP: _S.STOPPED},
    _S.RUNNING: {_E.STOP: _S.STOPPING},
    **_ENDING,
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
