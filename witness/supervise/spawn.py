"""A spawn: all or nothing."""

from __future__ import annotations

import json
import os
import select
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from witness.agents.channels import Choice, choose
from witness.agents.client_extensions import VARIABLE as PLUGIN_FOLDERS
from witness.agents.client_extensions import make_mod, other_folders
from witness.agents.clients import Channel, client_for
from witness.agents.hook_settings import readable, session_settings
from witness.config.keys import exported_key
from witness.errors import JournalError, SpawnError, TownLockedError, UsageError, WitnessError
from witness.files import replace_file
from witness.journal import Group, GroupState, Intent, Member, MemberKind, RunState, Worktree, WorktreeState
from witness.launch import town_witness
from witness.launch.environment import polecat_environment
from witness.launch.pane import StartedPolecat, make_run_dir, start_polecat
from witness.launch.spawn_request import SpawnPlan, check_in_worktree
from witness.names import GroupId
from witness.process import ProcessId
from witness.process.cgroup import cgroup_members, make_cgroup
from witness.process.exits import agent_exit, wait_gone
from witness.process.limits import LimitGroup, LimitsUnavailable, make_limit_group
from witness.process.table import identify
from witness.supervise.executor import PatrolResult
from witness.supervise.reconcile import Reconciler
from witness.tmux import Tmux
from witness.worktrees.making import make_worktree
from witness.worktrees.place import held, make_places

# Sidecars start in milliseconds; a machine under full load may need a hundred times that.
_SIDECARS_SECONDS = 60.0
# News of them comes at once; what somebody else was told is found by looking.
_NEWS_SECONDS = 0.05
_RECORD_SECONDS = 1.0
# Grace of a group that never came to work.
_UNDO_SECONDS = 1.0
# To an agent whose conversation is begun again; what it is to do stands in that.
_GO_ON = "You were stopped and started again. Go on with your task where you left off; then run `gt done`."
_NO_CGROUP = (
    "the settings want containment: cgroup, and no cgroup (v2) can be made here: start the Witness inside of a "
    "delegated one, or set containment: auto"
)


@dataclass(frozen=True, slots=True)
class SpawnResult:
    """A polecat that runs.

    Args:
        group: its identity.
        session: its tmux session.
        agent: the agent's process.
        sidecars: the sidecars as recorded.
        channel: how its client is to record events and tell it something; not proven yet.
        withheld: one line for each declaration that does not count: the project's that nobody has trusted, and the
            molecule's keys that nobody reads.
        mute: why a sidecar can never speak as it is declared, by its name.
        found: what a sidecar holds the agent to, by its name.
        accepted: the client's question about its folder that was answered beforehand, and where; empty for none.
        worktree: what it works in, when it has one of its own.
    """

    group: GroupId
    session: str
    agent: ProcessId
    sidecars: tuple[Member, ...]
    channel: Choice
    withheld: tuple[str, ...] = ()
    mute: Mapping[str, str] = field(default_factory=dict)
    found: Mapping[str, str] = field(default_factory=dict)
    accepted: str = ""
    worktree: Worktree | None = None

    def as_json(self) -> dict[str, Any]:
        """The form that ``gt polecat spawn --json`` promises."""
        return {
            "polecat": self.group.polecat,
            "rig": self.group.rig,
            "session": self.session,
            "run": self.group.run,
            "pid": self.agent.pid,
            "channel": str(self.channel.channel),
            **({"worktree": self.worktree.path, "branch": self.worktree.branch} if self.worktree else {}),
            "sidecars": [
                {
                    "name": each.name,
                    "type": each.type,
                    "pid": each.process.pid if each.process else None,
                    **({"mute": self.mute[each.name]} if each.name in self.mute else {}),
                    **({"found": self.found[each.name]} if each.name in self.found else {}),
                }
                for each in self.sidecars
            ],
        }


