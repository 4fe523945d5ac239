"""Ending groups, and proving that they are gone.

TERM to everybody; wait for the kernel to say that they have ended, not for time to pass; look again for newcomers.
After the grace: stop the processes that are left and look again until a look finds no new one, so that nothing can fork
away from under us, then KILL. What a last look still finds is a survivor, and is reported. A look that has missed
somebody (it ended before it was known whose it is, and may have left a child) proves nothing, and is repeated.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from witness.clock import Clock, SystemClock
from witness.journal import Group, Member, MemberKind
from witness.process import ProcessId
from witness.process.cgroup import cgroup_members
from witness.process.exits import ExitWatch
from witness.process.limits import lift_cpu_weight
from witness.process.looks import Looks
from witness.process.table import GroupMembership, Markers, Table, ancestors, is_alive, process_name, send

# After SIGKILL the kernel needs milliseconds; a process in uninterruptible sleep may need for ever.
KILL_SECONDS = 2.0
_LOOKS_THAT_PROVE = 2
_MOMENT_SECONDS = 0.05
# However late it is: a caller that was suspended has not looked meanwhile.
_REPEATS_AT_LEAST = 20
# Looks in a row read only what is new; after so long everybody is read again.
_ROW_SECONDS = 0.25
# The name of a survivor that was never seen but by what it left.
_UNSEEN = "forks faster than it can be looked at"


# How long, at most, and up to which lull, the ends of other groups are gathered before the next look.
_GATHER_SECONDS = 0.03
_LULL_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process that is alive after its stop."""

    process: ProcessId
    name: str


@dataclass(frozen=True, slots=True)
class TerminationResult:
    """What became of one group.

    Args:
        run: its run.
        ended: how many processes of it ended.
        survivors: those that did not.
        seconds: how long it took.
    """

    run: str
    ended: int
    survivors: tuple[Survivor, ...]
    seconds: float


@dataclass
class _Ending:
    """One group on its way out.

    All limits are counted from the act that they follow: a caller that is suspended for a while between two looks has
    still asked before it forces, and forced before it gives up.
    """

    target: Target
    grace: float
    began: float
    term_until: float = math.inf
    kill_until: float = math.inf
    # Until when, before KILL and before giving up, looks are repeated because they missed somebody, and how many were.
    repeat_until: float = math.inf
    repeats: int = 0
    known: set[ProcessId] = field(default_factory=set)
    living: set[ProcessId] = field(default_factory=set)
    asked: set[ProcessId] = field(default_factory=set)
    stopped: set[ProcessId] = field(default_factory=set)
    missed: frozenset[int] = frozenset()
    found_none: int = 0
    finished: float | None = None

    @property
    def waits_for(self) -> set[ProcessId]:
        """Whose end is the sign to look again: everybody but the reapers; the reapers once they are alone."""
        return self.living - self.target.keepers or self.living

    def step(self, found: set[ProcessId], missed: frozenset[int], now: float) -> bool:
        """Act on a look: whom it found and which pids it missed; True when another look is needed at once."""
        self.known |= found
        if bool(found) != bool(self.living):
            self.repeat_until, self.repeats = math.inf, 0
        self.living, self.missed = found, missed
        # Two looks: in the midst of an exec a process shows no environment.
        self.found_none = 0 if found else self.found_none + (not missed)
        if self.found_none >= _LOOKS_THAT_PROVE or (found and now >= self.kill_until):
            self.finished = now
            return False
        if not found:
            if missed and not self._may_repeat(now):
                self.finished = now
            return self.finished is None
        if self.term_until == math.inf:
            self.term_until = now + self.grace
            return self._ask(found)
        return self._ask(found) if now < self.term_until else self._force(found, now)

    def _may_repeat(self, now: float) -> bool:
        self.repeat_until = min(self.repeat_until, now + KILL_SECONDS)
        self.repeats += 1
        return now < self.repeat_until or self.repeats < _REPEATS_AT_LEAST

    def _ask(self, found: set[ProcessId]) -> bool:
        for process in found - self.asked:
            self.asked.add(process)
            if process not in self.target.keepers:
                send(process, signal.SIGTERM)
                # An interactive shell ignores TERM, but not the loss of its terminal.
                send(process, signal.SIGHUP)
            # A stopped process takes its TERM only once it runs again.
            send(process, signal.SIGCONT)
        return False

    def _force(self, found: set[ProcessId], now: float) -> bool:
        # Reapers last: while they live, an orphan falls to them and not out of the tree.
        doomed = found - self.target.keepers or found
        fresh = doomed - self.stopped
        for process in fresh:
            send(process, signal.SIGSTOP)
        self.stopped |= fresh
        if fresh or (self.missed and self._may_repeat(now)):
            return True
        for process in doomed:
            send(process, signal.SIGKILL)
        self.kill_until = min(self.kill_until, now + KILL_SECONDS)
        return False


