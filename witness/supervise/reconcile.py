"""One round of the patrol: look, decide, do. The daemon and the one-shot patrol share it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from witness.clock import Clock
from witness.config.keys import exported_key
from witness.config.town import Town
from witness.errors import WitnessError
from witness.gastown.follower import Follower
from witness.journal import Journal
from witness.launch.sidecar_pool import SidecarPool
from witness.nuke import TerminationResult
from witness.supervise.actions import Action, MoveMember, StartSidecar
from witness.supervise.channel_watch import ChannelWatch
from witness.supervise.delivery_round import Deliveries
from witness.supervise.executor import Executor, PatrolResult
from witness.supervise.lifecycle import MemberEvent
from witness.supervise.plan import plan
from witness.supervise.retention import is_due, sweep
from witness.supervise.snapshot import Snapshot, SnapshotReader
from witness.tmux import Tmux
from witness.trust.settings import trusted_settings
from witness.worktrees.keeper import WorktreeKeeper


@dataclass(frozen=True, slots=True)
class PatrolReport:
    """What a full round found and did.

    Args:
        checked: how many living groups there were.
        respawned: ``polecat`` and ``sidecar`` of each that was started anew.
        zombies: what was found of each polecat that is none any more, its address under ``polecat``.
        nuked: addresses of the groups that ended.
        errors: one line each.
    """

    checked: int
    respawned: list[dict[str, str]]
    zombies: list[dict[str, str]]
    nuked: list[str]
    errors: list[str]

    def as_json(self) -> dict[str, Any]:
        """The form that ``gt witness patrol --json`` promises."""
        return asdict(self)


# Another process that is at the same worktree looks at it, or deletes it.
_WORKTREE_SECONDS = 60.0


def worktree_keeper(town: Town, journal: Journal, clock: Clock) -> WorktreeKeeper:
    """What keeps and removes the worktrees of a town, by its settings."""

    def throwaway(rig: str) -> tuple[str, ...]:
        try:
            return trusted_settings(town.root, rig).worktree_throwaway
        except WitnessError:
            return ()  # settings with a fault let nothing be thrown away

    return WorktreeKeeper(town, journal, clock, throwaway)


class Reconciler:
    """Everything that a round needs, put together for one town.

    Args:
        town: the town.
        journal: its journal; the caller closes it.
        clock: time.
        outer: the tmux that holds the polecat that this process runs in, if any.
        waits: whether it may wait for a fork server or a tmux that hangs; a daemon must not.
    """

    def __init__(
        self, town: Town, journal: Journal, clock: Clock, outer: Tmux | None = None, *, waits: bool = True
    ) -> None:
        self.town, self.journal, self.clock = town, journal, clock
        self.tmux = Tmux(*town.tmux_place, waits=waits)
        self.observer = SnapshotReader(town, journal, self.tmux, clock)
        settings = self.observer.settings("")
        self.pool = SidecarPool(town.runtime, settings.key_env, outer, exported_key(settings), waits)
        self.deliveries = Deliveries(town, journal, self.tmux, clock)
        self.channels = ChannelWatch(town, journal, self.tmux, clock)
        self.actor = Executor(town, journal, self.tmux, self.pool, clock)
        self.follower = Follower(town, journal, self.tmux, clock)
        self.worktrees = worktree_keeper(town, journal, clock)

    def close(self) -> None:
        self.follower.close()
        self.pool.close()
        self.pool.give_up()

    def quick_snapshot(
        self, runs: Collection[str], nukes: Collection[str], outcome: PatrolResult, *, late: bool = False
    ) -> list[tuple[str, str]]:
        """A quick round over some groups; returns the groups that are to be ended, with the reason."""
        return self._decide(self.observer.quick_snapshot(runs, nukes, late=late), nukes, outcome)

    def look(
        self, nukes: Collection[str], outcome: PatrolResult, *, late: bool = False, wait: bool = False
    ) -> tuple[int, list[tuple[str, str]]]:
        """A full round.

        Args:
            nukes: runs that this process is ending already.
            outcome: where it is told what was done.
            late: see ``Snapshot``.
            wait: await Gas Town's issue tracker when a polecat of its is new.

        Returns:
            (groups checked, groups that are to be ended with the reason).
        """
        over = [(run, reason) for run, reason in self.follower.look(outcome.errors, wait=wait) if run not in nukes]
        runs = {run for run, _ in over}
        snapshot = self.observer.look(nukes, late=late)
        groups = [fact.group for fact in snapshot.groups]
        outcome.errors.extend(self.deliveries.settle(groups))
        self.channels.look(groups)
        self.actor.tell_limits(groups)
        self.actor.sweep_cgroups()
        ends = self._decide(snapshot, {*nukes, *runs}, outcome, wait=wait)
        return len(snapshot.groups), over + [(run, reason) for run, reason in ends if run not in runs]

    def _decide(
        self, snapshot: Snapshot, nukes: Collection[str], outcome: PatrolResult, *, wait: bool = False
    ) -> list[tuple[str, str]]:
        actions, over = self._of_assigned(plan(snapshot), wait=wait)
        ends = over + self.actor.perform(actions, dict(snapshot.settings), outcome)
        # A member that moved may change what its group is: look at those groups again, until nobody moves.
        moved = {action.before.run for action in actions if isinstance(action, MoveMember)} - {run for run, _ in over}
        return ends + (self.quick_snapshot(moved, nukes, outcome, late=snapshot.late) if moved else [])

    def _of_assigned(self, actions: list[Action], *, wait: bool) -> tuple[list[Action], list[tuple[str, str]]]:
        """Let no sidecar of a followed polecat come back whose work is over, told of or not.

        Returns:
            (what may be done now; a start whose answer is awaited is left out, and planned again),
            (the runs whose bead is no longer on the hook, with that as the reason).
        """
        restarts = {
            action.member.run
            for action in actions
            if isinstance(action, StartSidecar) and action.event in (MemberEvent.RETRY_DUE, MemberEvent.RESET)
        }
        groups = {run: group for run in restarts if (group := self.journal.groups.get(run))}
        answers = {run: self.follower.still_assigned(group, wait=wait) for run, group in groups.items()}
        held = {run for run, answer in answers.items() if not answer}
        over = [(run, "its bead is no longer on the hook") for run, answer in answers.items() if answer is False]
        kept = [action for action in actions if not (isinstance(action, StartSidecar) and action.member.run in held)]
        return kept, over

    def end(
        self, nukes: list[tuple[str, str]], outcome: PatrolResult, *, grace: float | None = None
    ) -> list[TerminationResult]:
        """End groups and wait for it; ``grace`` None means each rig's own, the longest of them."""
        targets = [goal for run, reason in nukes if (goal := self.actor.begin_nuke(run, reason))]
        if not targets:
            return []
        self.actor.keep_screens([goal.run for goal in targets])
        results = self.actor.end(targets, self.grace(targets_runs(nukes)) if grace is None else grace)
        standing = self._sessions() if len(results) > 1 else None
        for result in results:
            self.actor.finish_nuke(result, outcome, standing)
        outcome.worktrees |= self.worktrees.settle([goal.run for goal in targets], patience=_WORKTREE_SECONDS)
        return results

    def _sessions(self) -> set[str] | None:
        try:
            return {pane.session for pane in self.tmux.panes()}
        except WitnessError:
            return None

    def grace(self, runs: Collection[str]) -> float:
        """Seconds between TERM and KILL for these groups."""
        rigs = {group.id.rig for run in runs if (group := self.journal.groups.get(run))}
        return max((self.observer.settings(rig).stop_grace for rig in rigs), default=5.0)

    def patrol(self, *, late: bool = False) -> PatrolReport:
        """One full pass, ends included."""
        outcome = PatrolResult()
        checked, nukes = self.look((), outcome, late=late, wait=True)
        outcome.errors.extend(self.observer.troubles)
        self.end(nukes, outcome)
        outcome.worktrees |= self.worktrees.settle()
        if is_due(self.town, self.clock.wall()):
            retention = self.observer.settings("").retention
            outcome.errors.extend(sweep(self.town, self.journal, retention, self.clock.wall()).errors)
        return report(checked, outcome)


def report(checked: int, outcome: PatrolResult) -> PatrolReport:
    """What a round did, as people and programs are told."""
    zombies = [
        {**zombie, "action": "nuked" if zombie["polecat"] in outcome.nuked else zombie["action"]}
        for zombie in outcome.zombies
    ]
    return PatrolReport(checked, outcome.respawned, zombies, outcome.nuked, outcome.errors)


def targets_runs(nukes: list[tuple[str, str]]) -> list[str]:
    """The runs of a list of nukes."""
    return [run for run, _ in nukes]
