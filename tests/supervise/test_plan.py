"""Every rule of the patrol as a table: what was seen, and what follows from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.supervise.facts import (
    AGENT,
    BOOT,
    KEEPER,
    NOW,
    REAPER,
    RUN,
    SCOPE,
    SETTINGS,
    done,
    fact,
    found,
    group,
    member,
    polecat,
    snapshot,
)
from witness.journal import GroupState, Intent, MemberState, RunState
from witness.process import ProcessId
from witness.process.exits import Exit
from witness.supervise.actions import (
    Action,
    AdoptPolecat,
    ChangeRunState,
    EndOrphans,
    EndProcess,
    MoveGroup,
    MoveMember,
    Nuke,
    ReportZombie,
    Saw,
    StartSidecar,
    Tell,
)
from witness.supervise.lifecycle import GroupEvent, MemberEvent
from witness.supervise.plan import plan
from witness.supervise.snapshot import GroupFact, MemberFact, Presence, Snapshot

S = MemberState
ABSENT, UNKNOWN = Presence.ABSENT, Presence.UNKNOWN
HEALTHY = fact(member("scope"), beat=NOW - 1.0)


def _zombie(name: str) -> list[Action]:
    return [ReportZombie(RUN, name), MoveGroup(RUN, GroupEvent.FOUND_ZOMBIE), Nuke(RUN, name)]


def _nukes(actions: list[Action]) -> list[str]:
    return [action.reason for action in actions if isinstance(action, Nuke)]


# -- groups that are well -------------------------------------------------------------------------------------------


def test_a_healthy_group_asks_for_nothing() -> None:
    assert plan(snapshot(found(group(), HEALTHY))) == []


def test_no_groups_no_plan() -> None:
    assert plan(snapshot()) == []


def test_the_same_snapshot_gives_the_same_plan() -> None:
    seen = snapshot(found(group(), fact(member("scope"), alive=False)), found(group(), HEALTHY, leaders=polecat()))
    assert plan(seen) == plan(seen)


def test_a_polecat_without_sidecars_is_well() -> None:
    assert plan(snapshot(found(group()))) == []


# -- zombies --------------------------------------------------------------------------------------------------------

KILLED = Exit(137, "signal 9")
HUNG_UP = Exit(129, "signal 1", hangup=True)


@pytest.mark.parametrize(
    ("session", "ended", "name"),
    [
        (Presence.PRESENT, Exit(None), "agent-dead"),
        (Presence.PRESENT, KILLED, "agent-dead"),
        (UNKNOWN, Exit(None), "agent-dead"),
        # The session closes with its agent: who went first is told by how the agent ended.
        (ABSENT, KILLED, "agent-dead"),
        (ABSENT, Exit(0), "agent-dead"),
        (ABSENT, HUNG_UP, "session-gone"),
        (ABSENT, Exit(None), "session-gone"),
        (UNKNOWN, HUNG_UP, "session-gone"),
    ],
)
@pytest.mark.parametrize("state", [GroupState.RUNNING, GroupState.DEGRADED])
def test_a_dead_agent(state: GroupState, session: Presence, ended: Exit, name: str) -> None:
    leaders = polecat(agent_alive=False, exit=ended)
    assert plan(snapshot(found(group(state), HEALTHY, leaders=leaders, session=session))) == _zombie(name)


def test_a_zombie_whose_witness_was_killed_is_ended_by_the_next() -> None:
    of = group(GroupState.ZOMBIE, zombie="agent-dead")
    seen = found(of, HEALTHY, leaders=polecat(agent_alive=False))
    assert plan(snapshot(seen)) == [ReportZombie(RUN, "agent-dead"), Nuke(RUN, "agent-dead")]


def test_a_missing_session_with_a_living_agent_must_be_missing_twice() -> None:
    once = plan(snapshot(found(group(), HEALTHY, session=ABSENT)))
    assert once == [ChangeRunState(RUN, {"session_missing": NOW})]
    remembered = group(run_state=RunState(session_missing=NOW - 10, activity_at=NOW))
    assert plan(snapshot(found(remembered, HEALTHY, session=ABSENT))) == _zombie("session-gone")


def test_a_session_that_is_back_is_forgiven() -> None:
    remembered = group(run_state=RunState(session_missing=NOW - 10, activity_at=NOW))
    assert plan(snapshot(found(remembered, HEALTHY))) == [ChangeRunState(RUN, {"session_missing": None})]


@pytest.mark.parametrize("missing", [None, NOW - 10])
def test_a_tmux_that_does_not_answer_proves_nothing(missing: float | None) -> None:
    of = group(run_state=RunState(session_missing=missing, activity_at=NOW))
    assert plan(snapshot(found(of, HEALTHY, session=UNKNOWN))) == []


def test_another_boot_means_that_nobody_of_it_lives() -> None:
    leaders = polecat(agent_alive=False)
    dead = fact(member("scope"), alive=False)
    seen = found(group(boot="boot-0"), dead, leaders=leaders, session=ABSENT, descendants=frozenset({SCOPE}))
    assert plan(snapshot(seen)) == _zombie("session-gone")


def test_an_orphan_of_a_run_that_is_over_is_ended() -> None:
    stray = frozenset({ProcessId(7, 70)})
    assert plan(snapshot(orphans={"old-run": stray})) == [EndOrphans("old-run", stray)]


# -- done and nuke --------------------------------------------------------------------------------------------------


def test_done_is_given_a_moment() -> None:
    assert plan(snapshot(found(group(**done(0.2)), HEALTHY))) == [MoveGroup(RUN, GroupEvent.DONE)]
    assert plan(snapshot(found(group(GroupState.DONE, **done(0.5)), HEALTHY))) == []


def test_done_is_ended_after_that_moment() -> None:
    assert plan(snapshot(found(group(GroupState.DONE, **done(1.0)), HEALTHY))) == [Nuke(RUN, "done")]


def test_done_and_already_dead_is_no_zombie() -> None:
    leaders = polecat(agent_alive=False)
    seen = snapshot(found(group(**done(0.1)), HEALTHY, leaders=leaders))
    assert plan(seen) == [MoveGroup(RUN, GroupEvent.DONE), Nuke(RUN, "done")]


def test_done_stuck_is_reported_and_ended() -> None:
    seen = snapshot(found(group(GroupState.DONE, **done(61.0)), HEALTHY))
    assert plan(seen) == [ReportZombie(RUN, "done-stuck"), Nuke(RUN, "done")]


def test_done_stuck_is_not_concluded_from_a_late_look() -> None:
    seen = snapshot(found(group(GroupState.DONE, **done(61.0)), HEALTHY), late=True)
    assert plan(seen) == [Nuke(RUN, "done")]


def test_done_before_a_reboot_is_ended_whatever_its_stamp_says() -> None:
    of = replace(group(GroupState.DONE, boot="boot-0", **done(-1e9)))
    leaders = polecat(agent_alive=False)
    assert plan(snapshot(found(of, leaders=leaders, session=ABSENT))) == [Nuke(RUN, "done")]


def test_a_fresh_heartbeat_does_not_hide_that_it_is_done() -> None:
    busy = fact(member("scope"), beat=NOW)
    assert _nukes(plan(snapshot(found(group(GroupState.DONE, **done(61.0)), busy, activity="just now")))) == ["done"]


@pytest.mark.parametrize("state", [GroupState.RUNNING, GroupState.DEGRADED, GroupState.DONE, GroupState.ZOMBIE])
def test_a_wish_to_nuke_is_carried_out(state: GroupState) -> None:
    of = group(state, intent=Intent.NUKE, intent_note="by hand")
    assert plan(snapshot(found(of, HEALTHY))) == [Nuke(RUN, "by hand")]


def test_a_nuke_that_was_broken_off_is_taken_up_again() -> None:
    of = group(GroupState.NUKING, intent=Intent.NUKE, intent_note="done")
    assert plan(snapshot(found(of, HEALTHY))) == [Nuke(RUN, "done")]


def test_a_nuke_that_somebody_is_at_is_left_to_them() -> None:
    of = group(GroupState.NUKING, intent=Intent.NUKE)
    assert plan(snapshot(found(of, HEALTHY, busy=True))) == []


# -- spawns ---------------------------------------------------------------------------------------------------------

REPORTED = {"reaper": REAPER, "keeper": KEEPER, "agent": AGENT}


def _half_made(**more: object) -> GroupFact:
    declared = tuple(fact(member(name, S.DECLARED)) for name in ("reaper", "keeper", "agent"))
    return found(group(GroupState.SPAWNING), fact(member("scope", S.DECLARED)), leaders=declared, **more)


def test_a_spawn_whose_spawner_lives_is_left_alone_however_long_it_takes() -> None:
    assert plan(snapshot(_half_made(busy=True, session=ABSENT), now=NOW + 1e6)) == []


def test_a_spawn_without_spawner_is_finished_when_its_reaper_reported() -> None:
    assert plan(snapshot(_half_made(started=REPORTED))) == [AdoptPolecat(RUN, REAPER, KEEPER, AGENT)]


@pytest.mark.parametrize(
    ("more", "late", "expected"),
    [
        ({"session": ABSENT}, False, ["spawn-failed"]),
        ({"session": Presence.PRESENT}, False, []),
        ({"session": UNKNOWN}, False, []),
        ({"session": Presence.PRESENT, "started": {}}, False, ["spawn-failed"]),
        ({"session": Presence.PRESENT, "started": {"reaper": REAPER}}, False, []),
    ],
)
def test_a_spawn_without_spawner_and_without_report(more: dict[str, object], late: bool, expected: list[str]) -> None:
    assert _nukes(plan(snapshot(_half_made(**more), late=late))) == expected


@pytest.mark.parametrize(("late", "expected"), [(False, ["spawn-failed"]), (True, [])])
def test_its_deadline_counts_unless_the_look_is_late(late: bool, expected: list[str]) -> None:
    later = NOW - 100.0 + SETTINGS.spawn_deadline + 1
    assert _nukes(plan(snapshot(_half_made(), now=later, late=late))) == expected
    assert _nukes(plan(snapshot(_half_made(), now=later - 2, late=late))) == []


def test_a_spawn_from_before_a_reboot_is_undone() -> None:
    before = _half_made(session=ABSENT)
    seen = snapshot(replace(before, group=replace(before.group, boot="boot-0")))
    assert plan(seen) == [Nuke(RUN, "spawn-failed")]


def test_the_sidecars_of_a_spawn_are_started_while_its_spawner_waits() -> None:
    declared = member("scope", S.DECLARED)
    seen = snapshot(found(group(GroupState.SPAWNING), fact(declared), busy=True))
    assert plan(seen) == [StartSidecar(declared, MemberEvent.SPAWN)]


@pytest.mark.parametrize("busy", [True, False])
def test_a_spawn_ends_when_all_its_sidecars_observe(busy: bool) -> None:
    assert plan(snapshot(found(group(GroupState.SPAWNING), HEALTHY, busy=busy))) == [
        MoveGroup(RUN, GroupEvent.COMPLETE)
    ]


def test_a_spawn_without_sidecars_ends_at_once() -> None:
    assert plan(snapshot(found(group(GroupState.SPAWNING)))) == [MoveGroup(RUN, GroupEvent.COMPLETE)]


def test_a_spawn_with_a_sidecar_that_cannot_start_ends_degraded() -> None:
    waiting = fact(member("scope", S.BACKOFF, retry_at=NOW + 9))
    assert plan(snapshot(found(group(GroupState.SPAWNING), waiting))) == [MoveGroup(RUN, GroupEvent.SIDECAR_DOWN)]


# -- health ---------------------------------------------------------------------------------------------------------


def test_a_group_with_a_sidecar_that_waits_is_degraded_and_becomes_whole_again() -> None:
    waiting = fact(member("scope", S.BACKOFF, retry_at=NOW + 9))
    assert plan(snapshot(found(group(), waiting))) == [MoveGroup(RUN, GroupEvent.SIDECAR_DOWN)]
    assert plan(snapshot(found(group(GroupState.DEGRADED), waiting))) == []
    assert plan(snapshot(found(group(GroupState.DEGRADED), HEALTHY))) == [MoveGroup(RUN, GroupEvent.COMPLETE)]


# -- silence --------------------------------------------------------------------------------------------------------


def _silent(seconds: float, **more: Any) -> GroupFact:
    state = RunState(activity="token", activity_at=NOW - seconds)
    return found(group(run_state=state, **more), HEALTHY, activity="token")


def test_silence_beyond_the_limit_is_reported_and_nothing_more() -> None:
    assert plan(snapshot(_silent(1799.0))) == []
    assert plan(snapshot(_silent(1801.0))) == [ReportZombie(RUN, "hung")]


def test_silence_is_reported_once() -> None:
    assert plan(snapshot(_silent(9999.0, zombie="hung"))) == []


def test_silence_ends_a_polecat_only_where_the_town_says_so() -> None:
    strict = replace(SETTINGS, nuke_hung=True)
    assert plan(snapshot(_silent(1801.0), settings=strict)) == _zombie("hung")


def test_a_sign_of_life_takes_the_report_back() -> None:
    seen = replace(_silent(9999.0, zombie="hung"), activity="another")
    assert plan(snapshot(seen)) == [
        ChangeRunState(RUN, {"activity": "another", "activity_at": NOW}),
        ReportZombie(RUN, ""),
    ]


def _building(used: float, **more: Any) -> GroupFact:
    """Silent for 2000 s, with ten seconds of processor time on record at the last sign of life."""
    state = RunState(activity="token@10.00", activity_at=NOW - 2000.0)
    return found(group(run_state=state, **more), HEALTHY, activity="token", used=used)


def test_a_tree_that_uses_the_processor_is_not_hung_however_silent() -> None:
    strict = replace(SETTINGS, nuke_hung=True)
    again = ChangeRunState(RUN, {"activity": "token@910.00", "activity_at": NOW})
    assert plan(snapshot(_building(910.0), settings=strict)) == [again]
    assert plan(snapshot(_building(910.0, zombie="hung"), settings=strict)) == [again, ReportZombie(RUN, "")]


def test_a_client_that_only_redraws_itself_is_hung() -> None:
    assert plan(snapshot(_building(12.0))) == [ReportZombie(RUN, "hung")]


def test_a_late_look_counts_silence_anew() -> None:
    assert plan(snapshot(_silent(9999.0), late=True)) == [
        ChangeRunState(RUN, {"activity": "token", "activity_at": NOW}),
    ]


# -- sidecars -------------------------------------------------------------------------------------------------------


def _sidecar_plan(each: MemberFact, **more: Any) -> list[Action]:
    seen = found(group(GroupState.DEGRADED), each)
    return [a for a in plan(snapshot(seen, **more)) if not isinstance(a, MoveGroup | ChangeRunState | ReportZombie)]


def test_a_crash_is_answered_at_once() -> None:
    dead = member("scope")
    before, start = _sidecar_plan(fact(dead, alive=False, exit=Exit(1)))
    assert isinstance(before, MoveMember)
    assert (before.before, before.event) == (dead, MemberEvent.EXITED)
    assert before.after.process is None
    assert before.after.crashes == (NOW,)
    assert before.after.note == "ended with 1"
    assert start == StartSidecar(replace(before.after, state=S.BACKOFF), MemberEvent.RETRY_DUE)


@pytest.mark.parametrize("code", [None, 0, 1, 2, 137])
def test_an_end_while_its_polecat_lives_is_a_crash(code: int | None) -> None:
    actions = _sidecar_plan(fact(member("scope"), alive=False, exit=Exit(code)))
    assert [type(action) for action in actions] == [MoveMember, StartSidecar]


def test_a_second_crash_in_the_window_waits() -> None:
    (move,) = _sidecar_plan(fact(member("scope", crashes=(NOW - 3,)), alive=False, exit=Exit(1)))
    assert isinstance(move, MoveMember)
    assert NOW < move.after.retry_at <= NOW + SETTINGS.backoff_base


def test_too_many_crashes_fail_it_and_tell_the_rigs_witness_once() -> None:
    often = member("scope", crashes=tuple(NOW - n for n in range(5, 0, -1)))
    moved, failed, told = _sidecar_plan(fact(often, alive=False, exit=Exit(1)))
    assert isinstance(moved, MoveMember)
    assert isinstance(failed, MoveMember)
    assert (moved.event, failed.event) == (MemberEvent.EXITED, MemberEvent.RETRIES_SPENT)
    assert failed.before.state is S.BACKOFF
    assert failed.after.retry_at == NOW + SETTINGS.failed_decay
    assert isinstance(told, Tell)
    assert "scope is FAILED" in told.message
    assert _sidecar_plan(fact(replace(failed.after, state=S.FAILED), alive=False)) == []


def test_a_bad_configuration_is_not_tried_again_by_itself() -> None:
    moved, failed, told = _sidecar_plan(fact(member("scope"), alive=False, exit=Exit(3)))
    assert isinstance(failed, MoveMember)
    assert isinstance(moved, MoveMember)
    assert isinstance(told, Tell)
    assert failed.after.retry_at == 0.0
    assert failed.after.crashes == ()
    failed_member = fact(replace(failed.after, state=S.FAILED), alive=False)
    assert _sidecar_plan(failed_member, now=NOW + 1e9) == []


def test_a_limited_one_waits_and_is_not_counted_as_a_crash() -> None:
    (move,) = _sidecar_plan(fact(member("scope", crashes=(NOW - 3,)), alive=False, exit=Exit(4)))
    assert isinstance(move, MoveMember)
    assert move.after.crashes == (NOW - 3,)
    assert move.after.retry_at == NOW + 60.0


@pytest.mark.parametrize(("due", "expected"), [(NOW, True), (NOW + 0.1, False)])
def test_who_waits_is_tried_when_it_is_due(due: float, expected: bool) -> None:
    waiting = member("scope", S.BACKOFF, retry_at=due)
    assert _sidecar_plan(fact(waiting)) == ([StartSidecar(waiting, MemberEvent.RETRY_DUE)] if expected else [])


@pytest.mark.parametrize(("due", "expected"), [(NOW, True), (NOW + 0.1, False), (0.0, False)])
def test_a_failed_one_is_tried_again_after_its_decay(due: float, expected: bool) -> None:
    failed = member("scope", S.FAILED, retry_at=due)
    assert _sidecar_plan(fact(failed)) == ([StartSidecar(failed, MemberEvent.RESET)] if expected else [])


@pytest.mark.parametrize(("beat", "since", "late", "hung"), [
    (NOW - 29, NOW - 500, False, False),
    (NOW - 31, NOW - 500, False, True),
    (NOW - 31, NOW - 500, True, False),
    (None, NOW - 29, False, False),  # it has just been adopted
    (None, NOW - 31, False, True),
    (NOW - 500, NOW - 3, False, False),  # the beat of its predecessor
])  # fmt: skip
def test_no_sign_of_life_for_three_intervals(beat: float | None, since: float, late: bool, hung: bool) -> None:
    actions = _sidecar_plan(fact(member("scope", since=since), beat=beat), late=late)
    if not hung:
        assert actions == []
        return
    ended, moved, started = actions
    assert ended == EndProcess(RUN, SCOPE, "no sign of life for three intervals")
    assert isinstance(moved, MoveMember)
    assert moved.event is MemberEvent.HUNG
    assert isinstance(started, StartSidecar)


def test_a_starting_one_is_ready_at_its_first_beat() -> None:
    starting = member("scope", S.SPAWNING, process=SCOPE, since=NOW - 1)
    assert _sidecar_plan(fact(starting, beat=NOW - 2)) == []  # its predecessor's
    (move,) = _sidecar_plan(fact(starting, beat=NOW - 0.5))
    assert isinstance(move, MoveMember)
    assert (move.event, move.after.process, move.after.since) == (MemberEvent.READY, SCOPE, NOW)


@pytest.mark.parametrize(("age", "late", "given_up"), [(29.0, False, False), (31.0, False, True), (31.0, True, False)])
def test_a_slow_starter_has_its_time(age: float, late: bool, given_up: bool) -> None:
    starting = member("scope", S.SPAWNING, process=SCOPE, since=NOW - age)
    actions = _sidecar_plan(fact(starting, alive=True), late=late)
    assert (EndProcess(RUN, SCOPE, "it did not become ready") in actions) is given_up


def test_one_that_dies_while_starting_is_a_crash() -> None:
    starting = member("scope", S.SPAWNING, process=SCOPE)
    moved, started = _sidecar_plan(fact(starting, alive=False, exit=Exit(1)))
    assert isinstance(moved, MoveMember)
    assert moved.event is MemberEvent.EXITED
    assert isinstance(started, StartSidecar)


# -- what a Witness that was killed had begun -----------------------------------------------------------------------

STRAY = ProcessId(900, 9000)
INTENDED = member("scope", S.SPAWNING, process=None)


def test_a_sidecar_that_was_started_and_not_recorded_is_adopted() -> None:
    seen = snapshot(found(group(GroupState.DEGRADED), fact(INTENDED), strays={"scope": STRAY}))
    (move,) = [action for action in plan(seen) if not isinstance(action, MoveGroup)]
    assert isinstance(move, MoveMember)
    assert (move.event, move.after.process) == (MemberEvent.READY, STRAY)


def test_a_start_that_did_not_happen_happens_now() -> None:
    assert _sidecar_plan(fact(INTENDED)) == [StartSidecar(INTENDED, None)]


def test_a_glance_cannot_tell_and_waits_for_the_look() -> None:
    assert _sidecar_plan(fact(INTENDED), deep=False) == []


def test_a_second_one_of_the_same_sidecar_is_ended() -> None:
    seen = snapshot(found(group(), HEALTHY, strays={"scope": STRAY}))
    assert plan(seen) == [EndProcess(RUN, STRAY, "a second one of the same sidecar")]


# -- memory ---------------------------------------------------------------------------------------------------------


def test_descendants_are_remembered_and_the_dead_forgotten() -> None:
    child, gone = ProcessId(500, 1), ProcessId(400, 1)
    everybody = frozenset({REAPER, KEEPER, AGENT, SCOPE, child})
    seen = snapshot(found(group(), HEALTHY, descendants=everybody, seen=frozenset({gone})))
    assert plan(seen) == [Saw(RUN, frozenset({child}), frozenset({gone}))]
    known = snapshot(found(group(), HEALTHY, descendants=everybody, seen=frozenset({child})))
    assert plan(known) == []


def test_a_glance_forgets_nobody() -> None:
    seen = snapshot(found(group(), HEALTHY, seen=frozenset({ProcessId(400, 1)}), session=UNKNOWN), deep=False)
    assert plan(seen) == []


def test_pids_of_another_boot_are_not_remembered() -> None:
    seen = snapshot(found(group(boot="boot-0"), leaders=polecat(agent_alive=False), descendants=frozenset({AGENT})))
    assert not [action for action in plan(seen) if isinstance(action, Saw)]


def test_groups_are_judged_one_by_one() -> None:
    well = found(group(), HEALTHY)
    ill = found(replace(group(), id=replace(group().id, run="run2")), leaders=polecat(agent_alive=False))
    assert plan(Snapshot(NOW, BOOT, groups=(well, ill), settings={"main": SETTINGS})) == [
        ReportZombie("run2", "agent-dead"),
        MoveGroup("run2", GroupEvent.FOUND_ZOMBIE),
        Nuke("run2", "agent-dead"),
    ]