def end_groups(
    targets: Iterable[Target],
    foreign: Callable[[Table], set[ProcessId]],
    grace: float,
    *,
    markers: Markers | None = None,
    extra: Callable[[str], set[int]] | None = None,
    clock: Clock | None = None,
) -> list[TerminationResult]:
    """End groups side by side: many take about as long as one.

    Args:
        targets: the groups.
        foreign: given a process table, the processes that must not be touched.
        grace: seconds between TERM and KILL.
        markers: a reader of markers whose memory is reused.
        extra: given a run, pids that a further net holds; the group's own cgroups when None.
        clock: time.

    Returns:
        One result a target, in their order; a target with survivors says so.
    """
    clock = clock or SystemClock()
    looks = Looks(markers or Markers())
    now = read = clock.monotonic()
    endings = [_Ending(goal, grace, now) for goal in targets]
    for ending in endings:
        lift_cpu_weight(ending.target.cgroups)
    with ExitWatch() as watch:
        watched: set[ProcessId] = set()
        afresh = True
        while open_ones := [ending for ending in endings if ending.finished is None]:
            now = clock.monotonic()
            afresh = afresh or now - read > _ROW_SECONDS
            read = now if afresh else read
            look = looks.take(afresh=afresh)
            kinship = GroupMembership(look.table, look.marks)
            out_of_bounds = foreign(look.table)
            now = clock.monotonic()
            again = afresh = False
            for ending in open_ones:
                held = extra(ending.target.run) if extra else _held(ending.target)
                # Asked after the table was read: a pid that another process took since then stands there with its
                # former owner, which no signal reaches any more.
                recorded = ending.target.recorded | ending.known
                recorded |= {look.table[pid].process for pid in held if pid in look.table}
                found = kinship.group(ending.target.marker, recorded, out_of_bounds, ending.target.pane)
                # One that the cgroup holds and the table does not came after it, or has ended since.
                newer: set[int] = set() if extra else held - look.table.keys() - {0}
                again |= ending.step(found, look.missed | newer, now)
                for process in found - watched:
                    watched.add(process)
                    if not watch.add(process):
                        again = afresh = True
            if not again:
                afresh = True
                _wait(watch, [ending for ending in endings if ending.finished is None], clock)
    return [_result(ending) for ending in endings]


def _held(goal: Target) -> set[int]:
    return {pid for each in goal.cgroups for pid in cgroup_members(each, goal.run)}


