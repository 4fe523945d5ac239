"""Random histories of a town: whatever happens in whatever order, the patrol's rules hold.

The plan is the real one, and so are the journal and everything that carries a plan out but signals, forks and tmux,
which a small world stands in for. The Witness may be killed after every single action.

After each step the plan is asked besides what it would do at this and at later moments, in every kind of look, and what
it says is judged. ``HISTORIES`` (how many, of fifty steps each) and ``HISTORIES_SEED`` make a longer run of
``test_thousands_of_histories``; it prints its seed, its steps and how often ``plan()`` was asked.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, note, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.supervise.world import FakePool, FakeTmux, WitnessKilledError, World
from witness.clock import ManualClock
from witness.config.settings import Settings
from witness.config.town import Town
from witness.errors import SpawnError, UsageError
from witness.journal import Group, GroupState, Intent, Journal, Member, MemberKind, MemberState
from witness.launch.sidecar_pool import PoolStartingError
from witness.names import GroupId
from witness.process import ProcessId
from witness.supervise import executor
from witness.supervise.actions import (
    Action,
    AdoptPolecat,
    EndOrphans,
    EndProcess,
    MoveMember,
    Nuke,
    ReportZombie,
    Saw,
    StartSidecar,
    Tell,
)
from witness.supervise.executor import Executor, PatrolResult
from witness.supervise.plan import plan
from witness.supervise.snapshot import Presence, Snapshot

HISTORIES = int(os.environ.get("HISTORIES", "400"))
SEED = int(os.environ.get("HISTORIES_SEED", random.SystemRandom().randrange(1 << 32)))
STEPS = 50
SETTINGS = Settings()
# (seconds from now, late, deep): the looks that might come next.
LOOKS = tuple((seconds, late, deep) for seconds in (0.0, 5.0, 70.0, 400.0, 4000.0) for late in (False, True) for deep in (False, True))  # noqa: E501 # fmt: skip
counted: Counter[str] = Counter()
NAMES = ("toast", "rye")
SIDECARS = ("scope", "tools")
LEADERS = {"reaper": MemberKind.REAPER, "keeper": MemberKind.REAPER, "agent": MemberKind.AGENT}


class Histories(RuleBasedStateMachine):
    """What may happen to a town."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.world = World(ManualClock())
        self.journal = Journal(Path(":memory:"))
        self.pool = FakePool(self.world)
        town = Town.init(Path(self._folder.name))
        parts: tuple[Any, ...] = (town, self.journal, FakeTmux(), self.pool, self.world.clock)
        self.actor = Executor(*parts)
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(executor, "send", lambda process, number: self.world.kill(process))
        self._runs = 0
        self._looked_at = self.world.clock.monotonic()
        self.told: Counter[str] = Counter()

    # -- who is there -------------------------------------------------------------------------------------------------

    def living(self) -> list[Group]:
        return self.journal.groups.living()

    def pick(self, data: st.DataObject, groups: list[Group]) -> str:
        return data.draw(st.sampled_from([group.id.run for group in groups]), label="run")

    # -- what people and spawners do ----------------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(NAMES),
        count=st.integers(0, 2),
        dies=st.sampled_from(["", "", "", "recorded", "started", "silent"]),
    )
    def spawn(self, name: str, count: int, dies: str) -> None:
        """A spawn; its spawner may die after each of its steps."""
        self._runs += 1
        run, now = f"run{self._runs}", self.world.clock.monotonic()
        group = Group(
            GroupId("main", name, run), f"gt-{name}", GroupState.SPAWNING, self.world.clock.boot, now,
            self.world.clock.wall(), "/work", ("agent",),
        )  # fmt: skip
        if any(each.id.polecat == name for each in self.living()):
            with pytest.raises(UsageError):
                self.journal.groups.add(group)
            return
        self.journal.groups.add(group)
        for member, kind in LEADERS.items():
            self.journal.members.add(Member(run, member, kind))
        for sidecar in SIDECARS[:count]:
            self.journal.members.add(Member(run, sidecar, MemberKind.SIDECAR, type=sidecar))
        if dies == "recorded":
            return
        self.world.sessions.add(run)
        if dies == "silent":  # a pane whose reaper never tells anything
            self.world.start(run, "reaper")
            return
        started = {member: self.world.start(run, member) for member in LEADERS}
        self.world.reported[run] = started
        if dies == "started":
            return
        self.world.spawners.add(run)
        self.actor.record_polecat(run, **started)

    @precondition(lambda self: self.world.spawners)
    @rule(data=st.data())
    def the_spawner_goes_home(self, data: st.DataObject) -> None:
        self.world.spawners.discard(data.draw(st.sampled_from(sorted(self.world.spawners))))

    @precondition(lambda self: self._runs)
    @rule(data=st.data(), intent=st.sampled_from([Intent.DONE, Intent.NUKE]))
    def somebody_wants_its_end(self, data: st.DataObject, intent: Intent) -> None:
        """For any run there ever was: what is meant for an earlier one reaches no later one."""
        run = data.draw(st.sampled_from([f"run{number + 1}" for number in range(self._runs)]))
        before = {group.id.run: group.intent for group in self.living()}
        taken = self.journal.groups.set_intent(run, intent, self.world.clock.monotonic())
        after = {group.id.run: group.intent for group in self.living()}
        assert {each for each in before if before[each] is not after[each]} == ({run} if taken else set())

    # -- what the world does ------------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.01, 0.5, 3.0, 12.0, 45.0, 400.0, 30_000.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @rule(hours=st.sampled_from([8, -1]))
    def somebody_sets_the_date(self, hours: int) -> None:
        self.world.clock.date += 3600 * hours

    @rule()
    def reboot(self) -> None:
        self.world.reboot()
        self._looked_at = self.world.clock.monotonic()

    @rule()
    def tmux_stops_or_starts_to_answer(self) -> None:
        self.world.tmux_answers = not self.world.tmux_answers

    @precondition(lambda self: self.living())
    @rule(data=st.data(), leaves=st.booleans(), session=st.booleans())
    def an_agent_dies(self, data: st.DataObject, leaves: bool, session: bool) -> None:
        run = self.pick(data, self.living())
        for process in self.world.of(run, "agent") | (set() if leaves else self.world.of(run, "child")):
            self.world.kill(process)
        if session:
            self.world.sessions.discard(run)

    @precondition(lambda self: self.living())
    @rule(data=st.data())
    def a_session_goes_or_comes_back(self, data: st.DataObject) -> None:
        self.world.sessions ^= {self.pick(data, self.living())}

    @precondition(lambda self: self.living())
    @rule(data=st.data())
    def an_agent_forks(self, data: st.DataObject) -> None:
        run = self.pick(data, self.living())
        if self.world.agent(run):
            self.world.start(run, "child")

    @rule(data=st.data(), code=st.sampled_from([None, 0, 1, 3, 4, 137]))
    def a_sidecar_dies(self, data: st.DataObject, code: int | None) -> None:
        if found := self._sidecars():
            self.world.kill(data.draw(st.sampled_from(found)), code)

    @rule(data=st.data())
    def a_sidecar_hangs(self, data: st.DataObject) -> None:
        if found := self._sidecars():
            self.world.hung.add(data.draw(st.sampled_from(found)))

    @rule()
    def sidecars_observe(self) -> None:
        for process in self._sidecars():
            self.world.beats.setdefault(process, self.world.clock.monotonic())

    @rule()
    def a_stranger_takes_a_free_pid(self) -> None:
        self.world.start("", "stranger")

    @rule(fails=st.sampled_from([None, None, SpawnError, PoolStartingError]))
    def the_fork_server_works_fails_or_comes_up(self, fails: type[SpawnError] | None) -> None:
        self.pool.fails = fails

    def _sidecars(self) -> list[ProcessId]:
        return sorted(each for each in self.world.alive if self.world.roles[each] in SIDECARS)

    # -- what the Witness does ----------------------------------------------------------------------------------------

    @rule()
    def patrol(self) -> None:
        """A full round that is carried out to its end; a second one at the same instant finds nothing more to do."""
        self._carry_out(self._look())
        for _ in range(2):
            self._carry_out(self._look())
        again = [
            action for action in planned(self._look()) if isinstance(action, StartSidecar | Nuke | Tell | EndProcess)
        ]
        if not self.pool.fails:
            assert not again, again
        doubled = Counter((self.world.owners[each], self.world.roles[each]) for each in self._sidecars())
        assert not [each for each, count in doubled.items() if count > 1]

    @precondition(lambda self: self.living())
    @rule(data=st.data())
    def glance(self, data: st.DataObject) -> None:
        run = self.pick(data, self.living())
        self._carry_out(self.world.look(self.journal, SETTINGS, deep=False, runs=[run]))

    @rule(after=st.integers(0, 6), in_a_fork=st.booleans())
    def the_witness_is_killed(self, after: int, in_a_fork: bool) -> None:
        """In the middle of a round, after so many of its actions, or between a fork and its record."""
        self.pool.witness_dies = in_a_fork
        try:
            self._carry_out(self._look(), stop_after=after)
        except WitnessKilledError:
            pass
        finally:
            self.pool.witness_dies = False

    def _look(self) -> Snapshot:
        now = self.world.clock.monotonic()
        late = now - self._looked_at > SETTINGS.patrol_interval * 3
        self._looked_at = now
        return self.world.look(self.journal, SETTINGS, late=late)

    def _carry_out(self, snapshot: Snapshot, stop_after: int | None = None) -> None:
        actions = planned(snapshot)
        note(f"{'late ' if snapshot.late else ''}{'look' if snapshot.deep else 'glance'}: {actions}")
        assert planned(snapshot) == actions
        self._judge(actions, snapshot)
        deeds = PatrolResult()
        for action in actions if stop_after is None else actions[:stop_after]:
            if isinstance(action, EndOrphans):
                for process in action.processes:
                    self.world.kill(process)
                continue
            if isinstance(action, Tell):
                self.told[action.run] += 1
            for run, reason in self.actor.perform([action], {"main": SETTINGS}, deeds):
                self._nuke(run, reason, deeds, whole=stop_after is None)
        moved = {action.before.run for action in actions if isinstance(action, MoveMember)}
        if moved and stop_after is None:
            self._carry_out(self.world.look(self.journal, SETTINGS, deep=False, runs=moved, late=snapshot.late))

    def _nuke(self, run: str, reason: str, deeds: PatrolResult, whole: bool) -> None:
        target = self.actor.begin_nuke(run, reason)
        if target and whole:
            self.actor.finish_nuke(self.world.end(target), deeds)
            group = self.journal.groups.get(run)
            assert group
            assert group.state is GroupState.NUKED
            assert not self.world.of(run)

    # -- the rules that hold ------------------------------------------------------------------------------------------

    def _judge(self, actions: list[Action], snapshot: Snapshot) -> None:
        ours = self.world.owners
        starts = Counter((each.member.run, each.member.name) for each in actions if isinstance(each, StartSidecar))
        nukes = Counter(each.run for each in actions if isinstance(each, Nuke))
        zombies = Counter(each.run for each in actions if isinstance(each, ReportZombie))
        assert max([0, *starts.values(), *nukes.values(), *zombies.values()]) <= 1, "an action twice"
        for action in actions:
            match action:
                case EndProcess(run, process, _):
                    assert ours[process] == run
                    assert self.world.roles[process] in SIDECARS, "the polecat is never the victim"
                case Saw(run, new, _):
                    assert all(ours[each] == run for each in new)
                case EndOrphans(run, processes):
                    assert all(ours[each] == run for each in processes)
                case AdoptPolecat(run, reaper, keeper, agent):
                    assert {ours[each] for each in (reaper, keeper, agent)} == {run}
                case Nuke(run, _):
                    self._must_be_allowed(run, snapshot)
                case StartSidecar(member, _):
                    group = self.journal.groups.get(member.run)
                    assert group
                    # A spawn is finished before it is ended again.
                    spawning = member.run in self.world.spawners
                    assert group.intent is Intent.RUN or spawning, "a sidecar for a group that is to end"
                    alive = self.world.of(member.run, member.name) - _ended(actions)
                    assert not alive or not snapshot.deep, "a second one"
                case _:
                    pass

    def _must_be_allowed(self, run: str, snapshot: Snapshot) -> None:
        fact = next(each for each in snapshot.groups if each.group.id.run == run)
        group, agent = fact.group, self.world.agent(run)
        if group.intent is not Intent.RUN or group.state is GroupState.NUKING or agent is None:
            return
        if group.boot != self.world.clock.boot:
            return
        gone_twice = fact.session is Presence.ABSENT and group.run_state.session_missing is not None
        unfinished = group.state is GroupState.SPAWNING and run not in self.world.spawners
        assert gone_twice or (unfinished and fact.session is Presence.ABSENT), "a living polecat was to be nuked"

    @invariant()
    def whatever_look_comes_next_its_plan_is_sound(self) -> None:
        counted["steps"] += 1
        snapshot = self.world.look(self.journal, SETTINGS)
        for seconds, late, deep in LOOKS:
            asked = replace(snapshot, now=snapshot.now + seconds, late=late, deep=deep)
            self._judge(planned(asked), asked)

    @invariant()
    def the_journal_and_the_world_agree(self) -> None:
        names = Counter(group.id.address for group in self.living())
        assert max(names.values(), default=0) <= 1
        for group in self.living():
            for member in self.journal.members.of(group.id.run):
                if member.process and member.state is not MemberState.LOST:
                    assert self.world.owners[member.process] == group.id.run

    def teardown(self) -> None:
        """Whatever state a town has got into: once the agents are gone every group ends, and nobody of it lives."""
        try:
            self.pool.fails, self.world.tmux_answers = None, True
            self.world.spawners.clear()
            for process in list(self.world.alive):
                if self.world.roles[process] == "agent":
                    self.world.kill(process)
            for _ in range(4):
                self.world.pass_time(SETTINGS.spawn_deadline + 1)
                # Each look in its time: none of them is late.
                self._looked_at = self.world.clock.monotonic()
                self._carry_out(self._look())
            assert self.living() == []
            assert {self.world.owners[each] for each in self.world.alive} <= {""}
        finally:
            self._patch.undo()
            self.journal.close()
            self._folder.cleanup()


def planned(snapshot: Snapshot) -> list[Action]:
    """``plan()``, counted."""
    counted["plans"] += 1
    return plan(snapshot)


def _ended(actions: list[Action]) -> set[ProcessId]:
    return {each.process for each in actions if isinstance(each, EndProcess)}


def _settings(histories: int, steps: int) -> settings:
    return settings(
        max_examples=histories, stateful_step_count=steps, deadline=None, database=None,
        phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck),
    )  # fmt: skip


@pytest.mark.timeout(180)
def test_histories() -> None:
    run_state_machine_as_test(Histories, settings=_settings(60, 30))


@pytest.mark.real
@pytest.mark.timeout(7200)
def test_thousands_of_histories(capsys: pytest.CaptureFixture[str]) -> None:
    counted.clear()
    try:
        run_state_machine_as_test(seed(SEED)(Histories), settings=_settings(HISTORIES, STEPS))
    finally:
        with capsys.disabled():
            print(f"\nHISTORIES_SEED={SEED}: {counted['steps']} steps with the journal, {counted['plans']} of plan()")
