"""Deciding what to do about what was seen. Pure: no I/O, no clock, the same snapshot gives the same plan."""

from __future__ import annotations

from collections.abc import Iterator

from witness.config.settings import Settings
from witness.journal import Group, GroupState, Intent, MemberState
from witness.supervise.actions import (
    Action,
    AdoptPolecat,
    ChangeRunState,
    EndOrphans,
    MoveGroup,
    Nuke,
    ReportZombie,
    Saw,
)
from witness.supervise.lifecycle import GroupEvent
from witness.supervise.plan_sidecars import plan_sidecars
from witness.supervise.snapshot import GroupFact, Presence, Snapshot

AGENT_DEAD, SESSION_GONE, DONE_STUCK, HUNG = "agent-dead", "session-gone", "done-stuck", "hung"
SPAWN_FAILED = "spawn-failed"
# The share of one core that a tree uses on the average while it is at work; a client that only draws uses less.
_AT_WORK = 0.05


def plan(snapshot: Snapshot) -> list[Action]:
    """Everything that this snapshot asks for, in the order in which it is to be done."""
    actions: list[Action] = []
    for fact in snapshot.groups:
        actions += _plan_group(fact, snapshot, snapshot.settings[fact.group.id.rig])
    actions += [EndOrphans(run, processes) for run, processes in sorted(snapshot.orphans.items())]
    return actions


def _plan_group(fact: GroupFact, snapshot: Snapshot, settings: Settings) -> Iterator[Action]:
    group = fact.group
    if fact.busy and group.state in (GroupState.SPAWNING, GroupState.NUKING):
        # The process that spawns or ends it is alive and will finish; but a spawn waits for its sidecars to be started.
        if group.state is GroupState.SPAWNING and _agent_recorded(fact):
            yield from plan_sidecars(fact, snapshot, settings)
            yield from _group_health(fact)
        return
    if group.run_state.followed:
        yield from _plan_followed(fact, snapshot, settings)
        return
    if snapshot.deep and snapshot.boot == group.boot:
        yield from _remember_descendants(fact)
    if group.state is GroupState.NUKING or group.intent is Intent.NUKE:
        yield Nuke(group.id.run, group.intent_note or "nuke")
    elif group.state is GroupState.SPAWNING and not _agent_recorded(fact):
        yield from _finish_or_undo_spawn(fact, snapshot, settings)
    elif group.intent is Intent.DONE:
        yield from _plan_done(fact, snapshot, settings)
    elif zombie := _dead_class(fact):
        yield ReportZombie(group.id.run, zombie)
        yield from _end_zombie(group, zombie)
    else:
        yield from _plan_living(fact, snapshot, settings)


def _plan_followed(fact: GroupFact, snapshot: Snapshot, settings: Settings) -> Iterator[Action]:
    """A polecat that Gas Town has started: its health is Gas Town's business, its sidecars are ours."""
    group, agent = fact.group, fact.member("agent")
    if group.state is GroupState.NUKING or group.intent is Intent.NUKE:
        yield Nuke(group.id.run, group.intent_note or "nuke")
    elif group.intent is Intent.DONE:
        yield Nuke(group.id.run, "done")
    elif snapshot.boot != group.boot or agent is None or not agent.alive:
        yield Nuke(group.id.run, "session-end")
    else:
        yield from plan_sidecars(fact, snapshot, settings)
        yield from _group_health(fact)


def _agent_recorded(fact: GroupFact) -> bool:
    agent = fact.member("agent")
    return bool(agent and agent.member.process)


def _remember_descendants(fact: GroupFact) -> Iterator[Action]:
    recorded = {each.member.process for each in fact.members}
    new = fact.descendants - fact.seen - recorded
    gone = fact.seen - fact.descendants
    if new or gone:
        yield Saw(fact.group.id.run, frozenset(new), frozenset(gone))


def _finish_or_undo_spawn(fact: GroupFact, snapshot: Snapshot, settings: Settings) -> Iterator[Action]:
    """The spawner is gone. What its reaper reported is finished, anything less is undone."""
    group, started = fact.group, fact.started
    if snapshot.boot != group.boot:
        yield Nuke(group.id.run, SPAWN_FAILED)
    elif started and {"reaper", "keeper", "agent"} <= set(started):
        yield AdoptPolecat(group.id.run, started["reaper"], started["keeper"], started["agent"])
    elif (
        fact.session is Presence.ABSENT
        or started == {}
        or (not snapshot.late and snapshot.now - group.spawned_at > settings.spawn_deadline)
    ):
        yield Nuke(group.id.run, SPAWN_FAILED)


