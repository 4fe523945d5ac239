"""Doing what was decided, with a line in the journal before and after."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from witness.assignment import Assignment
from witness.clock import Clock
from witness.config.settings import Settings
from witness.config.town import Town
from witness.errors import JournalError, SpawnError, WitnessError
from witness.files import clear_place, replace_file
from witness.journal import Group, GroupState, Intent, Journal, Member, MemberKind, MemberState
from witness.launch.followed_session import hide_from_hooks
from witness.launch.pane import LAST_LINES, LAST_SCREEN, reported_processes
from witness.launch.sidecar_pool import PoolStartingError, SidecarPool
from witness.launch.town_witness import witness_process
from witness.names import MARKER_VARIABLE, GroupId
from witness.nuke import Target, TerminationResult, end_groups, foreign_to, target
from witness.process import ProcessId
from witness.process.cgroup import remove_cgroup
from witness.process.exits import agent_exit
from witness.process.limits import read_use
from witness.process.table import Table, ancestors, identify, is_alive, send
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
from witness.supervise.delivery_round import Deliveries
from witness.supervise.lifecycle import GroupEvent, MemberEvent, next_group, next_member
from witness.supervise.plan_sidecars import after_crash
from witness.tmux import Tmux
from witness.worktrees.keeper import WorktreeEnd

# Between TERM and KILL for what outlived its group's own end: the round waits for it, so it is short.
_ORPHANS_SECONDS = 0.3


@dataclass
class PatrolResult:
    """What a patrol has done, for people and for ``--json``."""

    respawned: list[dict[str, str]] = field(default_factory=list)
    zombies: list[dict[str, str]] = field(default_factory=list)
    nuked: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    worktrees: dict[str, WorktreeEnd] = field(default_factory=dict)


class Executor:
    """Performs actions in one town.

    Args:
        town, journal, tmux, pool, clock: what it works with.
    """

    def __init__(self, town: Town, journal: Journal, tmux: Tmux, pool: SidecarPool, clock: Clock) -> None:
        self._town, self._journal, self._tmux, self._sidecar_pool, self._clock = town, journal, tmux, pool, clock
        self._servers: frozenset[int] = frozenset()
        me = identify(os.getpid())
        self._me = me or ProcessId(os.getpid(), 0)

    # -- everything but the end of groups ---------------------------------------------------------------------------

    def perform(
        self, actions: Iterable[Action], settings: dict[str, Settings], outcome: PatrolResult
    ) -> list[tuple[str, str]]:
        """Do all that takes no time, and return the (run, reason) of the groups that are to be ended.

        A failure of one action does not keep the others from being done; it is named in ``outcome.errors``.
        """
        nukes: list[tuple[str, str]] = []
        for action in actions:
            try:
                if isinstance(action, Nuke):
                    nukes.append((action.run, action.reason))
                else:
                    self._do(action, settings, outcome)
            except JournalError:
                raise  # what cannot be recorded is not done, the rest of the plan included
            except WitnessError as error:
                outcome.errors.append(str(error))
        return nukes

    def _do(self, action: Action, settings: dict[str, Settings], outcome: PatrolResult) -> None:
        match action:
            case AdoptPolecat():
                self.record_polecat(action.run, action.reaper, action.keeper, action.agent)
            case MoveMember(before, event, after):
                self._move_member(before, event, after)
            case StartSidecar(member, event):
                self._start_sidecar(member, event, settings, outcome)
            case EndProcess(run, process, reason):
                self._note("ending", run, pid=process.pid, reason=reason)
                send(process, signal.SIGKILL)
            case MoveGroup(run, event):
                self.move_group(run, event)
            case ReportZombie(run, zombie):
                self._report(run, zombie, outcome)
            case Tell(run, message):
                self._note("told", run, message=message)
                self.tell_witness(run, message)
            case ChangeRunState(run, changes):
                self._journal.groups.change(run, **changes)
            case Saw(run, new, gone):
                with self._journal.transaction():
                    self._journal.groups.record_descendants(run, set(new))
                    self._journal.groups.drop_descendants(run, set(gone))
            case EndOrphans(run, processes):
                self._end_orphans(run, processes, outcome)
            case _:
                raise AssertionError(action)

    def _note(self, kind: str, run: str = "", member: str = "", **data: Any) -> None:
        self._journal.note(self._clock.wall(), kind, run, member, **data)

    def record_polecat(self, run: str, reaper: ProcessId, keeper: ProcessId, agent: ProcessId) -> None:
        """Record the three processes of a polecat that has started."""
        now = self._clock.monotonic()
        with self._journal.transaction():
            for member in self._journal.members.of(run):
                process = {"reaper": reaper, "keeper": keeper, "agent": agent}.get(member.name)
                if process and member.state is MemberState.DECLARED:
                    self._move_member(member, MemberEvent.ADOPTED, replace(member, process=process, since=now))
            self._note("polecat-started", run, pid=agent.pid)

    def _move_member(self, before: Member, event: MemberEvent, after: Member) -> Member | None:
        moved = replace(after, state=next_member(before.kind, before.state, event))
        with self._journal.transaction():
            if not self._journal.members.update(moved, before.state):
                return None  # somebody was quicker; the next look sees what they did
            if before.state is not moved.state:
                self._note(f"member-{moved.state.lower()}", before.run, before.name, event=event, note=moved.note)
        return moved

    def move_group(self, run: str, event: GroupEvent) -> bool:
        """Take a group to its next state; False when somebody was quicker."""
        group = self._journal.groups.get(run)
        if group is None:
            return False
        new = next_group(group.state, event)
        if not self._journal.groups.move(run, group.state, new):
            return False
        self._note(f"group-{new.lower()}", run)
        return True

    # -- sidecars ---------------------------------------------------------------------------------------------------

    def _start_sidecar(
        self, member: Member, event: MemberEvent | None, settings: dict[str, Settings], outcome: PatrolResult
    ) -> None:
        group = self._journal.groups.get(member.run)
        if group is None:
            return
        now = self._clock.monotonic()
        again = event in (MemberEvent.RETRY_DUE, MemberEvent.RESET)
        restarts = member.restarts + (1 if again else 0)
        starting: Member | None = replace(member, process=None, since=now, restarts=restarts)
        if event is not None:
            # Intent before act: the next Witness that finds SPAWNING without a process knows that one may have been
            # started.
            starting = self._move_member(member, event, starting or member)
        if starting is None:
            return
        try:
            process = self._sidecar_pool.start(self.assignment(group, member))
        except PoolStartingError:
            return  # it stays SPAWNING without a process: the look that follows the fork server's start takes it up
        except SpawnError as error:
            verdict = after_crash(member.crashes, now, settings[group.id.rig], f"{member.run}/{member.name}")
            failed = replace(starting, crashes=verdict.crashes, retry_at=verdict.retry_at, note=error.reason)
            waiting = self._move_member(starting, MemberEvent.SPAWN_FAILED, failed)
            if verdict.spent and waiting:
                self._move_member(waiting, MemberEvent.RETRIES_SPENT, waiting)
            outcome.errors.append(str(error))
            return
        self._journal.members.update(replace(starting, process=process), MemberState.SPAWNING)
        if again:
            outcome.respawned.append({"polecat": group.id.address, "sidecar": member.name})
        self._note("sidecar-started", member.run, member.name, pid=process.pid, restarts=restarts)

    def assignment(self, group: Group, member: Member) -> Assignment:
        """What a sidecar of a group is told when it is started."""
        agent = next(each for each in self._journal.members.of(group.id.run) if each.kind is MemberKind.AGENT)
        return Assignment(
            group=group.id,
            name=member.name,
            type=member.type,
            argument=member.argument,
            session=group.session,
            socket=self._tmux.socket,
            tmux_directory=self._tmux.directory,
            pane=group.run_state.pane,
            town=str(self._town.root),
            workdir=group.workdir,
            run_dir=str(self._town.run_dir(group.id.run)),
            journal=str(self._town.journal_path),
            queue=str(self._town.queue_dir(group.session)),
            agent=agent.process or ProcessId(0, 0),
            task=group.run_state.task,
            variables=dict(group.run_state.variables),
            overrides=dict(group.run_state.overrides.get(member.type, {})),
            definition=self._journal.definitions.of(group.id.run, member.type),
        )

    # -- reports ----------------------------------------------------------------------------------------------------

    def _report(self, run: str, zombie: str, outcome: PatrolResult) -> None:
        if not self._journal.groups.mark_zombie(run, zombie):
            return
        group = self._journal.groups.get(run)
        address = group.id.address if group else run
        reason = agent_exit(self._town.run_dir(run)).describe()
        self._note("zombie" if zombie else "recovered", run, zombie=zombie, agent=reason)
        if zombie:
            outcome.zombies.append({"polecat": address, "class": zombie, "action": "reported"})

    def tell_witness(self, run: str, message: str) -> None:
        """Queue one line for the rig's witness session (Gas Town's own agent of that name), where there is one."""
        from witness.delivery.nudge_queue import Nudge, NudgeQueue

        group = self._journal.groups.get(run)
        if group is None or not self._town.gastown:
            return
        session = f"{self._town.prefix(group.id.rig)}-witness"
        queue = NudgeQueue(self._town.queue_dir(session), self._clock)
        queue.enqueue(Nudge(sender="gt-witness", message=f"{group.id.address}: {message}", kind="gt-witness"))

    # -- ending groups ----------------------------------------------------------------------------------------------

    def begin_nuke(self, run: str, reason: str) -> Target | None:
        """Record that we are ending a group, and say what that means; None when nothing is left to do."""
        now = self._clock.monotonic()
        with self._journal.transaction():
            # Read in here: another Witness, or a spawn that undoes itself, may be ending it at this very moment.
            group = self._journal.groups.get(run)
            if group is None or group.state is GroupState.NUKED:
                return None
            self._journal.groups.set_intent(run, Intent.NUKE, now, reason)
            self._journal.groups.change(run, worker=self._me)
            if group.state is not GroupState.NUKING:
                self.move_group(run, GroupEvent.NUKE)
                self._note("nuke-began", run, reason=reason)
            members = []
            for member in self._journal.members.of(run):
                ending = member
                if member.state not in (MemberState.STOPPING, MemberState.STOPPED):
                    ending = self._move_member(member, MemberEvent.STOP, replace(member, since=now)) or member
                members.append(ending)
        # Pids of an earlier boot mean nothing now.
        if group.boot != self._clock.boot:
            return target(group, [], [])
        started = self._reported(group.id)
        return target(group, members, self._journal.groups.seen(run) | started)

    def keep_screens(self, runs: Collection[str]) -> None:
        """Leave the last lines of these groups' screens in their folders, before they are ended.

        An agent that ends by itself has its reaper for that; one that is ended clears its screen, or is killed.
        """
        groups = [group for run in runs if (group := self._journal.groups.get(run))]
        try:
            panes = self._tmux.panes()
            standing = {pane.id for pane in panes} | {pane.session for pane in panes}
            places = sorted({group.pane for group in groups} & standing)
            shown = self._tmux.last_lines(places, LAST_LINES) if places else {}
        except WitnessError:
            return  # tmux does not answer; nothing is worth keeping a group alive for
        for group in groups:
            text, path = shown.get(group.pane, "").rstrip(), self._town.run_dir(group.id.run) / LAST_SCREEN
            if text and not path.exists():
                with contextlib.suppress(OSError):
                    replace_file(path, text + "\n", durable=False, below=path.parent.parent)

    def _reported(self, group: GroupId) -> set[ProcessId]:
        return set(reported_processes(self._town.run_dir(group.run), group.marker).values())

    def foreign(self, runs: Iterable[str]) -> Protected:
        """Who must not be touched while these runs are ended, as far as the journal and tmux know."""
        ending = set(runs)
        # What Gas Town has started is Gas Town's to end, also while we end its sidecars.
        theirs = {group.id.run for group in self._journal.groups.living() if group.run_state.followed}
        others = {
            member.process
            for run, members in self._journal.members.of_living().items()
            for member in members
            if member.process and (run not in ending or (run in theirs and member.kind is not MemberKind.SIDECAR))
        }
        inside = {
            member.process
            for run in ending - theirs
            for member in self._journal.members.of(run)
            if member.process and member.kind is not MemberKind.SIDECAR
        }
        return Protected(self._helpers(), frozenset(others), self._tmux_servers(), frozenset(inside))

    def _helpers(self) -> frozenset[ProcessId]:
        """The Witness and the fork server, as the kernel knows them."""
        return frozenset(filter(None, (self._sidecar_pool.process(), witness_process(self._town))))

    def end(self, targets: list[Target], grace: float) -> list[TerminationResult]:
        """End the groups and wait until they have."""
        return end_groups(targets, self.foreign([goal.run for goal in targets]), grace, clock=self._clock)

    def end_unrecorded(self, group: GroupId, session: str, grace: float) -> list[TerminationResult]:
        """End a group by what it reported and by its marker, while the journal cannot be used."""
        reported = frozenset(self._reported(group))
        goal = Target(group.run, group.marker, reported)
        foreign = Protected(self._helpers(), frozenset(), self._tmux_servers(), reported)
        results = end_groups([goal], foreign, grace, clock=self._clock)
        self._take_session(group, session, PatrolResult())
        return results

    def _tmux_servers(self) -> frozenset[int]:
        with contextlib.suppress(WitnessError):  # it does not answer: those of before are kept out of harm's way
            self._servers = frozenset(pane.server for pane in self._tmux.panes())
        return self._servers

    def _take_session(self, group: GroupId, session: str, outcome: PatrolResult) -> None:
        """Take a session away if it is the group's: one of that name may be somebody else's, made since or before."""
        try:
            if self._tmux.variable(session, MARKER_VARIABLE) == group.marker:
                self._tmux.kill_session(session)
        except WitnessError as error:
            outcome.errors.append(f"{group.address}: its session may still stand: {error}")

    def finish_nuke(
        self, result: TerminationResult, outcome: PatrolResult, standing: Collection[str] | None = None
    ) -> None:
        """Record how the end of a group came out, and take away its session.

        Args:
            result: how it came out.
            outcome: where it is told.
            standing: the sessions that stand, where many ends ask tmux once; None asks it here.
        """
        group = self._journal.groups.get(result.run)
        if group is None or group.state is not GroupState.NUKING:
            return
        if standing is None or group.session in standing:
            self._take_session(group.id, group.session, outcome)
        left = {survivor.process for survivor in result.survivors}
        now = self._clock.monotonic()
        with self._journal.transaction():
            current = self._journal.groups.get(result.run)
            if current is None or current.state is not GroupState.NUKING:
                return  # somebody else was ending it too, and was quicker
            for member in self._journal.members.of(result.run):
                if member.state is MemberState.STOPPING:
                    event = MemberEvent.SURVIVORS if member.process in left else MemberEvent.TREE_GONE
                    self._move_member(member, event, replace(member, since=now))
            self._note(
                "nuke-failed" if left else "nuked", result.run, ended=result.ended, seconds=round(result.seconds, 4),
                survivors=[[each.process.pid, each.name] for each in result.survivors], reason=group.intent_note,
            )  # fmt: skip
            if left:
                # Nobody is at work on it any more: the next round tries again.
                self._journal.groups.change(result.run, worker=None)
            else:
                self.move_group(result.run, GroupEvent.GONE)
                # A sidecar that was ended with its group could not record it any more.
                self._journal.decisions.leave_unsaid(result.run)
        if left:
            pids = ", ".join(f"{each.process.pid} ({each.name})" for each in result.survivors)
            outcome.errors.append(f"{group.id.address}: still alive after its nuke: {pids}")
        else:
            outcome.nuked.append(group.id.address)
            outcome.errors.extend(Deliveries(self._town, self._journal, self._tmux, self._clock).close(group))
            self._tidy(result.run)

    def _tidy(self, run: str) -> None:
        """Remove what only a living run needs; logs, events and the record stay for people."""
        run_dir = self._town.run_dir(run)
        for name in ("launch.json", "started.fifo"):
            with contextlib.suppress(OSError):  # the agent can put there what it likes, and nobody needs it any more
                clear_place(run_dir / name)
        group = self._journal.groups.get(run)
        if group:
            self.tell_limits([group])
            self._remove_cgroups(group)
        if group and group.run_state.followed:
            hide_from_hooks(self._town, group)

    def tell_limits(self, groups: Iterable[Group]) -> None:
        """Record what of their limits groups have met since it was told last."""
        for group in groups:
            if not group.run_state.limit_cgroups:
                continue
            met = read_use(group.run_state.limit_cgroups).words
            if met and met != group.run_state.limits_met:
                self._journal.groups.change(group.id.run, limits_met=met)
                self._note("limits-met", group.id.run, words=met)

    def sweep_cgroups(self) -> list[str]:
        """Take away the empty cgroups of runs that are over; returns the addresses of those whose are gone now.

        Right after its last process a cgroup may be busy still, and whoever ended the run may have been killed.
        """
        return [group.id.address for group in self._journal.groups.ended_with_cgroups() if self._remove_cgroups(group)]

    def _remove_cgroups(self, group: Group) -> bool:
        gone = all([remove_cgroup(each, group.id.run) for each in group.cgroups])
        if gone and group.cgroups:
            self._journal.groups.change(group.id.run, cgroup="", limit_cgroups={})
        return gone

    def _end_orphans(self, run: str, processes: frozenset[ProcessId], outcome: PatrolResult) -> None:
        group = self._journal.groups.get(run)
        if group is None:
            return
        pids = tuple(sorted(process.pid for process in processes))
        # Some cannot be ended (another user's, or in the kernel for good): they are told of once, and tried again.
        fresh = group.run_state.orphans != pids
        if fresh:
            self._journal.groups.change(run, orphans=pids)
            self._note("zombie", run, zombie="orphans", pids=pids)
        goal = Target(run, group.id.marker, processes, pane=group.run_state.pane)
        result = self.end([goal], _ORPHANS_SECONDS)[0]
        if fresh or result.ended:
            outcome.zombies.append({"polecat": group.id.address, "class": "orphans", "action": f"ended {result.ended}"})
        if fresh and result.survivors:
            outcome.errors.append(f"{group.id.address}: {len(result.survivors)} orphans are still alive")


@dataclass(frozen=True, slots=True)
class Protected:
    """Callable for ``end_groups``: given a process table, everybody who must not be touched.

    Args:
        infrastructure: the Witness and the fork server.
        others: recorded members of groups that are not to be ended.
        servers: pids of the tmux servers.
        inside: reapers and agents of the groups that are to be ended.
    """

    infrastructure: frozenset[ProcessId]
    others: frozenset[ProcessId]
    servers: frozenset[int]
    inside: frozenset[ProcessId] = frozenset()

    def __call__(self, table: Table) -> set[ProcessId]:
        servers = {table[pid].process for pid in self.servers if pid in table}
        # Who runs below a polecat that is to end is a part of it, whatever it serves.
        roots = {process.pid for process in self.inside if is_alive(process, table)}
        kept = {each for each in self.infrastructure if not roots & ancestors(each.pid, table)}
        return foreign_to(table, kept | servers, self.others)