def _wait(watch: ExitWatch, endings: list[_Ending], clock: Clock) -> None:
    """Sleep until a new look is worth its while: somebody's wait is over, or a limit has come."""
    waits = {id(ending): set(ending.waits_for) for ending in endings}
    while waits and all(waits.values()):
        now = clock.monotonic()
        limits = [limit for ending in endings for limit in (ending.term_until, ending.kill_until) if now < limit < math.inf]  # noqa: E501 # fmt: skip
        if not limits:
            # All limits passed while we were suspended: those who were sent a signal just now get a moment to take it.
            while watch.wait(_MOMENT_SECONDS):
                pass
            return
        gone = watch.wait(min(limits) - now)
        if not gone and clock.monotonic() >= min(limits):
            return
        for processes in waits.values():
            processes.difference_update(gone)
    # Of many groups that were asked together others end in the same moment: one look for all of them, not one for each.
    until = clock.monotonic() + _GATHER_SECONDS
    while any(waits.values()) and (left := until - clock.monotonic()) > 0:
        gone = watch.wait(min(left, _LULL_SECONDS))
        if not gone:
            return
        for processes in waits.values():
            processes.difference_update(gone)


def _result(ending: _Ending) -> TerminationResult:
    survivors = tuple(Survivor(process, process_name(process)) for process in sorted(ending.living))
    ended = len(ending.known) - len(survivors)
    if ending.missed and not survivors:
        # Nobody was found, and nobody can be said to be absent.
        survivors = (Survivor(ProcessId(max(ending.missed), 0), _UNSEEN),)
    seconds = (ending.finished or ending.began) - ending.began
    return TerminationResult(ending.target.run, ended, survivors, seconds)


def unfinished(goal: Target) -> TerminationResult:
    """The result of an end that was broken off: a process that is on record and lives counts as a survivor."""
    living = [process for process in goal.recorded if is_alive(process)]
    survivors = tuple(Survivor(process, process_name(process)) for process in sorted(living))
    return TerminationResult(goal.run, len(goal.recorded) - len(survivors), survivors, 0.0)


# Who must go, and who must not.


@dataclass(frozen=True, slots=True)
class Target:
    """A group that is to be ended.

    Args:
        run: its run.
        marker: the marker that its processes carry.
        recorded: identities on record: its members, and every descendant ever seen.
        keepers: of these, the reapers. They hold the orphans, so they are the last to be killed; when everything else
            is gone they end by themselves.
        cgroups: folders of the group's own cgroups.
        pane: the group's pane, empty when it is not known.
    """

    run: str
    marker: str
    recorded: frozenset[ProcessId]
    keepers: frozenset[ProcessId] = field(default_factory=frozenset)
    cgroups: tuple[str, ...] = ()
    pane: str = ""


def target(group: Group, members: Iterable[Member], seen: Iterable[ProcessId]) -> Target:
    """What the journal knows of a group's processes; of a polecat that Gas Town has started, only the sidecars."""
    followed = group.run_state.followed
    processes = {
        member.process: member.kind
        for member in members
        if member.process and not (followed and member.kind is not MemberKind.SIDECAR)
    }
    return Target(
        run=group.id.run,
        marker=group.id.marker,
        recorded=frozenset(processes) | (frozenset() if followed else frozenset(seen)),
        keepers=frozenset(process for process, kind in processes.items() if kind is MemberKind.REAPER),
        cgroups=group.cgroups,
        pane=group.run_state.pane,
    )


def foreign_to(table: Table, infrastructure: Iterable[ProcessId], others: Iterable[ProcessId]) -> set[ProcessId]:
    """The processes that no nuke may touch, however they descend.

    Args:
        table: the process table.
        infrastructure: the Witness, the fork server, the tmux server.
        others: recorded members of groups that are not to be ended.

    Returns:
        These, init, and the calling process with all its ancestors.
    """
    kept = set(infrastructure) | set(others)
    kept.update(table[pid].process for pid in {1, *ancestors(os.getpid(), table)} if pid in table)
    return kept


def is_inside(targets: Iterable[Target], table: Table) -> bool:
    """Whether the calling process itself runs inside one of the targets, so that somebody else must end it."""
    line = {table[pid].process for pid in ancestors(os.getpid(), table) if pid in table}
    return any(line & goal.recorded for goal in targets)
