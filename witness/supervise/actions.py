"""What a patrol can decide to do. Frozen records, so that a plan can be compared with another."""

from __future__ import annotations

from dataclasses import dataclass

from witness.journal import Member, RunStateChanges
from witness.process import ProcessId
from witness.supervise.lifecycle import GroupEvent, MemberEvent


@dataclass(frozen=True, slots=True)
class AdoptPolecat:
    """Record the processes that a reaper reported, which its spawner could not record any more."""

    run: str
    reaper: ProcessId
    keeper: ProcessId
    agent: ProcessId


@dataclass(frozen=True, slots=True)
class MoveMember:
    """Something happened to a member.

    Args:
        before: the record it was decided on.
        event: what happened.
        after: the record with everything changed but the state, which the table of states gives.
    """

    before: Member
    event: MemberEvent
    after: Member


@dataclass(frozen=True, slots=True)
class StartSidecar:
    """Start a sidecar's process; ``event`` is what allows it (spawn, retry_due or reset)."""

    member: Member
    event: MemberEvent | None


@dataclass(frozen=True, slots=True)
class EndProcess:
    """End one process of ours (a hung or a doubled sidecar)."""

    run: str
    process: ProcessId
    reason: str


@dataclass(frozen=True, slots=True)
class MoveGroup:
    """Something happened to a group."""

    run: str
    event: GroupEvent


@dataclass(frozen=True, slots=True)
class ReportZombie:
    """Say once that a group was found in a class of zombie; an empty class says that it recovered."""

    run: str
    zombie: str


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell the rig's witness, once, in one line."""

    run: str
    message: str


@dataclass(frozen=True, slots=True)
class ChangeRunState:
    """Remember facts about the group (first sight of a missing session, last sign of life)."""

    run: str
    changes: RunStateChanges


@dataclass(frozen=True, slots=True)
class Saw:
    """Remember descendants, and forget those that are gone."""

    run: str
    new: frozenset[ProcessId]
    gone: frozenset[ProcessId]


@dataclass(frozen=True, slots=True)
class Nuke:
    """End the group."""

    run: str
    reason: str


@dataclass(frozen=True, slots=True)
class EndOrphans:
    """End marked processes of a run that is over."""

    run: str
    processes: frozenset[ProcessId]


Action = (
    AdoptPolecat | MoveMember | StartSidecar | EndProcess | MoveGroup | ReportZombie | Tell | ChangeRunState | Saw
    | Nuke | EndOrphans
)  # fmt: skip
