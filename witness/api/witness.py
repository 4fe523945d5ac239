"""The class ``Witness``: one town, for programs.

Any thread may call any method: they take turns. What waits (``events``, ``wait``, a nudge that waits for an idle agent)
opens the journal anew and keeps nobody waiting.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from witness.clock import Clock, SystemClock
from witness.config.town import Town
from witness.errors import NotFoundError, RunEndedError, TownLockedError, UsageError, WitnessError
from witness.journal import (
    Decision,
    Group,
    GroupState,
    Intent,
    Journal,
    Member,
    MemberKind,
    MemberState,
    Worktree,
    WorktreeState,
)
from witness.names import GroupId

# What a call needs is imported by the call: a program that only reads a town must not pay for the supervision.
if TYPE_CHECKING:
    from witness.api.events import WitnessEvent
    from witness.api.messages import NudgeResult
    from witness.judging.functions import JudgeFunction
    from witness.launch.spawn_request import MemoryProvider, SpawnPlan, SpawnRequest
    from witness.nuke import TerminationResult
    from witness.supervise.reconcile import PatrolReport, Reconciler
    from witness.supervise.spawn import SpawnResult
    from witness.tmux import Tmux
    from witness.worktrees.keeper import WorktreeEnd, WorktreeKeeper

_PATROL_SECONDS = 120.0
_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class NukeResult:
    """How the end of one polecat came out.

    Args:
        group: the polecat.
        result: what ended and what survived; None when it was handed to the Witness, because the caller runs inside.
        processes: for a dry run, the pids that it would have ended.
        worktree: what became of its worktree; None where it had none, or the Witness sees to it.
    """

    group: Group
    result: TerminationResult | None = None
    processes: tuple[int, ...] = ()
    worktree: WorktreeEnd | None = None

    def as_json(self) -> dict[str, Any]:
        """The form that ``gt polecat nuke --json`` promises."""
        survivors = self.result.survivors if self.result else ()
        return {
            "polecat": self.group.id.address,
            "ended": self.result.ended if self.result else 0,
            "survivors": [{"pid": each.process.pid, "name": each.name} for each in survivors],
            "seconds": round(self.result.seconds, 4) if self.result else 0.0,
            **({"worktree": self.worktree.as_json()} if self.worktree else {}),
        }


def _in_turn(method: Callable[Concatenate[Witness, _P], _R]) -> Callable[Concatenate[Witness, _P], _R]:
    """Let one thread at a time run the method: the journal's connection and the sidecar pool's are one each."""

    @functools.wraps(method)
    def turn(self: Witness, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with self._turn:
            return method(self, *args, **kwargs)

    return turn


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One living process of a group: its pid, its name, its parent's pid."""

    pid: int
    name: str
    parent: int


def _host(town: Town, judges: Mapping[str, JudgeFunction] | None) -> contextlib.ExitStack:
    """What serves the judges until it is closed."""
    stack = contextlib.ExitStack()
    if judges:
        from witness.api.judge_host import JudgeHost

        stack.callback(JudgeHost(town, judges).close)
    return stack


