"""The facts that the journal holds, as frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from witness.names import GroupId
from witness.process.identity import ProcessId


class MemberKind(StrEnum):
    """What a process is in its group."""

    REAPER = "reaper"
    AGENT = "agent"
    SIDECAR = "sidecar"


class MemberState(StrEnum):
    """Where a member stands; ``witness.supervise.states`` says what may follow what."""

    DECLARED = "DECLARED"
    SPAWNING = "SPAWNING"
    RUNNING = "RUNNING"
    BACKOFF = "BACKOFF"
    FAILED = "FAILED"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    EXITED = "EXITED"
    LOST = "LOST"


class GroupState(StrEnum):
    """Where a group stands."""

    SPAWNING = "SPAWNING"
    RUNNING = "RUNNING"
    DEGRADED = "DEGRADED"
    DONE = "DONE"
    ZOMBIE = "ZOMBIE"
    NUKING = "NUKING"
    NUKED = "NUKED"


class Intent(StrEnum):
    """What somebody wants of a group; a fact about people, not about processes."""

    RUN = "run"
    DONE = "done"
    NUKE = "nuke"


@dataclass(frozen=True, slots=True)
class Group:
    """One run of a polecat.

    Args:
        id: rig, polecat and run.
        session: its tmux session.
        state: where it stands.
        intent: what is wanted of it.
        intent_at: monotonic seconds at which the intent was recorded.
        intent_note: the exit status given to ``gt done``, or why it is nuked.
        boot: the boot within which the monotonic stamps mean something.
        spawned_at: monotonic seconds at which the spawn began.
        created: wall clock of the same instant, for people.
        workdir: where the agent works.
        molecule: where its declaration came from, empty when none.
        agent: the agent's argument list.
        zombie: the class it was found in, empty when none; reported once per change.
        details: whatever else the spawn wants remembered (task, variables, containment).
    """

    id: GroupId
    session: str
    state: GroupState
    boot: str
    spawned_at: float
    created: float
    workdir: str
    agent: tuple[str, ...] = ()
    molecule: str = ""
    intent: Intent = Intent.RUN
    intent_at: float = 0.0
    intent_note: str = ""
    zombie: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Member:
    """One process of a group, declared or alive.

    Args:
        run: the run it belongs to.
        name: unique in its group: ``reaper``, ``agent`` or the sidecar's name.
        kind: what it is.
        state: where it stands.
        process: its identity while one is recorded.
        type, argument: of a sidecar.
        since: monotonic seconds of the last change of state.
        retry_at: monotonic seconds at which a BACKOFF or FAILED member is tried again.
        crashes: monotonic seconds of its latest crashes, oldest first.
        restarts: how often it was respawned in this run.
        note: the last reason, for people.
    """

    run: str
    name: str
    kind: MemberKind
    state: MemberState = MemberState.DECLARED
    process: ProcessId | None = None
    type: str = ""
    argument: str = ""
    since: float = 0.0
    retry_at: float = 0.0
    crashes: tuple[float, ...] = ()
    restarts: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the town's history."""

    time: float
    kind: str
    run: str = ""
    member: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a model call cost.

    Args:
        model: its id.
        input_tokens, cached_tokens, cache_written_tokens, output_tokens: as the API counted them.
        dollars: by the price table.
        seconds: how long the whole call took, retries included.
        calls: how many requests were made.
    """

    model: str = ""
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_written_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0
    seconds: float = 0.0
    calls: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of a sidecar.

    Args:
        id: unique; the nudge carries it as its thread_id's last part.
        run, sidecar: whose.
        time: wall clock.
        monotonic: the same instant on the monotonic clock (cooldowns are counted on it).
        outcome: injected, silent, refused or failed.
        reason: the gate that refused, the error, or empty.
        message: what was said or would have been.
        evidence: the quoted action.
        confidence: low, medium, high or empty.
        event: id of the event that it is about.
        nudge: file name of the queued nudge, empty when none.
        stage: enqueued, drained, seen, undelivered or empty.
        usage: what it cost.
    """

    id: str
    run: str
    sidecar: str
    time: float
    monotonic: float
    outcome: str
    reason: str = ""
    message: str = ""
    evidence: str = ""
    confidence: str = ""
    event: str = ""
    nudge: str = ""
    stage: str = ""
    usage: Usage | None = None
