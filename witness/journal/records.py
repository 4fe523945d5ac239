"""The facts that the journal holds, as frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypedDict

from witness.names import GroupId
from witness.process import ProcessId


class MemberKind(StrEnum):
    """What a process is in its group."""

    REAPER = "reaper"
    AGENT = "agent"
    SIDECAR = "sidecar"


class MemberState(StrEnum):
    """Where a member stands; ``witness.supervise.lifecycle`` says what may follow what."""

    DECLARED = "DECLARED"
    SPAWNING = "SPAWNING"
    RUNNING = "RUNNING"
    BACKOFF = "BACKOFF"
    FAILED = "FAILED"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
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


class WorktreeState(StrEnum):
    """Where a polecat's worktree stands."""

    MAKING = "MAKING"
    """It is being made, and no agent has been in it."""
    READY = "READY"
    """Its polecat works in it, or has ended a moment ago."""
    KEPT = "KEPT"
    """Its polecat has ended, and it holds work."""
    REMOVED = "REMOVED"


class Intent(StrEnum):
    """What somebody wants of a group; a fact about people, not about processes."""

    RUN = "run"
    DONE = "done"
    NUKE = "nuke"


@dataclass(frozen=True, slots=True)
class RunState:
    """What is remembered of a run beside its lifecycle.

    Args:
        task: the polecat's task, as text.
        bead: id of the issue that it was hooked to, empty when none.
        variables: the molecule's variables.
        overrides: fields of sidecar types that the spawn's settings set, by type.
        followed: its agent is not ours to end, for Gas Town or a person has started it; only its sidecars are ours.
        by_person: a followed session that a person has started, in whatever terminal.
        cgroup: the group's own cgroup, empty when it has none.
        limits: the bounds that its agent runs in, by name.
        limit_cgroups: the cgroups that hold them, by controller.
        limits_met: what of them was met, in words, as it was told last.
        worker: the process that is spawning or ending the group, None when nobody is.
        orphans: pids of the orphans that were told of last.
        session_missing: monotonic seconds at which its session was first missed, None while it is there.
        activity: a token that changes with each sign of life of the agent.
        activity_at: monotonic seconds of the last change, None before the first look.
        channel: how its client was to record events and tell it something, chosen at spawn; empty when nobody chose.
        channel_reason: why that is not the best channel that its kind of client has, empty when it is.
        client_version: of its client, empty when it could not be told.
        paused_at: wall clock at which somebody has paused it, None while it goes on.
        pane: tmux's id of the pane that its agent was started in, as ``%3``; empty when it is not known.
    """

    task: str = ""
    bead: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    followed: bool = False
    by_person: bool = False
    cgroup: str = ""
    limits: Mapping[str, int] = field(default_factory=dict)
    limit_cgroups: Mapping[str, str] = field(default_factory=dict)
    limits_met: str = ""
    worker: ProcessId | None = None
    orphans: tuple[int, ...] = ()
    session_missing: float | None = None
    activity: str = ""
    activity_at: float | None = None
    channel: str = ""
    channel_reason: str = ""
    client_version: str = ""
    pane: str = ""
    paused_at: float | None = None


class RunStateChanges(TypedDict, total=False):
    """What of a run's state changes while it lives; several processes write, each its own part."""

    cgroup: str
    limits: Mapping[str, int]
    limit_cgroups: Mapping[str, str]
    limits_met: str
    worker: ProcessId | None
    orphans: tuple[int, ...]
    session_missing: float | None
    activity: str
    activity_at: float
    channel: str
    channel_reason: str
    client_version: str
    pane: str
    paused_at: float | None


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
        run_state: what else is remembered of it.
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
    run_state: RunState = field(default_factory=RunState)

    @property
    def cgroups(self) -> tuple[str, ...]:
        """All cgroups that are its own."""
        return tuple(dict.fromkeys(filter(None, (self.run_state.cgroup, *self.run_state.limit_cgroups.values()))))

    @property
    def pane(self) -> str:
        """What tmux is told when the agent's screen or keys are meant: its own pane, else its session's active one."""
        return self.run_state.pane or self.session


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
class Worktree:
    """A worktree that was made for one run.

    Args:
        run, rig, polecat: whose.
        path: its folder.
        repository: git's own folder of the repository that it belongs to.
        branch: the one that was made with it.
        base: the commit that it began at.
        state: where it stands.
        since: wall clock of the last change of state.
        reason: why it is kept, or how it went.
        discard: somebody wants it removed with all that it holds.
    """

    run: str
    rig: str
    polecat: str
    path: str
    repository: str
    branch: str
    base: str
    state: WorktreeState = WorktreeState.MAKING
    since: float = 0.0
    reason: str = ""
    discard: bool = False

    @property
    def address(self) -> str:
        """``rig/polecat``."""
        return f"{self.rig}/{self.polecat}"


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