class Witness:
    """Supervises one town. A context manager; it holds the journal open.

    Args:
        town: the town, from ``Town.find()`` or ``Town.at(path)``.
        clock: time.
        patience: seconds to wait for another holder of the journal; see ``Journal``.
        environ: where the caller's own polecat is read from; that of the process and its ancestors when None.
        judges: Python functions by name, that sidecars of types with ``judge: python`` ask while this is open; see
            ``JudgeFunction``.

    Raises:
        UsageError: a judge's name cannot be used, or another process gives it.
        TypeError: a judge is no function.
        JournalError: the journal cannot be opened.

    Examples:
        >>> from witness.testing import scratch_town
        >>> with scratch_town() as witness:
        ...     repo = witness.town.root / "repo"
        ...     spawned = witness.spawn("toast", workdir=repo, agent=["sleep", "60"], sidecars=["conventions"])
        ...     nudged = witness.nudge("toast", "The specification has moved.")
        ...     ((group, members),) = witness.polecats()  # its two reapers, the agent, the sidecar
        ...     (ended,) = witness.nuke(["toast"])
        >>> spawned.group.address, nudged.delivered, len(members), len(ended.result.survivors)
        ('main/toast', False, 4, 0)
    """

    def __init__(
        self,
        town: Town,
        *,
        clock: Clock | None = None,
        environ: Mapping[str, str] | None = None,
        patience: float | None = None,
        judges: Mapping[str, JudgeFunction] | None = None,
    ) -> None:
        self.town = town
        self._turn = threading.RLock()
        self._clock = clock or SystemClock()
        self._environ = environ
        town.need_runtime()
        self._judges = _host(town, judges)
        try:
            self.journal = Journal(town.journal_path, patience)
        except BaseException:
            self._judges.close()
            raise

    @functools.cached_property
    def _outer(self) -> Tmux | None:
        """The tmux that holds the polecat that the caller runs in; None outside of polecats."""
        from witness.launch.environment import tmux_around

        return tmux_around(self._environ)

    @functools.cached_property
    def _reconciler(self) -> Reconciler:
        from witness.supervise.reconcile import Reconciler

        return Reconciler(self.town, self.journal, self._clock, self._outer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @_in_turn
    def close(self) -> None:
        """Let go of the journal and the fork server; what runs goes on."""
        self._judges.close()
        self._let_go()
        self.journal.close()

    def _let_go(self) -> None:
        if (reconciler := vars(self).pop("_reconciler", None)) is not None:
            reconciler.close()

    # -- spawn --------------------------------------------------------------------------------------------------------

    def prepare(self, request: SpawnRequest) -> SpawnPlan:
        """Check a request without starting anything; see ``witness.launch.spawn_request.prepare``.

        Args:
            request: what is to be spawned.

        Raises:
            DeclarationError: something declared is wrong.
            UsageError: it cannot be spawned as it is.
        """
        from witness.launch.spawn_request import prepare

        return prepare(self.town, request)

    def spawn(
        self,
        polecat: str,
        *,
        workdir: Path | str | None = None,
        sidecars: str | Sequence[str] | None = None,
        task: str = "",
        issue: str = "",
        molecule: str = "",
        variables: Mapping[str, str] | None = None,
        agent: str | Sequence[str] = "",
        rig: str = "",
        memory: str = "",
        memory_provider: MemoryProvider | None = None,
        memory_high: int | str | None = None,
        memory_max: int | str | None = None,
        pids_max: int | str | None = None,
        cpu_weight: int | str | None = None,
        witness: bool = True,
        accept_folder: bool = False,
        worktree: bool | None = None,
        branch: str = "",
        base: str = "",
    ) -> SpawnResult:
        """Spawn a polecat with its sidecars.

        Args:
            polecat: its name.
            workdir: where it works; the current directory when None.
            sidecars: a spec string (``"scope:issue.md,tools"``) or a list of single specs (``["scope:issue.md"]``, in
                which a comma means itself); beats the molecule's; None for the molecule's or the rig's.
            task: the text of the work.
            issue: the work as an issue: a file, or an id that ``bd`` knows.
            molecule: file or name, empty for none.
            variables: the molecule's variables.
            agent: the agent's command, as one line or as a list of words; empty for the molecule's or the default.
            rig: empty for the rig of the working directory.
            memory: name of the agent whose memory it is given.
            memory_provider: how memories are opened.
            memory_high, memory_max, pids_max, cpu_weight: what its agent may use of the machine with all that it
                starts, as ``--memory-max``; ``"max"`` for no limit, None for the molecule's or the settings'.
            witness: start the town's Witness when none runs.
            accept_folder: answer the client's question about its folder beforehand, in the client's own way.
            worktree: give it a worktree and a branch of its own; None for the molecule's or the settings' word.
            branch: the branch's name; empty for one after the polecat and the run.
            base: what the branch begins at; empty for the commit that is checked out.

        Raises:
            DeclarationError: something declared is wrong; nothing was started.
            UsageError: that name runs already, or the town is full; nothing was started.
            SpawnError: it failed half-way; what had started was ended.
        """
        import shlex

        from witness.launch.spawn_request import SpawnRequest

        if sidecars is not None and not isinstance(sidecars, str):
            sidecars = ",".join(each.replace(",", "\\,") for each in sidecars)
        from witness.process.limits import parse_limit

        given = {"memory_high": memory_high, "memory_max": memory_max, "pids_max": pids_max, "cpu_weight": cpu_weight}
        try:
            limits = {name: parse_limit(name, value) for name, value in given.items() if value is not None}
        except ValueError as error:
            raise UsageError(str(error)) from error
        return self.spawn_request(
            SpawnRequest(
                polecat,
                rig=rig,
                workdir=Path(workdir) if workdir is not None else None,
                molecule=molecule,
                sidecars=sidecars,
                variables=dict(variables or {}),
                task=task,
                agent=agent if isinstance(agent, str) else shlex.join(agent),
                witness=witness,
                issue=issue,
                limits=limits,
                memory=memory,
                memory_provider=memory_provider,
                accept_folder=accept_folder,
                worktree=worktree,
                branch=branch,
                base=base,
            )
        )

    @_in_turn
    def spawn_request(self, request: SpawnRequest) -> SpawnResult:
        """``spawn`` for a request that is put together already.

        Args:
            request: what is to be spawned.

        Raises:
            DeclarationError, UsageError, SpawnError: as ``spawn``.
        """
        from witness.launch.spawn_request import prepare

        self.town.make_runtime()
        return self.spawn_prepared(prepare(self.town, request), witness=request.witness)

    @_in_turn
    def spawn_prepared(self, prepared: SpawnPlan, *, witness: bool = True) -> SpawnResult:
        """``spawn`` for what ``prepare`` has found good.

        Args:
            prepared: what is to be started.
            witness: start the town's Witness when none runs.

        Raises:
            UsageError, SpawnError: as ``spawn``.
        """
        from witness.supervise.spawn import Spawner

        if not self.journal.groups.living():
            self.town.remember_tmux()
            self._let_go()  # the next one looks where the town's tmux is now
        if prepared.folder:
            prepared.folder.record()
        return Spawner(self._reconciler, self._outer).spawn(prepared, witness=witness)

    # -- look ---------------------------------------------------------------------------------------------------------

    @_in_turn
    def find(self, name: str, *, ended: bool = False) -> Group:
        """The polecat of that name, address or session.

        Args:
            name: as for TARGET on the command line.
            ended: also its last run, when none lives.

        Raises:
            NotFoundError: there is none.
            UsageError: several rigs have one.
        """
        return self.journal.groups.find(name, ended=ended)

    @_in_turn
    def polecats(self, rig: str = "") -> list[tuple[Group, list[Member]]]:
        """The living groups with their members.

        Args:
            rig: only those of this rig; all when empty.
        """
        members = self.journal.members.of_living()
        return [(group, members.get(group.id.run, [])) for group in self.journal.groups.living(rig)]

    @_in_turn
    def processes(self, name: str) -> list[ProcessInfo]:
        """Every living process of a polecat: recorded, marked, descended from these, or seen as such before.

        Args:
            name: as for ``find``.

        Raises:
            NotFoundError, UsageError: as for ``find``.
        """
        from witness.process.table import process_name, read_table

        group = self.find(name)
        (found,) = self._would_end([group])
        table = read_table()
        return [
            ProcessInfo(pid, process_name(table[pid].process), table[pid].parent)
            for pid in found.processes
            if pid in table
        ]

    @_in_turn
    def log(self, name: str, *, last: int = 1000) -> list[Decision]:
        """The decisions of a polecat's sidecars, oldest first; of its last run when it has ended.

        Args:
            name: as for ``find``.
            last: at most so many, the latest ones.

        Raises:
            NotFoundError, UsageError: as for ``find``.
        """
        return self.journal.decisions.of(self.find(name, ended=True).id.run, last=last)

    @_in_turn
    def peek(self, name: str, *, lines: int = 100) -> str:
        """The last lines of its screen.

        Args:
            name: as for ``find``.
            lines: how many lines at most.

        Raises:
            NotFoundError, UsageError: as for ``find``.
            TmuxError: tmux does not answer.
        """
        from witness.api.messages import screen

        return screen(self.town, self.journal, name, lines)

    def nudge(
        self, name: str, message: str, *, mode: str = "queue", priority: str = "normal", sender: str = "human"
    ) -> NudgeResult:
        """Tell its agent something; see ``witness.api.messages.send_nudge``.

        Args:
            name: as for ``find``.
            message: what.
            mode: ``queue`` (at its next step), ``wait-idle`` (as soon as it is idle, within 15 s, else at its next
                step) or ``immediate`` (typed in now).
            priority: ``normal`` or ``urgent``.
            sender: who says it.

        Raises:
            UsageError: the message is empty, or a word is none of these.
            NotFoundError: there is no such polecat.
            RunEndedError: it has ended.
            QueueFullError: too many messages wait already.
            WitnessError: nothing could be typed.
        """
        from witness.api.messages import send_nudge

        with Journal(self.town.journal_path) as journal:
            return send_nudge(self.town, journal, name, message, sender=sender, mode=mode, priority=priority)

    def events(self, *, seconds: float | None = None) -> Iterator[WitnessEvent]:
        """Follow the town: a ``Snapshot``, then every change; ends after ``seconds`` of silence, never when None.

        Args:
            seconds: end after so many seconds without a change; never when None.
        """
        from witness.api.events import stream

        return stream(self.town, seconds=seconds)

    def wait(
        self, name: str, until: Collection[GroupState] = (GroupState.NUKED,), *, seconds: float | None = None
    ) -> Group:
        """Wait until a polecat has one of these states.

        Args:
            name: as for ``find``.
            until: the states; its end when not given.
            seconds: how long at most; for ever when None.

        Raises:
            TimeoutError: it did not come to that.
        """
        from witness.api.events import wait

        return wait(self.town, self.find(name, ended=True).id.run, until, seconds)

    @_in_turn
    def patrol(self) -> PatrolReport:
        """One full pass: look at everything, replace what died, end what must go.

        A running Witness is asked to do it; without one this process does it itself.

        Raises:
            TownLockedError: another one-shot patrol is at work.
        """
        from witness.launch import town_witness
        from witness.supervise.reconcile import PatrolReport

        try:
            with town_witness.town_lock(self.town):
                return self._reconciler.patrol()
        except TownLockedError:
            answer = town_witness.ask(self.town, {"op": "patrol"}, _PATROL_SECONDS)
            if answer is None:
                raise
            return PatrolReport(**answer)

    # -- end ----------------------------------------------------------------------------------------------------------

    def nuke(self, names: Sequence[str], *, dry_run: bool = False, discard: bool = False) -> list[NukeResult]:
        """End polecats with all that belongs to them, and prove it. A worktree that holds work stays.

        Args:
            names: as for ``find``.
            dry_run: only say which processes it would end.
            discard: remove their worktrees with all that they hold.

        Raises:
            NotFoundError: one of them is not known; then none is ended.
            TypeError: a bare string, which would be taken letter by letter.
        """
        if isinstance(names, str):
            raise TypeError(f"nuke takes a list of names: nuke([{names!r}])")
        groups = [self.find(name) for name in dict.fromkeys(names)]
        return self.end(groups, dry_run=dry_run, discard=discard)

    @_in_turn
    def end(
        self, groups: Sequence[Group], *, dry_run: bool = False, reason: str = "nuke", discard: bool = False
    ) -> list[NukeResult]:
        """``nuke`` for groups that were looked up already.

        Args:
            groups: which.
            dry_run: only say which processes it would end.
            reason: why, for the history.
            discard: remove their worktrees with all that they hold.
        """
        from witness.launch import town_witness
        from witness.nuke import TerminationResult, is_inside, target
        from witness.process.table import read_table
        from witness.supervise.executor import PatrolResult

        if dry_run:
            return self._would_end(groups)
        for group in groups if discard else ():
            self.journal.worktrees.set_discard(group.id.run)
        table = read_table()
        targets = {group.id.run: target(group, self.journal.members.of(group.id.run), ()) for group in groups}
        inside = {run for run, goal in targets.items() if is_inside([goal], table)}
        # A caller inside of a group would end itself half-way; the Witness stands outside of the tree.
        if inside:
            town_witness.start_witness(self.town, self._outer)
        for run in inside:
            self.journal.groups.set_intent(run, Intent.NUKE, self._clock.monotonic(), reason)
            self.poke(run)
        outcome = PatrolResult()
        runs = [group.id.run for group in groups if group.id.run not in inside]
        # A group that the Witness has ended since it was looked up has nothing left to end.
        results = {run: TerminationResult(run, 0, (), 0.0) for run in runs}
        results |= {each.run: each for each in self._reconciler.end([(run, reason) for run in runs], outcome)}
        # One that the Witness is just ending has its worktree judged by it, or by us, whoever is first.
        outcome.worktrees |= self._reconciler.worktrees.settle(runs, patience=60.0)
        return [
            NukeResult(group, results.get(group.id.run), worktree=self._worktree_end(group.id.run, outcome.worktrees))
            for group in groups
        ]

    def _worktree_end(self, run: str, ends: Mapping[str, WorktreeEnd]) -> WorktreeEnd | None:
        from witness.worktrees.keeper import WorktreeEnd

        found = self.journal.worktrees.get(run)
        if run in ends or found is None or found.state not in (WorktreeState.KEPT, WorktreeState.REMOVED):
            return ends.get(run)
        return WorktreeEnd(found, found.state is WorktreeState.KEPT, found.reason)

    # -- worktrees ----------------------------------------------------------------------------------------------------

    @property
    def worktrees(self) -> WorktreeKeeper:
        """What keeps and removes worktrees: ``prune`` looks again at those that are kept."""
        return self._reconciler.worktrees

    @_in_turn
    def diff(self, name: str, *, stat: bool = False, colour: bool = False) -> str:
        """What a polecat has changed since its worktree was made: commits, uncommitted and new files.

        Args:
            name: as for ``find``; its last run when it has ended.
            stat: only the names of the files and how much of each.
            colour: with the colours of a terminal.

        Raises:
            NotFoundError, UsageError: as for ``find``; it has no worktree, or none any more.
            GitError: git cannot say.
        """
        from witness.worktrees.place import read_laid
        from witness.worktrees.shown import diff

        found = self.worktree(name)
        return diff(found, read_laid(self.town, found.run), stat=stat, colour=colour)

    @_in_turn
    def worktree(self, name: str) -> Worktree:
        """The worktree of a polecat, or of its last run that has one which stands.

        Args:
            name: as for ``find``.

        Raises:
            NotFoundError, UsageError: as for ``find``; it has no worktree, or none any more.
        """
        group = self.find(name, ended=True)
        found = self.journal.worktrees.get(group.id.run)
        if found is None or found.state is WorktreeState.REMOVED:
            others = [
                w for w in self.journal.worktrees.standing() if (w.rig, w.polecat) == (group.id.rig, group.id.polecat)
            ]
            if others:
                return others[-1]
            if found:
                raise UsageError(f"the worktree of {group.id.address} is gone: {found.reason}")
            raise UsageError(f"{group.id.address} has no worktree: it works in {group.workdir}; see git there")
        return found

    def _would_end(self, groups: Sequence[Group]) -> list[NukeResult]:
        from witness.nuke import target
        from witness.process.table import GroupMembership, Markers, read_table

        table = read_table()
        kinship = GroupMembership(table, Markers().marks(table))
        foreign = self._reconciler.actor.foreign([group.id.run for group in groups])(table)
        found = []
        for group in groups:
            run = group.id.run
            goal = target(group, self.journal.members.of(run), self.journal.groups.seen(run))
            pids = sorted(process.pid for process in kinship.group(goal.marker, goal.recorded, foreign, goal.pane))
            found.append(NukeResult(group, None, tuple(pids)))
        return found

    @_in_turn
    def done(self, group: GroupId, status: str = "COMPLETED") -> None:
        """Record that a polecat's work is finished; the Witness ends the group.

        Args:
            group: the very run that is done; a later polecat of the same name is another.
            status: COMPLETED, ESCALATED or DEFERRED.

        Raises:
            RunEndedError: that run is over.
        """
        from witness.launch import town_witness

        known = self.journal.groups.get(group.run)
        if known is None or known.state is GroupState.NUKED:
            self.journal.note(self._clock.wall(), "late-done", group.run, polecat=group.address, status=status)
            raise RunEndedError(f"the run {group.run} of {group.address} is over: its done was dropped")
        # The caller mostly runs inside of the polecat, and is given a moment to end by itself. A Witness that
        # has yet to start would use that moment up.
        # What keeps it from starting may pass (a journal that is locked): the poke below tries again.
        with contextlib.suppress(WitnessError):
            town_witness.start_witness(self.town, self._outer)
        self.journal.groups.set_intent(group.run, Intent.DONE, self._clock.monotonic(), status)
        self.journal.note(self._clock.wall(), "done", group.run, status=status)
        self.poke(group.run)

    @_in_turn
    def poke(self, run: str) -> None:
        """Have the Witness look at a group now; one is started when none runs.

        Args:
            run: id of the group's run.

        Raises:
            WitnessError: none can be started.
        """
        from witness.launch import town_witness

        if town_witness.ask(self.town, {"op": "look", "run": run}, 5.0) is None:
            town_witness.start_witness(self.town, self._outer)

    # -- sidecars -----------------------------------------------------------------------------------------------------

    @_in_turn
    def reset(self, name: str, sidecar: str = "") -> list[str]:
        """Try FAILED sidecars again, with their crashes forgotten.

        Args:
            name: the polecat.
            sidecar: one of them, empty for all.

        Returns:
            Names of the sidecars that are tried again.
        """
        from witness.supervise.lifecycle import MemberEvent, next_member

        group = self.find(name)
        members = [each for each in self.journal.members.of(group.id.run) if each.kind is MemberKind.SIDECAR]
        if sidecar and sidecar not in {member.name for member in members}:
            names = [member.name for member in members]
            raise NotFoundError("sidecar", sidecar, f"{group.id.address} has {', '.join(names) or 'none'}", names)
        reset = []
        for member in members:
            if member.state in (MemberState.FAILED, MemberState.BACKOFF) and sidecar in ("", member.name):
                next_member(member.kind, MemberState.FAILED, MemberEvent.RESET)
                soon = _due_at(member, self._clock.monotonic())
                if self.journal.members.update(soon, member.state):
                    reset.append(member.name)
        self.poke(group.id.run)
        return reset

    # -- the daemon ---------------------------------------------------------------------------------------------------

    @_in_turn
    def start(self) -> None:
        """Start the town's Witness in the background, unless one runs."""
        from witness.launch import town_witness

        if self.town.gastown and not self.journal.groups.living():
            self.town.make_runtime()
            self.town.remember_tmux()  # its polecats are where Gas Town's tmux is now
        town_witness.start_witness(self.town, self._outer, linger=False)

    @_in_turn
    def stop(self) -> bool:
        """Stop it; polecats and sidecars live on. False when none ran."""
        from witness.launch import town_witness
        from witness.process.exits import wait_gone

        stopped = town_witness.stop_witness(self.town)
        # The fork server stays for its children, and goes when it has none.
        if process := self._reconciler.pool.shutdown():
            wait_gone({process}, 5.0)
        return stopped

    @_in_turn
    def status(self) -> dict[str, Any]:
        """What the running Witness says of itself; ``{"running": False}`` without one."""
        from witness.launch import town_witness

        try:
            answer = town_witness.ask(self.town, {"op": "status"}, 5.0)
        except WitnessError as error:
            return {"running": True, "error": str(error)}
        return {"running": False} if answer is None else {"running": True, **answer}


def _due_at(member: Member, now: float) -> Member:
    from dataclasses import replace

    return replace(member, crashes=(), retry_at=now, note="reset by hand")
