"""Stopping an agent's processes for a while, and letting them go on.

The intent is written first, so a pause that is broken off is known and ``resume`` undoes whatever part of it was done.
The reapers and the sidecars go on: they hold the tree together, and have nothing to see.
"""

from __future__ import annotations

import os
import signal

from witness.api.witness import Witness
from witness.clock import SystemClock
from witness.errors import UsageError, WitnessError
from witness.journal import Group, GroupState, Intent, MemberKind
from witness.nuke import target
from witness.process import ProcessId
from witness.process.table import GroupMembership, Markers, Table, ancestors, read_table, send

_ROUNDS = 20


def pause_polecat(witness: Witness, group: Group) -> int:
    """Stop a polecat's agent with all that it has started.

    Args:
        witness: of its town.
        group: which.

    Returns:
        How many processes were stopped.

    Raises:
        UsageError: it is not ours to stop, is about to end, or the caller runs inside of it.
        WitnessError: it starts processes faster than they can be stopped; then all of them go on again.
    """
    if group.run_state.followed:
        raise UsageError(f"{group.id.address} was not started by us: it is not ours to pause")
    if group.state not in (GroupState.RUNNING, GroupState.DEGRADED) or group.intent is not Intent.RUN:
        raise UsageError(f"{group.id.address} is {group.state}: only one that runs can be paused")
    if os.getpid() in {each.pid for each in _tree(witness, group, read_table(), inside=True)}:
        raise UsageError(f"we run inside of {group.id.address}: pause it from outside")
    clock = SystemClock()
    witness.journal.groups.change(group.id.run, paused_at=group.run_state.paused_at or clock.wall())
    stopped: set[ProcessId] = set()
    for _ in range(_ROUNDS):
        fresh = _tree(witness, group, read_table()) - stopped
        if not fresh:
            witness.journal.note(clock.wall(), "paused", group.id.run, processes=len(stopped))
            return len(stopped)
        for process in fresh:
            send(process, signal.SIGSTOP)
        stopped |= fresh
    resume_polecat(witness, group)
    raise WitnessError(f"{group.id.address} starts processes faster than they can be stopped: it goes on")


def resume_polecat(witness: Witness, group: Group) -> bool:
    """Let a polecat go on; False when it was not paused.

    Args:
        witness: of its town.
        group: which.
    """
    found = witness.journal.groups.get(group.id.run)
    if found is None or found.run_state.paused_at is None:
        return False
    clock = SystemClock()
    for process in _tree(witness, group, read_table()):
        send(process, signal.SIGCONT)
    # Its silence was not its own.
    witness.journal.groups.change(group.id.run, paused_at=None, activity_at=clock.monotonic())
    witness.journal.note(clock.wall(), "resumed", group.id.run)
    return True


def _tree(witness: Witness, group: Group, table: Table, *, inside: bool = False) -> set[ProcessId]:
    """The processes of a group that are the agent's.

    Args:
        witness: of its town.
        group: which.
        table: the process table.
        inside: the caller and its ancestors too.
    """
    members = witness.journal.members.of(group.id.run)
    goal = target(group, members, witness.journal.groups.seen(group.id.run))
    found = GroupMembership(table, Markers().marks(table)).group(goal.marker, goal.recorded, pane=goal.pane)
    others = {each.process for each in members if each.process and each.kind is not MemberKind.AGENT}
    sidecars = {each.process.pid for each in members if each.process and each.kind is MemberKind.SIDECAR}
    ours = set() if inside else {os.getpid(), *ancestors(os.getpid(), table)}
    return {
        process
        for process in found - others
        if process.pid not in ours and not sidecars & set(ancestors(process.pid, table))
    }