class Spawner:
    """Starts what was prepared.

    Args:
        rounds: the town's patrol, whose parts start sidecars and undo what fails.
        outer: the tmux that holds the polecat that the caller runs in, if any.
    """

    def __init__(self, reconciler: Reconciler, outer: Tmux | None) -> None:
        self._reconciler, self._outer = reconciler, outer
        self._town, self._journal, self._clock = reconciler.town, reconciler.journal, reconciler.clock

    def spawn(self, prepared: SpawnPlan, *, witness: bool) -> SpawnResult:
        """Start the group; whatever goes wrong, nothing of it stays.

        Raises:
            UsageError: a polecat or a session of that name is there already, or the town is full.
            SpawnError: the agent did not start, or ended at once.
        """
        if self._journal.groups.named(prepared.group.polecat, prepared.group.rig):
            raise UsageError(
                f"polecat {prepared.group.address} is already running: nuke it first, or choose another name"
            )
        if self._reconciler.tmux.has_session(prepared.session):
            raise UsageError(
                f"a tmux session {prepared.session} stands already and is not ours: end it, or choose another name"
            )
        if witness:
            self._hand_over_key(prepared)
        if prepared.worktree:
            make_places(self._town, prepared.group)
        self._record(prepared)
        run = prepared.group.run
        self._reconciler.observer.spawning.add(run)
        try:
            if prepared.worktree:
                self._make_worktree(prepared)
            started, choice = self._start_agent(prepared)
            self._start_sidecars(run, prepared, witness=witness)
            self._settle(prepared, started)
        except BaseException as error:
            survivors, kept = self._undo(prepared)
            if isinstance(error, SpawnError):
                reason = f"{error.reason}; {kept}" if kept else error.reason
                raise SpawnError(prepared.group.address, reason, survivors) from error
            raise
        finally:
            self._reconciler.observer.spawning.discard(run)
        members = self._journal.members.of(run)
        sidecars = tuple(member for member in members if member.kind is MemberKind.SIDECAR)
        return SpawnResult(
            prepared.group,
            prepared.session,
            started.agent,
            sidecars,
            choice,
            (*prepared.withheld, *prepared.warnings),
            prepared.mute,
            prepared.found,
            str(prepared.folder or ""),
            prepared.worktree.worktree if prepared.worktree else None,
        )

    def _make_worktree(self, prepared: SpawnPlan) -> None:
        """Make its worktree; from the record of the intent to READY nobody else judges or removes it."""
        plan, run = prepared.worktree, prepared.group.run
        assert plan  # noqa: S101 - the caller has asked
        run_dir = self._town.run_dir(run)
        try:
            make_run_dir(run_dir)
            with held(self._town, run, _RECORD_SECONDS) as ours:
                if not ours:
                    raise SpawnError(prepared.group.address, "its worktree is held by another process")
                make_worktree(self._town, prepared.group, plan, run_dir / "logs" / "setup.log")
                check_in_worktree(self._town, prepared)
                self._journal.worktrees.move(run, WorktreeState.READY, self._clock.wall())
        except UsageError:
            raise
        except (OSError, WitnessError) as error:
            reason = error.reason if isinstance(error, SpawnError) else str(error)
            raise SpawnError(prepared.group.address, reason) from error
        group = self._journal.groups.get(run)
        if group is None or group.state is not GroupState.SPAWNING or group.intent is Intent.NUKE:
            raise SpawnError(prepared.group.address, "it was nuked while its worktree was made")

    def _take_over(self, before: str, run: str) -> None:
        """What goes on from an earlier run: its worktree, and what its sidecars have said, by which they are capped."""
        now = self._clock.wall()
        if self._journal.worktrees.get(run):
            self._journal.worktrees.move(run, WorktreeState.READY, now)
        self._journal.decisions.hand_over(before, run)
        self._journal.note(now, "restarted", run, before=before)

    def _record(self, prepared: SpawnPlan) -> None:
        living = self._journal.members.of_living()
        limit = prepared.settings.member_limit
        if sum(map(len, living.values())) + len(prepared.specs) + 3 > limit:
            raise UsageError(f"the town holds its limit of {limit} processes: nuke some, or raise member_limit")
        me = identify(os.getpid())
        with self._journal.transaction():
            self._journal.groups.add(
                Group(
                    id=prepared.group,
                    session=prepared.session,
                    state=GroupState.SPAWNING,
                    boot=self._clock.boot,
                    spawned_at=self._clock.monotonic(),
                    created=self._clock.wall(),
                    workdir=str(prepared.workdir),
                    agent=prepared.argv,
                    molecule=prepared.molecule,
                    run_state=RunState(
                        worker=me,
                        task=prepared.task.text,
                        variables=dict(prepared.variables),
                    ),
                )
            )
            if prepared.continues:
                self._take_over(prepared.continues, prepared.group.run)
            if prepared.worktree:
                self._journal.worktrees.add(replace(prepared.worktree.worktree, since=self._clock.wall()))
            run = prepared.group.run
            for name, kind in (
                ("reaper", MemberKind.REAPER),
                ("keeper", MemberKind.REAPER),
                ("agent", MemberKind.AGENT),
            ):
                self._journal.members.add(Member(run, name, kind))
            for spec in prepared.specs:
                self._journal.members.add(
                    Member(run, spec.name, MemberKind.SIDECAR, type=spec.type, argument=spec.argument)
                )
            for name, definition in prepared.sidecars.definitions.items():
                self._journal.definitions.fix(run, name, definition.digest, definition.to_json())
            self._journal.note(
                self._clock.wall(),
                "spawn-began",
                run,
                polecat=prepared.group.address,
                types=self._journal.definitions.digests(run),
                withheld=list(prepared.withheld),
            )

    def _start_agent(self, prepared: SpawnPlan) -> tuple[StartedPolecat, Choice]:
        run_dir = self._town.run_dir(prepared.group.run)
        make_run_dir(run_dir)
        environment = polecat_environment(
            self._town,
            prepared.group,
            prepared.session,
            prepared.workdir,
            prepared.settings.key_env,
            prepared.settings.hook_wait,
            prepared.argv,
            prepared.environment,
        )
        choice = self._choose_channel(prepared, run_dir, environment)
        client_settings: Mapping[str, Any] = session_settings(as_string=choice.channel is Channel.HOOKS_STRING)
        briefing = ""
        if prepared.memory and prepared.memory_provider:
            opened = prepared.memory_provider(prepared.memory, prepared.group, prepared.workdir, prepared.task.text)
            briefing = opened.briefing
            environment |= opened.environment
            client_settings = opened.settings(client_settings)
        file = run_dir / "task.md" if prepared.task.is_long else None
        if file:
            replace_file(file, prepared.task.text, durable=False, below=run_dir.parent)
            client_settings = readable(client_settings, file)
        names = [spec.name for spec in prepared.specs]
        prompt = prepared.task.prompt(prepared.group, names, briefing, str(file or ""))
        if prepared.conversation:
            prompt = _GO_ON if prepared.task.text else ""
        argv = launch_arguments(prepared.argv, run_dir, client_settings, prompt, prepared.conversation)
        tmux: Tmux = self._reconciler.tmux
        run, bounds = prepared.group.run, self._bound(prepared)
        cgroup = bounds.contained or self._contain(prepared)
        started = start_polecat(
            tmux,
            prepared.session,
            run_dir,
            argv,
            prepared.workdir,
            environment,
            prepared.settings.stop_grace,
            bounds.reapers or cgroup,
            bounds.join,
            self._outer,
        )
        if prepared.settings.containment == "cgroup" and started.agent.pid not in cgroup_members(cgroup, run):
            raise SpawnError(prepared.group.address, _NO_CGROUP)
        self._reconciler.actor.record_polecat(run, started.reaper, started.keeper, started.agent)
        self._journal.groups.change(run, pane=started.pane.id)
        tmux.set_environment(prepared.session, "GT_PANE_ID", started.pane.id)
        return started, choice

    def _choose_channel(self, prepared: SpawnPlan, run_dir: Path, environment: dict[str, str]) -> Choice:
        """Look at the client, record what was chosen, and give a client that runs mods ours."""
        choice = choose(prepared.argv, prepared.workdir, environment)
        if choice.channel is Channel.MOD and ":" in str(run_dir):
            choice = replace(
                choice, channel=Channel.HOOKS, reason=f"a colon in {run_dir}: it cannot be a plugin folder"
            )
        folders = other_folders(os.environ)
        if choice.channel is Channel.MOD:
            others = bool(folders) or any("--plugin-dir" in word for word in prepared.argv)
            try:
                folders.insert(0, str(make_mod(run_dir / "mod", band=prepared.settings.prompt_line, others=others)))
            except OSError as error:
                choice = replace(choice, channel=Channel.HOOKS, reason=f"the mod could not be copied: {error}")
        if folders:
            environment[PLUGIN_FOLDERS] = ":".join(folders)
        self._journal.groups.change(
            prepared.group.run,
            channel=str(choice.channel),
            channel_reason=choice.reason,
            client_version=choice.version,
        )
        return choice

    def _bound(self, prepared: SpawnPlan) -> LimitGroup:
        """The cgroups in which the agent's limits hold; a limit that cannot be had is never left out in silence."""
        if not prepared.limits:
            return LimitGroup()
        try:
            bounds = make_limit_group(prepared.group.run, prepared.limits)
        except LimitsUnavailable as error:
            raise SpawnError(prepared.group.address, f"its limits cannot be set: {error}") from error
        self._journal.groups.change(
            prepared.group.run,
            cgroup=bounds.contained,
            limits=prepared.limits.set_values(),
            limit_cgroups=bounds.folders,
        )
        return bounds

    def _contain(self, prepared: SpawnPlan) -> str:
        """The group's own cgroup, where the settings want one and the machine gives it."""
        wanted = prepared.settings.containment
        if wanted == "reaper":
            return ""
        cgroup = make_cgroup(prepared.group.run)
        if cgroup:
            self._journal.groups.change(prepared.group.run, cgroup=str(cgroup))
        elif wanted == "cgroup":
            raise SpawnError(prepared.group.address, _NO_CGROUP)
        return str(cgroup or "")

    def _hand_over_key(self, prepared: SpawnPlan) -> None:
        """Give the Witness the key that the caller has exported, before there is a sidecar to start without it."""
        if key := exported_key(prepared.settings):
            town_witness.start_witness(self._town, self._outer)
            # Another process that may have bound its socket gets no key.
            if town_witness.witness_process(self._town):
                town_witness.ask(self._town, {"op": "key", "key": key}, _SIDECARS_SECONDS)

    def _start_sidecars(self, run: str, prepared: SpawnPlan, *, witness: bool) -> None:
        deadline = self._clock.monotonic() + _SIDECARS_SECONDS
        exported = exported_key(prepared.settings)
        while True:
            if witness:
                town_witness.start_witness(self._town, self._outer)
            # Another process that may have bound its socket gets no key.
            key = exported if exported and town_witness.witness_process(self._town) else ""
            # None runs, or the one that ran was just leaving: then we are one for a moment, under the same lock.
            if town_witness.ask(self._town, {"op": "await", "run": run, "key": key}, _SIDECARS_SECONDS) is not None:
                break
            if witness and self._clock.monotonic() < deadline:
                select.select([], [], [], 0.02)
                continue
            try:
                with town_witness.town_lock(self._town, patience=_SIDECARS_SECONDS):
                    self._start_sidecars_here(run)
                break
            except TownLockedError:
                if self._clock.monotonic() >= deadline:
                    raise
        group = self._journal.groups.get(run)
        if group is None or group.state in (GroupState.NUKED, GroupState.NUKING, GroupState.ZOMBIE):
            raise SpawnError(prepared.group.address, self._last_words(prepared))

    def _start_sidecars_here(self, run: str) -> None:
        """Without a Witness the spawner itself makes the group's first rounds, until all sidecars observe."""
        deadline = self._clock.monotonic() + _SIDECARS_SECONDS
        while True:
            outcome = PatrolResult()
            self._reconciler.quick_snapshot([run], (), outcome)
            group = self._journal.groups.get(run)
            if group is None or group.state is not GroupState.SPAWNING:
                return
            if self._clock.monotonic() >= deadline:
                raise SpawnError(run, "; ".join(outcome.errors) or "its sidecars did not become ready")
            # A patrol may have started them before us, and heard their news too.
            self._reconciler.pool.join()
            handle = self._reconciler.pool.fileno()
            select.select([] if handle is None else [handle], [], [], _NEWS_SECONDS)
            self._reconciler.pool.poll_events()

    def _settle(self, prepared: SpawnPlan, started: StartedPolecat) -> None:
        """An agent that ends at once was not started; from then on its session ends with it."""
        if not wait_gone({started.agent}, prepared.settings.spawn_settle):
            raise SpawnError(prepared.group.address, self._last_words(prepared))
        self._reconciler.tmux.close_on_exit(prepared.session)
        self._journal.groups.change(prepared.group.run, worker=None)

    def _last_words(self, prepared: SpawnPlan) -> str:
        run_dir = self._town.run_dir(prepared.group.run)
        deadline = self._clock.monotonic() + _RECORD_SECONDS
        # Its reaper is about to write down how it ended.
        while agent_exit(run_dir).code is None and self._clock.monotonic() < deadline:
            select.select([], [], [], 0.005)
        ended = agent_exit(run_dir).describe()
        try:
            screen = self._reconciler.tmux.capture(prepared.session, 3).strip()
        except WitnessError:
            screen = ""
        said = " / ".join(line.strip() for line in screen.splitlines() if line.strip() and "Pane is dead" not in line)
        printable = "".join(mark for mark in said if mark.isprintable())[:300]
        return (
            f"{shlex.join(prepared.argv)} ended at once"
            + (f", {ended}" if ended else "")
            + (f"; its last words: {printable}" if printable else "")
        )

    def _undo(self, prepared: SpawnPlan) -> tuple[tuple[int, ...], str]:
        """End what was started; (pids that survived, what is said of a worktree that had to be kept)."""
        run, outcome = prepared.group.run, PatrolResult()
        try:
            results = self._reconciler.end([(run, "spawn-failed")], outcome, grace=_UNDO_SECONDS)
        except JournalError:
            # Nothing can be recorded. What we have started is ended all the same, for we say that it failed; the next
            # patrol finds the rest of it and closes the record.
            results = self._reconciler.actor.end_unrecorded(prepared.group, prepared.session, _UNDO_SECONDS)
        end = outcome.worktrees.get(run)
        survivors = tuple(survivor.process.pid for result in results for survivor in result.survivors)
        return survivors, str(end) if end and end.kept else ""


def launch_arguments(
    argv: tuple[str, ...], run_dir: Path, client_settings: Mapping[str, Any], prompt: str, conversation: str = ""
) -> list[str]:
    """The agent's argument list with what its client needs: our hooks, and the work as its first prompt."""
    settings = run_dir / "settings.json"
    replace_file(settings, json.dumps(client_settings, indent=2), durable=False, below=run_dir.parent)
    # Kept for those who judge the agent against what it was told.
    replace_file(run_dir / "prompt.xml", prompt, durable=False, below=run_dir.parent)
    return client_for(argv).launch(argv, prompt, str(settings), conversation)
