"""The Witness as a library: all that the command line does."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from witness.clock import Clock, SystemClock
from witness.config.town import Town
from witness.errors import NotFoundError, RunEndedError, TownLockedError, UsageError, WitnessError
from witness.ipc import client
from witness.journal import Group, GroupState, Intent, Journal, Member, MemberKind, MemberState
from witness.launch.outer_tmux import tmux_around
from witness.launch.spawn_request import SpawnPlan, SpawnRequest, prepare
from witness.names import GroupId, split_address
from witness.nuke.target import is_inside, target
from witness.nuke.terminate import TerminationResult
from witness.process.exit_watch import wait_gone
from witness.process.table import GroupMembership, Markers, read_table
from witness.supervise.executor import PatrolResult
from witness.supervise.reconcile import Reconciler, Report
from witness.supervise.spawning import Spawned, Spawner
from witness.supervise.states import MemberEvent, next_member

_PATROL_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Nuked:
    """How the end of one polecat came out.

    Args:
        group: whom it was.
        result: what ended and what survived; None when it was handed to the Witness, because the caller runs inside.
        processes: for a dry run, whom it would have ended.
    """

    group: Group
    result: TerminationResult | None = None
    processes: tuple[int, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The form that ``gt polecat nuke --json`` promises."""
        survivors = self.result.survivors if self.result else ()
        return {
            "polecat": self.group.id.address,
            "ended": self.result.ended if self.result else 0,
            "survivors": [{"pid": each.process.pid, "name": each.name} for each in survivors],
            "seconds": round(self.result.seconds, 4) if self.result else 0.0,
        }


