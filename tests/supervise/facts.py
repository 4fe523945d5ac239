"""Short ways to write snapshots down."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from witness.config.settings import Settings
from witness.journal import Group, GroupState, Intent, Member, MemberKind, MemberState, RunState
from witness.names import GroupId
from witness.process import ProcessId
from witness.process.exits import UNKNOWN_EXIT, Exit
from witness.supervise.snapshot import GroupFact, MemberFact, Presence, Snapshot

NOW = 10_000.0
BOOT = "boot-1"
RUN = "run1"
REAPER, KEEPER, AGENT, SCOPE = (ProcessId(pid, pid * 10) for pid in (101, 102, 103, 104))
SETTINGS = Settings()


def member(name: str, state: MemberState = MemberState.RUNNING, **more: Any) -> Member:
    kinds = {"reaper": MemberKind.REAPER, "keeper": MemberKind.REAPER, "agent": MemberKind.AGENT}
    processes = {"reaper": REAPER, "keeper": KEEPER, "agent": AGENT, "scope": SCOPE}
    with_process = state in (MemberState.RUNNING, MemberState.STOPPING, MemberState.LOST)
    plain = Member(
        RUN,
        name,
        kinds.get(name, MemberKind.SIDECAR),
        state,
        processes.get(name) if with_process else None,
        type="" if name in kinds else name,
        since=NOW - 5.0,
    )
    return replace(plain, **more)


def fact(
    each: Member, *, alive: bool | None = None, exit: Exit = UNKNOWN_EXIT, beat: float | None = None
) -> MemberFact:
    return MemberFact(each, bool(each.process) if alive is None else alive, exit, beat)


def polecat(*, agent_alive: bool = True, exit: Exit = UNKNOWN_EXIT) -> tuple[MemberFact, ...]:
    return (
        fact(member("reaper"), alive=agent_alive),
        fact(member("keeper"), alive=agent_alive),
        fact(member("agent"), alive=agent_alive, exit=exit),
    )


def group(state: GroupState = GroupState.RUNNING, **more: Any) -> Group:
    plain = Group(
        id=GroupId("main", "toast", RUN),
        session="gt-toast",
        state=state,
        boot=BOOT,
        spawned_at=NOW - 100.0,
        created=1_800_000_000.0,
        workdir="/work",
        agent=("agent",),
        run_state=RunState(activity="", activity_at=NOW - 1.0),
    )
    return replace(plain, **more)


def done(seconds_ago: float) -> dict[str, Any]:
    return {"intent": Intent.DONE, "intent_at": NOW - seconds_ago, "intent_note": "COMPLETED"}


def found(of: Group, *sidecars: MemberFact, leaders: tuple[MemberFact, ...] | None = None, **more: Any) -> GroupFact:
    members = (polecat() if leaders is None else leaders) + sidecars
    return replace(GroupFact(of, members, Presence.PRESENT), **more)


def snapshot(*groups: GroupFact, settings: Settings = SETTINGS, **more: Any) -> Snapshot:
    return replace(Snapshot(NOW, BOOT, groups=groups, settings={"main": settings}), **more)