def _plan_done(fact: GroupFact, snapshot: Snapshot, settings: Settings) -> Iterator[Action]:
    group = fact.group
    if group.state is not GroupState.DONE and group.state is not GroupState.ZOMBIE:
        yield MoveGroup(group.id.run, GroupEvent.DONE)
    same_boot = snapshot.boot == group.boot
    since = snapshot.now - group.intent_at if same_boot else settings.done_settle
    agent = fact.member("agent")
    if same_boot and not snapshot.late and since > settings.done_grace and agent and agent.alive:
        yield ReportZombie(group.id.run, DONE_STUCK)
    if since >= settings.done_settle or not (agent and agent.alive):
        yield Nuke(group.id.run, "done")


def _dead_class(fact: GroupFact) -> str:
    """The class of a group whose polecat is gone for certain; empty while it lives or nothing certain is known."""
    agent = fact.member("agent")
    if agent and agent.member.process and not agent.alive:
        # A session ends together with its agent, so its absence alone does not tell which of them went first.
        if agent.exit.code is not None:
            return SESSION_GONE if agent.exit.hangup else AGENT_DEAD
        return SESSION_GONE if fact.session is Presence.ABSENT else AGENT_DEAD
    # tmux says for the second time in a row that the session is not there: it is an agent without a terminal.
    if fact.session is Presence.ABSENT and fact.group.run_state.session_missing is not None:
        return SESSION_GONE
    return ""


def _end_zombie(group: Group, zombie: str) -> Iterator[Action]:
    if group.state is not GroupState.ZOMBIE:  # it is one already where a Witness was killed before the end
        yield MoveGroup(group.id.run, GroupEvent.FOUND_ZOMBIE)
    yield Nuke(group.id.run, zombie)


def _plan_living(fact: GroupFact, snapshot: Snapshot, settings: Settings) -> Iterator[Action]:
    group = fact.group
    if snapshot.deep:
        missing = fact.session is Presence.ABSENT
        if missing != (group.run_state.session_missing is not None) and fact.session is not Presence.UNKNOWN:
            yield ChangeRunState(group.id.run, {"session_missing": snapshot.now if missing else None})
        if group.run_state.paused_at is None:
            yield from _plan_silence(fact, snapshot, settings)
    yield from plan_sidecars(fact, snapshot, settings)
    yield from _group_health(fact)


def _plan_silence(fact: GroupFact, snapshot: Snapshot, settings: Settings) -> Iterator[Action]:
    """Tell a hung agent by its silence: no event, no heartbeat, no output and no work for the whole limit."""
    group = fact.group
    (token, used), known_at = _signs(group.run_state.activity), group.run_state.activity_at
    at = snapshot.now if known_at is None else known_at
    silent = snapshot.now - at
    # A long build says nothing: what it uses of the processor since the last sign of life is one, too.
    works = (
        silent > settings.hung_after
        and fact.used is not None
        and used is not None
        and fact.used - used >= _AT_WORK * silent
    )
    if fact.activity != token or snapshot.late or works:
        # After a late look the count begins anew: the silence may have been the machine's.
        signs = fact.activity if fact.used is None else f"{fact.activity}@{fact.used:.2f}"
        yield ChangeRunState(group.id.run, {"activity": signs, "activity_at": snapshot.now})
        if group.zombie == HUNG and (fact.activity != token or works):
            yield from _recovered(group)
    elif silent > settings.hung_after:
        if group.zombie != HUNG:
            yield ReportZombie(group.id.run, HUNG)
        if settings.nuke_hung:
            yield from _end_zombie(group, HUNG)


def _signs(recorded: str) -> tuple[str, float | None]:
    """The token of the last sign of life, and the processor time that the tree had used by then."""
    token, at, used = recorded.rpartition("@")
    return (token, float(used)) if at else (recorded, None)


def _recovered(group: Group) -> Iterator[Action]:
    yield ReportZombie(group.id.run, "")
    if group.state is GroupState.ZOMBIE:
        yield MoveGroup(group.id.run, GroupEvent.RECOVERED)


def _group_health(fact: GroupFact) -> Iterator[Action]:
    """RUNNING when every sidecar runs, DEGRADED when one does not; a spawn ends in one of the two."""
    states = {each.member.state for each in fact.sidecars}
    state = fact.group.state
    if state is GroupState.SPAWNING and states & {MemberState.DECLARED, MemberState.SPAWNING}:
        return
    if states <= {MemberState.RUNNING}:
        if state in (GroupState.SPAWNING, GroupState.DEGRADED):
            yield MoveGroup(fact.group.id.run, GroupEvent.COMPLETE)
    elif state in (GroupState.SPAWNING, GroupState.RUNNING):
        yield MoveGroup(fact.group.id.run, GroupEvent.SIDECAR_DOWN)
