"""The state of a town as records: their fields are the keys of ``gt state --json``.

Times are RFC 3339 in UTC, lengths of time seconds, sizes bytes. None says that something is not known.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

#: Raised when a key is removed or changes its meaning; new keys may come without.
SCHEMA = 1


class ActivityKind(StrEnum):
    """What an agent does, beside the lifecycle state of its group."""

    WORKING = "working"
    WAITING = "waiting"
    IDLE = "idle"
    STUCK = "stuck"
    UNKNOWN = "unknown"
    DONE = "done"
    DEAD = "dead"


def rfc3339(wall: float) -> str:
    """A wall clock second as text."""
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def wall_of(text: str) -> float:
    """The wall clock second that such a text means."""
    return datetime.fromisoformat(text).timestamp()


@dataclass(frozen=True, slots=True)
class Waiting:
    """What an agent waits for.

    Args:
        reason: ``for`` in JSON: trust, login, onboarding, permission, question, mcp, limit or network.
        since: when that was first seen, or when its screen changed last.
        question: the text of what is asked, one line.
    """

    reason: str
    since: str | None
    question: str


@dataclass(frozen=True, slots=True)
class Action:
    """The last call that an agent has completed.

    Args:
        time: when.
        age: seconds since then.
        what: the tool and what it was used on, one line.
    """

    time: str
    age: float
    what: str


@dataclass(frozen=True, slots=True)
class LineState:
    """What became of the lines that a sidecar said in a run.

    Args:
        said: lines that were queued for the agent.
        delivered: of these, the ones that were handed over to its client.
        seen: of these, the ones that its transcript shows as given to the model.
        heeded, unheeded: remarks in them that it was seen to follow, or not; of the others that is not known.
    """

    said: int
    delivered: int
    seen: int
    heeded: int
    unheeded: int


@dataclass(frozen=True, slots=True)
class UsageState:
    """What the agent's own model calls have cost in this run, those of its subagents included and of its sidecars not.

    Args:
        tokens: all of them.
        input_tokens, cached_tokens, cache_written_tokens, output_tokens: as its client counted them.
        dollars: by the price list; None where a model's price is not known.
        models: that were asked.
        context_tokens: that its conversation holds now; None where that is not known.
        context_share: of the model's window that this is, 0 to 1; None where the window is not known.
        transcript: where its session is recorded.
    """

    tokens: int
    input_tokens: int
    cached_tokens: int
    cache_written_tokens: int
    output_tokens: int
    dollars: float | None
    models: tuple[str, ...]
    context_tokens: int | None
    context_share: float | None
    transcript: str


@dataclass(frozen=True, slots=True)
class SidecarState:
    """One sidecar.

    Args:
        name, type: of it.
        state: its lifecycle state; LOST where its process is gone and nobody has noticed yet.
        pid: of its living process.
        mute: why it can say nothing now, empty when it can.
        restarts, injections: in this run.
        lines: what became of what it said.
    """

    name: str
    type: str
    state: str
    pid: int | None
    mute: str
    restarts: int
    injections: int
    lines: LineState


@dataclass(frozen=True, slots=True)
class LimitState:
    """What an agent may use of the machine with all that it starts, and what of it it uses; None for no limit.

    Args:
        memory_high, memory_max: bytes.
        pids_max: processes and threads.
        cpu_weight: its share of a busy processor; 100 is the usual one.
        memory: bytes that are used, those of files that it reads included; None where memory has no limit.
        pids: that there are; None where they have no limit.
        met: which limit it has met, in words; empty when none.
    """

    memory_high: int | None
    memory_max: int | None
    pids_max: int | None
    cpu_weight: int | None
    memory: int | None
    pids: int | None
    met: str


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended.

    Args:
        time: when.
        by: who or what ended it: ``itself``, ``done``, ``nuke``, ``hung``, ``session``, ``spawn`` or ``unknown``.
        status: the agent's exit status, None where none was left.
        signal: the number of the signal that ended it, None when none did.
        last_line: the last line of its screen that is not blank.
        sentence: all of it in words.
    """

    time: str | None
    by: str
    status: int | None
    signal: int | None
    last_line: str
    sentence: str


@dataclass(frozen=True, slots=True)
class PolecatState:
    """One polecat.

    Args:
        address, polecat, rig, run, session: who it is.
        lifecycle: of its group; ZOMBIE where its agent is gone and nobody has noticed yet.
        zombie: the class that it was found in, empty when none.
        activity: what its agent does.
        since: since when, as far as is known.
        why: what the activity was told by, or why it is unknown.
        waiting: what it waits for, when it does.
        last_action: of the agent.
        task: its first line.
        workdir, branch: where it works; the branch is empty outside of a repository.
        molecule: where its declaration came from.
        started: when it was spawned.
        uptime: seconds.
        pid: of the living agent.
        agent: the agent's command.
        client: which client that is.
        channel: how it is heard and told something.
        memory: bytes of its whole tree.
        cpu_seconds: processor time that the living tree has used.
        cpu_percent: of one core, over the time between two looks; None at the first.
        limits: of what its agent may use, None when it has none.
        usage: what its model calls have cost, None where its client does not say.
        sidecars: its observers.
        ended: how it ended, when it has.
        paused: since when ``gt polecat pause`` has stopped it, None while it goes on.
    """

    address: str
    polecat: str
    rig: str
    run: str
    session: str
    lifecycle: str
    zombie: str
    activity: str
    since: str | None
    why: str
    waiting: Waiting | None
    last_action: Action | None
    task: str
    workdir: str
    branch: str
    molecule: str
    started: str
    uptime: float | None
    pid: int | None
    agent: tuple[str, ...]
    client: str
    channel: str
    memory: int | None
    cpu_seconds: float | None
    cpu_percent: float | None
    limits: LimitState | None
    usage: UsageState | None
    sidecars: tuple[SidecarState, ...]
    ended: Ended | None = None
    paused: str | None = None

    def as_json(self) -> dict[str, Any]:
        found = asdict(self)
        if found["waiting"]:
            found["waiting"] = {"for": found["waiting"].pop("reason"), **found["waiting"]}
        return found

    def lasting(self) -> dict[str, Any]:
        """What of it is worth to be told as a change: not that time has passed, nor what was used."""
        found = self.as_json()
        for key in ("uptime", "memory", "cpu_seconds", "cpu_percent", "usage"):
            del found[key]
        if found["limits"]:
            del found["limits"]["memory"], found["limits"]["pids"]
        if found["last_action"]:
            del found["last_action"]["age"]
        if found["waiting"]:
            # A dialog that is drawn anew is the same one.
            del found["waiting"]["since"]
        del found["since"]
        return found


@dataclass(frozen=True, slots=True)
class TownState:
    """One town at one instant.

    Args:
        time: when.
        town: ``root``, tmux ``socket`` and its ``directory``, whether it is a ``gas_town``.
        witness: whether one is ``running``, and its ``pid``.
        machine: ``cpus``, ``load`` of the last minute, ``memory_total`` and ``memory_available``.
        polecats: those that live, and ended ones where they were asked for.
    """

    time: str
    town: dict[str, Any]
    witness: dict[str, Any]
    machine: dict[str, Any]
    polecats: tuple[PolecatState, ...] = field(default_factory=tuple)

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "time": self.time,
            "town": self.town,
            "witness": self.witness,
            "machine": self.machine,
            "polecats": [each.as_json() for each in self.polecats],
        }
