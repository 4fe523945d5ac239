"""Following a town that the real ``gt`` drives: which polecats to observe, and whose observation to end.

Its polecats are Gas Town's own. We give them sidecars and take these away again; the agent, its session, worktree and
bead are never ours. This module is the pure half: what was seen and told, to what is to be done.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from witness.gastown.town_events import TownEvent, TownEventKind
from witness.process import ProcessId

# What a polecat reports of itself when there is nothing (more) to observe.
_RESTING = ("exiting", "idle")
EMERGENCY_STOP = "emergency stop"


@dataclass(frozen=True, slots=True)
class ObservedPolecat:
    """A polecat of Gas Town whose session stands.

    Args:
        rig, polecat: who.
        session: its session.
        agent: the agent's process in the pane.
        workdir: its worktree.
        heartbeat: what it last reported: working, idle, exiting, stuck; empty without a heartbeat.
        heartbeat_at: wall clock of that report.
        explicit: the heartbeat says its state itself (older ones only say that there is one).
        pane: tmux's id of the agent's pane.
    """

    rig: str
    polecat: str
    session: str
    agent: ProcessId
    workdir: str
    heartbeat: str = ""
    heartbeat_at: float = 0.0
    explicit: bool = False
    pane: str = ""


@dataclass(frozen=True, slots=True)
class LastRun:
    """The last run on record of one polecat.

    Args:
        rig, polecat, run: which.
        followed: it is Gas Town's; one that we have spawned is none of this module's business.
        agent: the process that was observed.
        begun: wall clock.
        ended: wall clock of its end; None while it lives.
        reason: why it ended.
        renewed: new work was told of after its end, and has not been taken up yet.
        bead: the bead that it was about.
    """

    rig: str
    polecat: str
    run: str
    followed: bool
    agent: ProcessId | None
    begun: float
    ended: float | None = None
    reason: str = ""
    renewed: bool = False
    bead: str = ""


@dataclass(frozen=True, slots=True)
class FollowActions:
    """What is to be done.

    Args:
        adopt: the polecats to give sidecars.
        if_new_bead: of these, by (rig, polecat), who gets some only when another bead than this hangs on the hook.
        end: (run, reason) of those whose sidecars are to end.
        renewed: whose ``renewed`` has changed, by (rig, polecat); to be remembered for the next time.
    """

    adopt: tuple[ObservedPolecat, ...] = ()
    if_new_bead: Mapping[tuple[str, str], str] = field(default_factory=dict)
    end: tuple[tuple[str, str], ...] = ()
    renewed: Mapping[tuple[str, str], bool] = field(default_factory=dict)


def decide(
    sightings: Collection[ObservedPolecat] | None,
    events: Iterable[TownEvent],
    pasts: Iterable[LastRun],
    stopped: Collection[str] = (),
) -> FollowActions:
    """What was seen and told, to what is to be done.

    Args:
        sightings: the polecats whose sessions stand; None when tmux did not answer, and nothing may be concluded.
        events: what the town has told since the last time.
        pasts: the last run of each polecat on record.
        stopped: rigs under an emergency stop.
    """
    told: dict[tuple[str, str], list[TownEvent]] = {}
    for event in events:
        told.setdefault((event.rig, event.polecat), []).append(event)
    seen = {(sighting.rig, sighting.polecat): sighting for sighting in sightings or ()}
    known = {(past.rig, past.polecat): past for past in pasts}
    end = []
    for name, past in known.items():
        if past.ended is None and past.followed:
            reason = _reason_to_end(past, seen.get(name), sightings is not None, told.get(name, []), stopped)
            if reason:
                end.append((past.run, reason))
    renewed = {name: _is_renewed(past, told.get(name, [])) for name, past in known.items()}
    adopt, if_new_bead = [], {}
    for name, sighting in seen.items():
        before, news = known.get(name), told.get(name, [])
        if sighting.rig in stopped or sighting.heartbeat in _RESTING:
            continue
        if _may_adopt(sighting, before, news, renewed.get(name, False)):
            adopt.append(sighting)
        elif before and _may_have_new_bead(before, news):
            adopt.append(sighting)
            if_new_bead[name] = before.bead
    changed = {name: renewed[name] for name, past in known.items() if renewed[name] != past.renewed}
    return FollowActions(tuple(adopt), if_new_bead, tuple(end), changed)


def _reason_to_end(
    past: LastRun, sighting: ObservedPolecat | None, answered: bool, events: list[TownEvent], stopped: Collection[str]
) -> str:
    if past.rig in stopped:
        return EMERGENCY_STOP
    if answered and sighting is None:
        return str(TownEventKind.ENDED)
    if sighting is not None and sighting.agent != past.agent:
        return str(TownEventKind.HANDOFF)
    if sighting is not None and sighting.heartbeat in _RESTING and sighting.heartbeat_at > past.begun:
        return "done" if sighting.heartbeat == "exiting" else "idle"
    # Gas Town writes whole seconds: what it tells of the second in which we began may be older than that.
    final = [event for event in events if event.told is not TownEventKind.STARTED and event.time > past.begun]
    return str(final[-1].told) if final else ""


def _is_renewed(past: LastRun, events: list[TownEvent]) -> bool:
    """Whether new work was told of after the run's end, be it in the same breath."""
    renewed, over = past.renewed, past.ended is not None
    for event in events:
        if event.told is not TownEventKind.STARTED:
            renewed, over = False, True
        elif over:
            renewed = True
    return renewed


def _may_adopt(sighting: ObservedPolecat, past: LastRun | None, events: list[TownEvent], renewed: bool) -> bool:
    if past is None or (past.ended is not None and past.agent != sighting.agent):
        return not (events and events[-1].told in (TownEventKind.DONE, TownEventKind.ENDED))
    if past.ended is None:
        return False
    if past.reason == EMERGENCY_STOP:
        return True
    # The same agent process lives on after its work was done, and any gt command, its Stop hook's too, reports it as
    # working: only new work makes it a polecat to observe again.
    return renewed


def _may_have_new_bead(past: LastRun, events: list[TownEvent]) -> bool:
    """Whether an agent that lives on may have been given other work without a word of it in the town's events."""
    return past.ended is not None and past.followed and not any(e.told is not TownEventKind.STARTED for e in events)