class Witness:
    """Supervises one town. A context manager; it holds the journal open.

    Args:
        town: the town, from ``Town.find()`` or ``Town.at(path)``.
        clock: time.
        patience: seconds to wait for whoever holds the journal; see ``Journal``.
        environ: where the caller's own polecat is read from; that of the process and its ancestors when None.
    """

    def __init__(
        self,
        town: Town,
        *,
        clock: Clock | None = None,
        environ: Mapping[str, str] | None = None,
        patience: float | None = None,
    ) -> None:
        self.town = town
        self._clock = clock or SystemClock()
        self._outer = tmux_around(environ)
        town.make_runtime()
        self.journal = Journal(town.journal_path, patience)
        self._reconciler = Reconciler(town, self.journal, self._clock, self._outer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the journal and the nursery; what runs goes on."""
        self._reconciler.close()
        self.journal.close()

    # -- spawn --------------------------------------------------------------------------------------------------------

    def prepare(self, order: SpawnRequest) -> SpawnPlan:
        """Check an order without starting anything; see ``witness.launch.spawn_request.prepare``."""
        return prepare(self.town, order)

    def spawn(self, polecat: str, *, workdir: Path | str | None = None, **more: Any) -> Spawned:
        """Spawn a polecat with its sidecars.

        Args:
            polecat: its name.
            workdir: where it works; the current directory when None.
            more: the other fields of ``witness.launch.spawn_request.Order``.

        Raises:
            DeclarationError: something declared is wrong; nothing was started.
            UsageError: that name runs already, or the town is full; nothing was started.
            SpawnError: it failed half-way; what had started was ended.
        """
        return self.spawn_request(SpawnRequest(polecat, workdir=Path(workdir) if workdir is not None else None, **more))

    def spawn_request(self, order: SpawnRequest) -> Spawned:
        """``spawn`` for an order that is put together already."""
        prepared = prepare(self.town, order)
        if not self.journal.groups.living():
            self.town.remember_tmux()
            self._reconciler.close()
            self._reconciler = Reconciler(self.town, self.journal, self._clock, self._outer)
        return Spawner(self._reconciler, self._outer).spawn(prepared, witness=order.witness)

    # -- look ---------------------------------------------------------------------------------------------------------

    def find(self, name: str, *, ended: bool = False) -> Group:
        """The polecat of that name, address or session.

        Args:
            name: as for TARGET on the command line.
            ended: also its last run, when none lives.

        Raises:
            NotFoundError: there is none.
            UsageError: several rigs have one.
        """
        rig, polecat = split_address(name)
        found = self.journal.groups.named(polecat, rig)
        if len(found) > 1:
            raise UsageError(f"{name!r} is in several rigs: write {' or '.join(each.id.address for each in found)}")
        if found:
            return found[0]
        if ended and (last := self.journal.groups.last(polecat, rig)):
            return last
        raise NotFoundError("polecat", name, "'gt polecat list' shows those that run")

    def polecats(self, rig: str = "") -> list[tuple[Group, list[Member]]]:
        """The living groups with their members."""
        members = self.journal.members.of_living()
        return [(group, members.get(group.id.run, [])) for group in self.journal.groups.living(rig)]

    def patrol(self) -> Report:
        """One full pass: look at everything, replace what died, end what must go.

        A running Witness is asked to do it; without one this process does it itself.

        Raises:
            TownLockedError: another one-shot patrol is at work.
        """
        try:
            with client.town_lock(self.town):
                return self._reconciler.patrol()
        except TownLockedError:
            answer = client.ask(self.town, {"op": "patrol"}, _PATROL_SECONDS)
            if answer is None:
                raise
            return Report(**answer)

    # -- end ----------------------------------------------------------------------------------------------------------

    def nuke(self, names: Sequence[str], *, dry_run: bool = False) -> list[Nuked]:
        """End polecats with all that belongs to them, and prove it.

        Args:
            names: as for ``find``.
            dry_run: only say whom it would end.

        Raises:
            NotFoundError: one of them is not known; then none is ended.
        """
        groups = [self.find(name) for name in dict.fromkeys(names)]
        return self.end(groups, dry_run=dry_run)

    def end(self, groups: Sequence[Group], *, dry_run: bool = False, reason: str = "nuke") -> list[Nuked]:
        """``nuke`` for groups that were looked up already."""
        if dry_run:
            return self._would_end(groups)
        table = read_table()
        targets = {group.id.run: target(group, self.journal.members.of(group.id.run), ()) for group in groups}
        inside = {run for run, goal in targets.items() if is_inside([goal], table)}
        # Whoever is inside would end itself half-way; the Witness stands outside of the tree.
        if inside:
            client.start_witness(self.town, self._outer)
        for run in inside:
            self.journal.groups.set_intent(run, Intent.NUKE, self._clock.monotonic(), reason)
            self.poke(run)
        outcome = PatrolResult()
        runs = [group.id.run for group in groups if group.id.run not in inside]
        # A group that the Witness has ended since it was looked up has nothing left to end.
        results = {run: TerminationResult(run, 0, (), 0.0) for run in runs}
        results |= {each.run: each for each in self._reconciler.end([(run, reason) for run in runs], outcome)}
        return [Nuked(group, results.get(group.id.run)) for group in groups]

    def _would_end(self, groups: Sequence[Group]) -> list[Nuked]:
        table = read_table()
        kinship = GroupMembership(table, Markers().read(table))
        foreign = self._reconciler.actor.foreign([group.id.run for group in groups])(table)
        found = []
        for group in groups:
            run = group.id.run
            goal = target(group, self.journal.members.of(run), self.journal.groups.seen(run))
            pids = sorted(process.pid for process in kinship.group(goal.marker, goal.recorded, foreign))
            found.append(Nuked(group, None, tuple(pids)))
        return found

    def done(self, group: GroupId, status: str = "COMPLETED") -> None:
        """Record that a polecat's work is finished; the Witness ends the group.

        Args:
            group: the very run that is done; a later polecat of the same name is another.
            status: COMPLETED, ESCALATED or DEFERRED.

        Raises:
            RunEndedError: that run is over.
        """
        known = self.journal.groups.get(group.run)
        if known is None or known.state is GroupState.NUKED:
            self.journal.note(self._clock.wall(), "late-done", group.run, polecat=group.address, status=status)
            raise RunEndedError(f"the run {group.run} of {group.address} is over: its done was dropped")
        # Whoever calls this mostly runs inside of the polecat, and is given a moment to end by itself. A Witness that
        # has yet to start would use that moment up.
        # What keeps it from starting may pass (a journal that is locked): the poke below tries again.
        with contextlib.suppress(WitnessError):
            client.start_witness(self.town, self._outer)
        self.journal.groups.set_intent(group.run, Intent.DONE, self._clock.monotonic(), status)
        self.journal.note(self._clock.wall(), "done", group.run, status=status)
        self.poke(group.run)

    def poke(self, run: str) -> None:
        """Have the Witness look at a group now; one is started when none runs."""
        if client.ask(self.town, {"op": "glance", "run": run}, 5.0) is None:
            client.start_witness(self.town, self._outer)

    # -- sidecars -----------------------------------------------------------------------------------------------------

    def reset(self, name: str, sidecar: str = "") -> list[str]:
        """Try FAILED sidecars again, with their crashes forgotten.

        Args:
            name: the polecat.
            sidecar: one of them, empty for all.

        Returns:
            Names of the sidecars that are tried again.
        """
        group = self.find(name)
        members = [each for each in self.journal.members.of(group.id.run) if each.kind is MemberKind.SIDECAR]
        if sidecar and sidecar not in {member.name for member in members}:
            raise NotFoundError("sidecar", sidecar, f"{group.id.address} has {', '.join(m.name for m in members)}")
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

    def start(self) -> None:
        """Start the town's Witness in the background, unless one runs."""
        client.start_witness(self.town, self._outer, linger=False)

    def stop(self) -> bool:
        """Stop it; polecats and sidecars live on. False when none ran."""
        stopped = client.stop_witness(self.town)
        # The nursery stays for its children, and goes when it has none.
        if process := self._reconciler.nursery.shutdown():
            wait_gone({process}, 5.0)
        return stopped

    def status(self) -> dict[str, Any]:
        """What the running Witness says of itself; ``{"running": False}`` without one."""
        try:
            answer = client.ask(self.town, {"op": "status"}, 5.0)
        except WitnessError as error:
            return {"running": True, "error": str(error)}
        return {"running": False} if answer is None else {"running": True, **answer}


def _due_at(member: Member, now: float) -> Member:
    from dataclasses import replace

    return replace(member, crashes=(), retry_at=now, note="reset by hand")
