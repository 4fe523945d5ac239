from __future__ import annotations

from dataclasses import replace

import pytest

from witness.gastown.follow_plan import FollowActions, LastRun, ObservedPolecat, decide
from witness.gastown.town_events import TownEvent, TownEventKind
from witness.process import ProcessId

AGENT, OTHER = ProcessId(100, 1), ProcessId(200, 2)
TOAST = ObservedPolecat("gastown", "Toast", "gt-Toast", AGENT, "/w")
LIVING = LastRun("gastown", "Toast", "run", True, AGENT, 1000.0)
ENDED = replace(LIVING, ended=2000.0, reason="done")


def _told(told: TownEventKind, time: float, polecat: str = "Toast") -> TownEvent:
    return TownEvent(told, "gastown", polecat, time)


@pytest.mark.parametrize(
    ("past", "sighting", "events", "reason"),
    [
        (LIVING, TOAST, [], ""),
        (LIVING, replace(TOAST, heartbeat="working", heartbeat_at=1500.0, explicit=True), [], ""),
        (LIVING, replace(TOAST, heartbeat="stuck", heartbeat_at=1500.0, explicit=True), [], ""),
        (LIVING, replace(TOAST, heartbeat="exiting", heartbeat_at=1500.0, explicit=True), [], "done"),
        (LIVING, replace(TOAST, heartbeat="idle", heartbeat_at=1500.0, explicit=True), [], "idle"),
        (LIVING, replace(TOAST, heartbeat="exiting", heartbeat_at=900.0, explicit=True), [], ""),
        (LIVING, TOAST, [_told(TownEventKind.DONE, 1500.0)], "done"),
        (LIVING, TOAST, [_told(TownEventKind.ENDED, 1500.0)], "session-end"),
        (LIVING, TOAST, [_told(TownEventKind.HANDOFF, 1500.0)], "handoff"),
        (LIVING, TOAST, [_told(TownEventKind.DONE, 999.0)], ""),
        (LIVING, TOAST, [_told(TownEventKind.DONE, 1500.0, "Nux")], ""),
        (LIVING, TOAST, [_told(TownEventKind.STARTED, 1500.0)], ""),
        (LIVING, None, [], "session-end"),
        (LIVING, replace(TOAST, agent=OTHER), [], "handoff"),
        (replace(LIVING, followed=False), None, [_told(TownEventKind.DONE, 1500.0)], ""),
        (ENDED, None, [_told(TownEventKind.DONE, 1500.0)], ""),
    ],
)
def test_whose_observation_ends(
    past: LastRun, sighting: ObservedPolecat | None, events: list[TownEvent], reason: str
) -> None:
    steps = decide([sighting] if sighting else [], events, [past])
    assert steps.end == (((past.run, reason),) if reason else ())


@pytest.mark.parametrize(
    ("past", "sighting", "events", "adopted"),
    [
        (None, TOAST, [], True),
        (None, replace(TOAST, heartbeat="working", heartbeat_at=1.0), [], True),
        (None, replace(TOAST, heartbeat="idle", heartbeat_at=1.0, explicit=True), [], False),
        (None, replace(TOAST, heartbeat="exiting", heartbeat_at=1.0, explicit=True), [], False),
        (None, TOAST, [_told(TownEventKind.STARTED, 1.0), _told(TownEventKind.DONE, 2.0)], False),
        (None, TOAST, [_told(TownEventKind.DONE, 1.0), _told(TownEventKind.STARTED, 2.0)], True),
        (LIVING, TOAST, [_told(TownEventKind.STARTED, 1500.0)], False),
        (replace(LIVING, followed=False), TOAST, [], False),
        # The same process after its work was done: only new work counts.
        (ENDED, TOAST, [], False),
        (ENDED, TOAST, [_told(TownEventKind.STARTED, 2000.0)], True),
        (ENDED, TOAST, [_told(TownEventKind.STARTED, 2000.0), _told(TownEventKind.DONE, 2001.0)], False),
        (replace(ENDED, renewed=True), TOAST, [], True),
        (replace(ENDED, renewed=True), TOAST, [_told(TownEventKind.DONE, 2001.0)], False),
        # Any gt command of the polecat's, its own Stop hook too, reports it as working.
        (ENDED, replace(TOAST, heartbeat="working", heartbeat_at=2500.0, explicit=True), [], False),
        (ENDED, replace(TOAST, heartbeat="working", heartbeat_at=2500.0, explicit=False), [], False),
        (ENDED, replace(TOAST, agent=OTHER), [], True),
        (replace(ENDED, reason="emergency stop"), TOAST, [], True),
    ],
)
def test_who_is_adopted(
    past: LastRun | None, sighting: ObservedPolecat, events: list[TownEvent], adopted: bool
) -> None:
    steps = decide([sighting], events, [past] if past else [])
    assert [each for each in steps.adopt if ("gastown", "Toast") not in steps.if_new_bead] == [sighting] * adopted


@pytest.mark.parametrize(
    ("past", "sighting", "events", "asked"),
    [
        (ENDED, TOAST, [], True),
        (ENDED, replace(TOAST, heartbeat="working", heartbeat_at=2500.0, explicit=True), [], True),
        (ENDED, replace(TOAST, heartbeat="exiting", heartbeat_at=2500.0, explicit=True), [], False),
        (ENDED, TOAST, [_told(TownEventKind.DONE, 2500.0)], False),
        (replace(ENDED, followed=False), TOAST, [], False),
        (LIVING, TOAST, [], False),
    ],
)
def test_an_agent_that_lives_on_is_taken_up_again_only_for_another_bead(
    past: LastRun, sighting: ObservedPolecat, events: list[TownEvent], asked: bool
) -> None:
    steps = decide([sighting], events, [replace(past, bead="gt-1")])
    assert steps.if_new_bead == ({("gastown", "Toast"): "gt-1"} if asked else {})
    assert steps.adopt == ((sighting,) if asked else ())


def test_when_tmux_is_silent_nothing_is_concluded_from_it() -> None:
    assert decide(None, [], [LIVING]) == FollowActions()
    assert decide(None, [_told(TownEventKind.DONE, 1500.0)], [LIVING]).end == (("run", "done"),)


def test_an_emergency_stop_ends_and_adopts_nobody() -> None:
    other = replace(TOAST, rig="beads")
    steps = decide([TOAST, replace(TOAST, polecat="Nux"), other], [], [LIVING], ["gastown"])
    assert steps.end == (("run", "emergency stop"),)
    assert steps.adopt == (other,)


def test_new_work_that_is_told_of_in_the_same_breath_is_not_lost() -> None:
    steps = decide(
        [TOAST],
        [_told(TownEventKind.STARTED, 1.0), _told(TownEventKind.DONE, 1500.0), _told(TownEventKind.STARTED, 1501.0)],
        [LIVING],
    )
    assert steps.end == (("run", "done"),)
    assert steps.adopt == ()
    assert steps.if_new_bead == {}
    assert steps.renewed == {("gastown", "Toast"): True}
    after = replace(LIVING, ended=2000.0, reason="done", renewed=True)
    assert decide([TOAST], [], [after]).adopt == (TOAST,)
    # What is told of a run that lives is its own beginning.
    assert decide([TOAST], [_told(TownEventKind.STARTED, 1001.0)], [LIVING]).renewed == {}