class Subject(NamedTuple):
    """One thing that a remark is about.

    Args:
        path: the file, empty when it is none.
        detail: what was found: a name, a piece of text, the command.
    """

    path: str = ""
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.path} ({self.detail})" if self.path and self.detail else self.path or self.detail


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of a sidecar: what became of one verdict.

    What the agent reads is a line; one line may hold the remarks of several decisions. The first of them stands for
    it: its ``message`` is the whole line, and the line's id is its own.

    Args:
        id: unique; the nudge carries it as its thread_id's last part.
        run, sidecar: whose.
        time: wall clock of the decision.
        monotonic: the same instant on the monotonic clock.
        outcome: injected, silent, refused or failed.
        reason: for people: the rule, what a gate said, or the error.
        message: what was said or would have been.
        evidence: the quoted action.
        confidence: low, medium, high or empty.
        event: id of the event that it is about.
        nudge: file name of the queued nudge, empty when none.
        stage: held (a gate puts it off), unsaid (it did so until the run ended), enqueued, drained, seen, undelivered
            or empty.
        usage: what it cost.
        rule: the rule that spoke or proposed, empty when none did.
        gate: the gate that refused it or put it off, empty when none did.
        words: the remark by itself, without the prefix.
        subjects: what it is about, where a rule has found it.
        named: how many of them, from the first, its line names; the others are only counted.
        source: ``file:line`` where the words stand, when a file of the repository has them.
        about: ``main``, or the subagent that acted.
        seen: how the fact is known: ``effect``, ``client`` or ``read``.
        acted: wall clock of the action, 0 when not known.
        age: seconds from the action until the remark was queued, None when it was not or the time is not known.
        line: id of the decision whose message holds this remark, empty while it is not said.
        spoken: monotonic seconds at which it was said, 0 when it was not.
        heeded: yes, no or undecided; empty when nobody has judged it.
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
    rule: str = ""
    gate: str = ""
    words: str = ""
    subjects: tuple[Subject, ...] = ()
    named: int = 0
    source: str = ""
    about: str = ""
    seen: str = ""
    acted: float = 0.0
    age: float | None = None
    line: str = ""
    spoken: float = 0.0
    heeded: str = ""


@dataclass(frozen=True, slots=True)
class SidecarState:
    """What a sidecar leaves to its successor in a run.

    Args:
        position: the spool position after the last event that was judged, empty when none.
        lack: why it can never speak, as it found when it started; empty when it can.
        begun: the position at which the latest starts began.
        starts: how many starts in a row began there.
    """

    position: str = ""
    lack: str = ""
    begun: str = ""
    starts: int = 0


@dataclass(frozen=True, slots=True)
class QueueState:
    """How far a session's delivery ledger was read.

    Args:
        position: bytes of the ledger that were read.
        transcript: the session's transcript, empty while it is not known.
        receipts: the deliveries that wait for their proof, as JSON objects.
    """

    position: int = 0
    transcript: str = ""
    receipts: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of Gas Town's polecats that was asked about and is not followed yet.

    Args:
        agent: the process that the answer was about, None before any.
        ask_at: wall clock from which it may be asked about again.
        wait: seconds that were waited last.
        renewed: it was given new work since its last run ended.
    """

    agent: ProcessId | None = None
    ask_at: float = 0.0
    wait: float = 0.0
    renewed: bool = False


@dataclass(frozen=True, slots=True)
class ModelRest:
    """The rest that all sidecars of the town keep while the model's server is in trouble.

    Args:
        until: wall clock, 0 when there is none.
        seconds: the length of the last rest.
    """

    until: float = 0.0
    seconds: float = 0.0
