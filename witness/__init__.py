"""gt-witness: spawns coding agents in tmux together with their sidecars, keeps them alive, ends them completely.

    from witness import Town, Witness

    with Witness(Town.find()) as witness:
        witness.spawn("toast", workdir="repo", sidecars=["scope:issue.md"], task="Fix the order check")
        witness.wait("toast")

What stands in ``__all__`` is the public interface; ``docs/api.md`` is made from it. Times are seconds, wall clock
unless they are said to be monotonic; processes are (pid, start ticks). Results, states and errors can be pickled. What
goes wrong is a ``WitnessError``, in one line that says what, where and what to do. Warnings go to ``logging`` under
the name ``witness``.
"""

from __future__ import annotations

from witness.version import __version__

__all__ = [
    "AsyncWitness",
    "Channel",
    "Client",
    "Decision",
    "DeclarationError",
    "Group",
    "GroupId",
    "GroupState",
    "Intent",
    "JournalCorruptError",
    "JournalError",
    "JournalMovedError",
    "JudgeContext",
    "JudgeFunction",
    "Member",
    "MemberKind",
    "MemberState",
    "Molecule",
    "NotFoundError",
    "NudgeResult",
    "NukeResult",
    "Observation",
    "PatrolReport",
    "Problem",
    "ProcessId",
    "ProcessInfo",
    "QueueFullError",
    "Ran",
    "Report",
    "RunEndedError",
    "SidecarDecision",
    "Snapshot",
    "SpawnError",
    "SpawnPlan",
    "SpawnRequest",
    "SpawnResult",
    "TmuxError",
    "TmuxTimeoutError",
    "TmuxUnusableError",
    "Town",
    "TownEvent",
    "TownLockedError",
    "TownNotFoundError",
    "Usage",
    "UsageError",
    "Witness",
    "WitnessError",
    "WitnessEvent",
    "__version__",
]

# `typing` costs as much as all the rest of handing a command over to the real gt.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from witness.agents.clients import Channel, Client
    from witness.api.async_witness import AsyncWitness
    from witness.api.events import SidecarDecision, Snapshot, TownEvent, WitnessEvent
    from witness.api.messages import NudgeResult
    from witness.api.witness import NukeResult, ProcessInfo, Witness
    from witness.config.town import Town
    from witness.declare.molecule import Molecule
    from witness.errors import (
        DeclarationError,
        JournalCorruptError,
        JournalError,
        JournalMovedError,
        NotFoundError,
        Problem,
        QueueFullError,
        RunEndedError,
        SpawnError,
        TmuxError,
        TmuxTimeoutError,
        TmuxUnusableError,
        TownLockedError,
        TownNotFoundError,
        UsageError,
        WitnessError,
    )
    from witness.journal.records import Decision, Group, GroupState, Intent, Member, MemberKind, MemberState, Usage
    from witness.judging.functions import JudgeContext, JudgeFunction, Report
    from witness.judging.observation import Observation, Ran
    from witness.launch.spawn_request import SpawnPlan, SpawnRequest
    from witness.names import GroupId
    from witness.process import ProcessId
    from witness.supervise.reconcile import PatrolReport
    from witness.supervise.spawn import SpawnResult

# The module of each public name. They are imported when they are first asked for: a sidecar imports witness.clock and
# the like many times a night and must not pay for the whole package.
_MODULES = {
    "witness.agents.clients": ("Channel", "Client"),
    "witness.api.async_witness": ("AsyncWitness",),
    "witness.api.events": ("SidecarDecision", "Snapshot", "TownEvent", "WitnessEvent"),
    "witness.api.messages": ("NudgeResult",),
    "witness.api.witness": ("NukeResult", "ProcessInfo", "Witness"),
    "witness.config.town": ("Town",),
    "witness.declare.molecule": ("Molecule",),
    "witness.errors": (
        "DeclarationError",
        "JournalCorruptError",
        "JournalError",
        "JournalMovedError",
        "NotFoundError",
        "Problem",
        "QueueFullError",
        "RunEndedError",
        "SpawnError",
        "TmuxError",
        "TmuxTimeoutError",
        "TmuxUnusableError",
        "TownLockedError",
        "TownNotFoundError",
        "UsageError",
        "WitnessError",
    ),
    "witness.journal.records": (
        "Decision",
        "Group",
        "GroupState",
        "Intent",
        "Member",
        "MemberKind",
        "MemberState",
        "Usage",
    ),
    "witness.judging.functions": ("JudgeContext", "JudgeFunction", "Report"),
    "witness.judging.observation": ("Observation", "Ran"),
    "witness.launch.spawn_request": ("SpawnPlan", "SpawnRequest"),
    "witness.names": ("GroupId",),
    "witness.process": ("ProcessId",),
    "witness.supervise.reconcile": ("PatrolReport",),
    "witness.supervise.spawn": ("SpawnResult",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
