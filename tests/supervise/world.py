"""A world without processes: what the patrol would see and do, kept in a few dictionaries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from witness.clock import ManualClock
from witness.config.settings import Settings
from witness.errors import SpawnError
from witness.journal import Group, GroupState, Journal, MemberKind
from witness.nuke import Target, TerminationResult
from witness.process import ProcessId
from witness.process.exits import UNKNOWN_EXIT, Exit
from witness.supervise.snapshot import GroupFact, MemberFact, Presence, Snapshot

# Few pids, so that most of them are used again and again.
_PIDS = range(100, 112)


class WitnessKilledError(BaseException):
    """The Witness was killed at this very instant."""


@dataclass
class World:
    """Processes, sessions and signs of life.

    Args:
        clock: time.
        owners: every process that ever was, by the run that it belongs to; empty for somebody else's.
        roles: what it is in its run (``agent``, ``reaper``, a sidecar's name, ``child``).
        alive: those that live.
        exits: how a sidecar ended, where the fork server could tell.
        beats: last sign of life by process; who is missing here has given none.
        hung: sidecars that give no more signs of life.
        sessions: runs whose tmux session stands.
        reported: what a run's reaper has told, by run.
        spawners: runs whose spawner is alive and at work.
        tmux_answers: whether tmux says anything at all.
    """

    clock: ManualClock
    owners: dict[ProcessId, str] = field(default_factory=dict)
    roles: dict[ProcessId, str] = field(default_factory=dict)
    alive: set[ProcessId] = field(default_factory=set)
    exits: dict[ProcessId, int] = field(default_factory=dict)
    beats: dict[ProcessId, float] = field(default_factory=dict)
    hung: set[ProcessId] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)
    reported: dict[str, dict[str, ProcessId]] = field(default_factory=dict)
    spawners: set[str] = field(default_factory=set)
    tmux_answers: bool = True
    _ticks: int = 0

    def start(self, run: str, role: str) -> ProcessId:
        """A new process, on the lowest pid that is free."""
        taken = {process.pid for process in self.alive}
        self._ticks += 1
        pid = next((pid for pid in _PIDS if pid not in taken), _PIDS.stop + self._ticks)
        process = ProcessId(pid, self._ticks)
        self.owners[process], self.roles[process] = run, role
        self.alive.add(process)
        return process

    def kill(self, process: ProcessId, code: int | None = None) -> bool:
        """End a process; a signal to anybody but exactly this one is a fault."""
        if process not in self.alive:
            return False
        self.alive.discard(process)
        if code is not None:
            self.exits[process] = code
        return True

    def of(self, run: str, role: str = "") -> set[ProcessId]:
        """The living processes of a run."""
        return {each for each in self.alive if self.owners[each] == run and role in ("", self.roles[each])}

    def agent(self, run: str) -> ProcessId | None:
        return next(iter(self.of(run, "agent")), None)

    def pass_time(self, seconds: float) -> None:
        """Let time pass; whoever is well gives a sign of life at its end."""
        self.clock.advance(seconds)
        for process in self.alive & set(self.beats) - self.hung:
            self.beats[process] = self.clock.monotonic()

    def reboot(self) -> None:
        """Everybody is gone, and the monotonic clock begins anew."""
        self.alive.clear()
        self.sessions.clear()
        self.spawners.clear()
        self.clock.boot += "+"
        self.clock.now = 10.0

    # -- what an observer would bring -------------------------------------------------------------------------------

    def look(
        self,
        journal: Journal,
        settings: Settings,
        *,
        deep: bool = True,
        runs: Iterable[str] | None = None,
        late: bool = False,
    ) -> Snapshot:
        """A snapshot, as ``witness.supervise.snapshot`` takes it from the real world."""
        living = [group for group in journal.groups.living() if runs is None or group.id.run in set(runs)]
        facts = tuple(self._fact(journal, group, deep) for group in living)
        orphans: dict[str, frozenset[ProcessId]] = {}
        if deep:
            for process in self.alive:
                group = journal.groups.get(self.owners[process])
                if group and group.state is GroupState.NUKED:
                    orphans[group.id.run] = orphans.get(group.id.run, frozenset()) | {process}
        rigs = {"main": settings}
        return Snapshot(self.clock.monotonic(), self.clock.boot, late, facts, rigs, orphans, deep)

    def _fact(self, journal: Journal, group: Group, deep: bool) -> GroupFact:
        run, this_boot = group.id.run, group.boot == self.clock.boot
        members = []
        for member in journal.members.of(run):
            alive = bool(this_boot and member.process in self.alive)
            code = self.exits.get(member.process) if member.process else None
            beat = self.beats.get(member.process) if member.process else None
            exit = Exit(code) if code is not None and member.kind is MemberKind.SIDECAR else UNKNOWN_EXIT
            members.append(MemberFact(member, alive, exit if not alive else UNKNOWN_EXIT, beat))
        recorded = {each.member.process for each in members}
        strays = {
            self.roles[each]: each
            for each in sorted(self.of(run) - recorded)
            if self.roles[each] not in ("agent", "reaper", "keeper", "child")
        }
        presence = Presence.PRESENT if run in self.sessions else Presence.ABSENT
        return GroupFact(
            group,
            tuple(members),
            session=presence if deep and self.tmux_answers else Presence.UNKNOWN,
            started=self.reported.get(run) if group.state is GroupState.SPAWNING and this_boot else None,
            busy=run in self.spawners,
            strays=strays if deep else {},
            descendants=frozenset(self.of(run)) if deep else frozenset(),
            seen=frozenset(journal.groups.seen(run)) if deep and this_boot else frozenset(),
        )

    # -- what acting comes to ---------------------------------------------------------------------------------------

    def end(self, target: Target, run_is_marked: bool = True) -> TerminationResult:
        """The end of a group: recorded processes, marked ones, and what is below them."""
        doomed = {each for each in target.recorded if each in self.alive} | (
            self.of(target.run) if run_is_marked else set()
        )
        for process in doomed:
            assert self.owners[process] == target.run, "a process of somebody else was about to be ended"
            self.kill(process)
        self.sessions.discard(target.run)
        return TerminationResult(target.run, len(doomed), (), 0.01)


@dataclass
class FakePool:
    """Forks sidecars in the world; may fail, and the Witness may be killed right after the fork."""

    world: World
    fails: type[SpawnError] | None = None
    witness_dies: bool = False

    def start(self, assignment: Any) -> ProcessId:
        if self.fails:
            raise self.fails(assignment.name, "the fork server does not answer")
        process = self.world.start(assignment.group.run, assignment.name)
        if self.witness_dies:
            raise WitnessKilledError
        return process

    def process(self) -> None:
        return None


class FakeTmux:
    """Knows no session: the world keeps them by run."""

    socket, directory = "town", ""

    def variable(self, session: str, name: str) -> str:
        return ""

    def kill_session(self, session: str) -> None:
        raise AssertionError("not ours")

    def panes(self) -> list[Any]:
        return []
