"""The two tables of states, pair by pair, against the picture that people are shown."""

from __future__ import annotations

import itertools

import pytest

from witness.journal import GroupState, MemberKind, MemberState
from witness.supervise.lifecycle import GroupEvent, IllegalMoveError, MemberEvent, next_group, next_member

# Written by hand from the design, one line a move; what is not written is forbidden.
_ENDING = """
STOPPING tree_gone STOPPED
STOPPING survivors LOST
LOST stop STOPPING
"""
_SIDECAR = f"""
DECLARED spawn SPAWNING
DECLARED stop STOPPED
SPAWNING ready RUNNING
SPAWNING spawn_failed BACKOFF
SPAWNING exited BACKOFF
SPAWNING stop STOPPING
RUNNING exited BACKOFF
RUNNING hung BACKOFF
RUNNING stop STOPPING
BACKOFF retry_due SPAWNING
BACKOFF retries_spent FAILED
BACKOFF stop STOPPING
FAILED reset SPAWNING
FAILED stop STOPPING
{_ENDING}"""
_LEADER = f"""
DECLARED adopted RUNNING
DECLARED stop STOPPED
RUNNING stop STOPPING
{_ENDING}"""
_GROUP = """
SPAWNING complete RUNNING
SPAWNING sidecar_down DEGRADED
SPAWNING done DONE
SPAWNING found_zombie ZOMBIE
SPAWNING nuke NUKING
RUNNING sidecar_down DEGRADED
RUNNING done DONE
RUNNING found_zombie ZOMBIE
RUNNING nuke NUKING
DEGRADED complete RUNNING
DEGRADED done DONE
DEGRADED found_zombie ZOMBIE
DEGRADED nuke NUKING
DONE found_zombie ZOMBIE
DONE nuke NUKING
ZOMBIE recovered RUNNING
ZOMBIE done DONE
ZOMBIE nuke NUKING
NUKING gone NUKED
"""


def _moves(text: str) -> dict[tuple[str, str], str]:
    return {(state, event): new for state, event, new in (line.split() for line in text.splitlines() if line)}


def _member_moves(kind: MemberKind) -> dict[tuple[str, str], str]:
    return _moves(_SIDECAR if kind is MemberKind.SIDECAR else _LEADER)


@pytest.mark.parametrize("kind", list(MemberKind))
@pytest.mark.parametrize(("state", "event"), list(itertools.product(MemberState, MemberEvent)))
def test_every_pair_of_a_member(kind: MemberKind, state: MemberState, event: MemberEvent) -> None:
    expected = _member_moves(kind).get((state, event))
    if expected is None:
        with pytest.raises(IllegalMoveError, match=f"{state} .*{event}"):
            next_member(kind, state, event)
    else:
        assert next_member(kind, state, event) == expected


@pytest.mark.parametrize(("state", "event"), list(itertools.product(GroupState, GroupEvent)))
def test_every_pair_of_a_group(state: GroupState, event: GroupEvent) -> None:
    expected = _moves(_GROUP).get((state, event))
    if expected is None:
        with pytest.raises(IllegalMoveError, match=f"{state} .*{event}"):
            next_group(state, event)
    else:
        assert next_group(state, event) == expected


@pytest.mark.parametrize("kind", list(MemberKind))
def test_every_member_that_may_have_a_process_can_be_stopped(kind: MemberKind) -> None:
    reachable = {MemberState.DECLARED, *map(MemberState, _member_moves(kind).values())}
    for state in reachable - {MemberState.STOPPING, MemberState.STOPPED}:
        assert next_member(kind, state, MemberEvent.STOP) in (MemberState.STOPPING, MemberState.STOPPED)


def test_every_group_that_is_not_over_can_be_nuked() -> None:
    for state in set(GroupState) - {GroupState.NUKING, GroupState.NUKED}:
        assert next_group(state, GroupEvent.NUKE) is GroupState.NUKING
    assert next_group(GroupState.NUKING, GroupEvent.GONE) is GroupState.NUKED
