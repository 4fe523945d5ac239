"""Starting a polecat again where it was: a new run that goes on from the last one.

Theory of operation. Everything that the new run needs is in the journal: folder, command, task, variables, limits, the
sidecars with their arguments. It is checked first, as at a spawn, while the old run is untouched. The worktree is then
given to the new run and marked as kept, so that the end of the old one judges nothing; the old run is ended; the new
one is recorded, and takes over what the sidecars have said, for the caps hold over both. A crash in between leaves a
worktree that is kept, and ``restart`` can be said again.
"""

from __future__ import annotations

import re
from pathlib import Path

from witness.agents.clients import client_for
from witness.api.witness import Witness
from witness.clock import SystemClock
from witness.declare.sidecar_spec import SidecarSpec, format_specs
from witness.errors import UsageError, WitnessError
from witness.journal import Group, GroupState, MemberKind, Worktree, WorktreeState
from witness.launch.spawn_request import MemoryProvider, SidecarCheck, SpawnRequest
from witness.state.activity import last_events
from witness.supervise.spawn import SpawnResult
from witness.worktrees.place import hand_over_laid

_CONVERSATION = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
# Runs that are looked through for a conversation: a restart may have failed before its client began.
_EARLIER = 5


def restart_polecat(
    witness: Witness,
    name: str,
    *,
    fresh: bool = False,
    memory_provider: MemoryProvider | None = None,
    check: SidecarCheck | None = None,
) -> SpawnResult:
    """End a polecat if it lives, and start it again where it was.

    Args:
        witness: of its town.
        name: as for ``Witness.find``; its last run when it has ended.
        fresh: begin a new conversation.
        memory_provider, check: as in ``SpawnRequest``.

    Raises:
        DeclarationError, UsageError: it cannot be started as it was; the old run is untouched.
        WitnessError: the old run did not end, or the new one did not start.
    """
    group = witness.find(name, ended=True)
    if group.run_state.followed:
        raise UsageError(f"{group.id.address} was not started by us: it is not ours to restart")
    if not Path(group.workdir).is_dir():
        gone = witness.journal.worktrees.get(group.id.run)
        why = f": {gone.reason}" if gone and gone.reason else ""
        raise UsageError(f"{group.workdir} is gone{why}; spawn {group.id.polecat} anew")
    conversation = "" if fresh else _conversation(witness, group)
    plan_request = _request(group, witness, conversation, memory_provider, check)
    prepared = witness.prepare(plan_request)
    found = _worktree_of(witness, group)
    if found:
        hand_over_laid(witness.town, found.run, prepared.group.run)
        witness.journal.worktrees.hand_over(
            found.run, prepared.group.run, SystemClock().wall(), "its polecat is being restarted"
        )
    if group.state is not GroupState.NUKED:
        (ended,) = witness.end([group], reason="restart")
        if ended.result is None:
            raise UsageError(f"we run inside of {group.id.address}: restart it from outside")
        if ended.result.survivors:
            pids = ", ".join(str(each.process.pid) for each in ended.result.survivors)
            raise WitnessError(f"{group.id.address} was not restarted: still alive: {pids}")
    return witness.spawn_prepared(prepared)


def of_last_boot(witness: Witness) -> list[Group]:
    """The polecats of ours that a restart of the machine has ended."""
    clock = SystemClock()
    began = clock.wall() - clock.monotonic()
    ended = {group.id.run for group in witness.journal.groups.ended(began)}
    return [
        group
        for group in witness.journal.groups.last_of_each()
        if group.boot != clock.boot
        and not group.run_state.followed
        and (group.state is not GroupState.NUKED or (group.id.run in ended and group.intent_note in _BY_NOBODY))
    ]


# Why the patrol ends a group whose processes have gone with the machine.
_BY_NOBODY = ("agent-dead", "session-gone", "spawn-failed")


def _request(
    group: Group,
    witness: Witness,
    conversation: str,
    memory_provider: MemoryProvider | None,
    check: SidecarCheck | None,
) -> SpawnRequest:
    import shlex

    members = witness.journal.members.of(group.id.run)
    specs = tuple(
        SidecarSpec(each.name, each.type, each.argument) for each in members if each.kind is MemberKind.SIDECAR
    )
    variables = {name: value for name, value in group.run_state.variables.items() if name != "sidecars"}
    return SpawnRequest(
        group.id.polecat,
        rig=group.id.rig,
        workdir=Path(group.workdir),
        sidecars=format_specs(specs),
        variables=variables,
        task=group.run_state.task,
        agent=shlex.join(group.agent),
        limits=dict(group.run_state.limits),
        memory=variables.get("memory", ""),
        memory_provider=memory_provider,
        check=check,
        worktree=False,
        continues=group.id.run,
        conversation=conversation,
    )


def _worktree_of(witness: Witness, group: Group) -> Worktree | None:
    """The worktree that the run works in, also where a restart that failed has taken it over."""
    for found in witness.journal.worktrees.standing():
        inside = Path(group.workdir).is_relative_to(found.path)
        if inside and (found.rig, found.polecat) == (group.id.rig, group.id.polecat):
            return found if found.state is not WorktreeState.REMOVED else None
    return None


def _conversation(witness: Witness, group: Group) -> str:
    """The client's own id of its conversation; empty where it has no way back to one, or none is known."""
    if not client_for(group.agent).resume:
        return ""
    run = group.id.run
    for _ in range(_EARLIER):
        last = last_events(witness.town.run_dir(run) / "spool").last
        known = last.payload.get("session_id") if last else None
        if isinstance(known, str) and _CONVERSATION.fullmatch(known):
            return known
        before = [e.data.get("before") for e in witness.journal.history(run, 1000) if e.kind == "restarted"]
        if not before or not isinstance(before[-1], str):
            return ""
        run = before[-1]
    return ""
