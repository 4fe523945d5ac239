"""A spawn, from what was asked for to a group that runs: all checks first, then all or nothing."""

from __future__ import annotations

import json
import os
import select
import shlex
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from witness.declare.molecule import Molecule
from witness.declare.sidecar_spec import SidecarSpec
from witness.declare.source import Source
from witness.declare.types import resolve_specs
from witness.errors import DeclarationError, Problem, SpawnError, UsageError, WitnessError
from witness.identity import ProcessId
from witness.journal import Group, GroupState, Member, MemberKind
from witness.names import GroupId, check_name
from witness.patrol import control
from witness.patrol.act import Deeds
from witness.patrol.rounds import Rounds
from witness.patrol.task import read_task
from witness.settings import Settings, load_settings
from witness.spawn.environment import polecat_environment
from witness.spawn.polecat import StartedPolecat, make_run_dir, start_polecat, write_private
from witness.supervise.exits import agent_exit
from witness.supervise.proctree import identify
from witness.supervise.waiting import wait_gone
from witness.town import Town
from witness.transport.hook_settings import session_settings
from witness.transport.tmux import Tmux, check_tmux

# Sidecars start in milliseconds; a machine under full load may need a hundred times that.
_SIDECARS_SECONDS = 60.0
DEFAULT_AGENT = "claude"


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody asks for; see ``gt polecat spawn --help``.

    Args:
        polecat: its name.
        rig: empty for the rig of the working directory.
        workdir: where it works; None for the current directory.
        molecule: file or name, empty for none.
        sidecars: spec string that beats the molecule's; None when not given.
        variables: ``--var``.
        task: the text of the work.
        agent: the agent's command line, empty for the molecule's or the default.
        witness: start the town's Witness when none runs.
        issue: the work as an issue: a file, or an id that ``bd`` knows.
        memory: name of the agent whose memory it is given.
    """

    polecat: str
    rig: str = ""
    workdir: Path | None = None
    molecule: str = ""
    sidecars: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    task: str = ""
    agent: str = ""
    witness: bool = True
    issue: str = ""
    memory: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An order that was found good."""

    group: GroupId
    session: str
    workdir: Path
    argv: tuple[str, ...]
    specs: tuple[SidecarSpec, ...]
    variables: Mapping[str, str]
    molecule: str
    task: str
    prompt: str
    settings: Settings


def prepare(town: Town, order: Order) -> Prepared:
    """Check everything that can be checked without starting anything.

    Raises:
        DeclarationError: all that is wrong with molecule, sidecars and settings, at once.
        UsageError: a name, a folder, tmux or the agent is not usable.
    """
    problems: list[Problem] = []
    rig = order.rig or town.rig_of(order.workdir or Path.cwd())
    # Links stay as the user wrote them.
    workdir = Path(os.path.abspath(order.workdir or town.workdir(rig) or Path.cwd()))  # noqa: PTH100
    session = ""
    try:
        check_name("polecat", order.polecat)
        session = town.session(rig, order.polecat)
    except UsageError as error:
        problems.append(Problem(str(error)))
    try:
        town.check_rig(rig)
    except UsageError as error:
        problems.append(Problem(str(error), "--rig" if order.rig else ""))
    if not workdir.is_dir():
        problems.append(Problem(f"no directory {str(workdir)!r}: make it, or name another one", "--workdir"))
    given = {"issue": order.issue, **order.variables} if order.issue else dict(order.variables)
    settings, molecule, variables = Settings(), None, given
    try:
        settings = load_settings(town.root, rig)
        if order.molecule:
            molecule = Molecule.load(order.molecule, town, workdir)
            variables = molecule.variables(given)
    except DeclarationError as error:
        problems += error.problems
    except UsageError as error:
        problems.append(Problem(str(error)))
    specs: tuple[SidecarSpec, ...] = ()
    try:
        text, source = _sidecars(order, molecule, given, settings)
        if workdir.is_dir():
            specs = resolve_specs(text, source, town=town, rig=rig, workdir=workdir)
    except DeclarationError as error:
        problems += [problem for problem in error.problems if problem not in problems]
    argv, problem = _agent(order.agent or (molecule.agent if molecule else "") or DEFAULT_AGENT, workdir)
    problems += problem
    try:
        check_tmux()
    except UsageError as error:
        problems.append(Problem(str(error)))
    task, wrong = read_task(order.task, order.issue or ("" if order.task else _issue_of(variables, workdir)), workdir)
    problems += wrong
    if problems:
        raise DeclarationError(problems)
    group = GroupId(rig, order.polecat, uuid.uuid4().hex)
    return Prepared(
        group,
        session,
        workdir,
        argv,
        specs,
        variables,
        str(molecule.path) if molecule else "",
        task.text,
        task.prompt(group, [spec.name for spec in specs]),
        settings,
    )


def _issue_of(variables: Mapping[str, str], workdir: Path) -> str:
    """The molecule's own issue variable, where it names a file that is there."""
    issue = variables.get("issue", "")
    return issue if issue and (workdir / issue).is_file() else ""


def _sidecars(
    order: Order, molecule: Molecule | None, given: Mapping[str, str], settings: Settings
) -> tuple[str, str | Source]:
    """The spec string that counts: ``--sidecars`` beats ``--var sidecars=…`` beats the molecule beats the rig."""
    if order.sidecars is not None:
        return order.sidecars, "--sidecars"
    if "sidecars" in given and not molecule:
        return given["sidecars"], "--var sidecars"
    if molecule and ("sidecars" in given or "sidecars" in molecule.declared):
        return molecule.sidecars(given), molecule.sidecars_source(given)
    return settings.sidecars, "settings/witness.yaml"


def _agent(command: str, workdir: Path) -> tuple[tuple[str, ...], list[Problem]]:
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        return (), [Problem(f"{command!r} cannot be split into words: {error}", "--agent")]
    if not argv:
        return (), [Problem("the agent's command is empty", "--agent")]
    program = argv[0] if os.sep not in argv[0] else str(workdir / argv[0])
    if shutil.which(program) is None:
        return (), [Problem(f"no program {argv[0]!r}: install it, or name another agent", "--agent")]
    return argv, []


@dataclass(frozen=True, slots=True)
class Spawned:
    """A polecat that runs.

    Args:
        group: its identity.
        session: its tmux session.
        agent: the agent's process.
        sidecars: the sidecars as recorded.
    """

    group: GroupId
    session: str
    agent: ProcessId
    sidecars: tuple[Member, ...]

    def as_json(self) -> dict[str, Any]:
        """The form that ``gt polecat spawn --json`` promises."""
        return {
            "polecat": self.group.polecat,
            "rig": self.group.rig,
            "session": self.session,
            "run": self.group.run,
            "pid": self.agent.pid,
            "sidecars": [
                {"name": each.name, "type": each.type, "pid": each.process.pid if each.process else None}
                for each in self.sidecars
            ],
        }


class Spawner:
    """Starts what was prepared.

    Args:
        rounds: the town's patrol, whose parts start sidecars and undo what fails.
        inside: the polecat that the caller runs in.
    """

    def __init__(self, rounds: Rounds, inside: GroupId | None) -> None:
        self._rounds, self._inside = rounds, inside
        self._town, self._journal, self._clock = rounds.town, rounds.journal, rounds.clock

    def spawn(self, prepared: Prepared, *, witness: bool) -> Spawned:
        """Start the group; whatever goes wrong, nothing of it stays.

        Raises:
            UsageError: a polecat or a session of that name is there already, or the town is full.
            SpawnError: the agent did not start, or ended at once.
        """
        if self._journal.groups.named(prepared.group.polecat, prepared.group.rig):
            raise UsageError(
                f"polecat {prepared.group.address} is already running: nuke it first, or choose another name"
            )
        if self._rounds.tmux.has_session(prepared.session):
            raise UsageError(
                f"a tmux session {prepared.session} stands already and is not ours: end it, or choose another name"
            )
        self._record(prepared)
        run = prepared.group.run
        try:
            started = self._start_agent(prepared)
            self._start_sidecars(run, prepared, witness=witness)
            self._settle(prepared, started)
        except BaseException as error:
            survivors = self._undo(run)
            if isinstance(error, SpawnError):
                raise SpawnError(prepared.group.address, error.reason, survivors) from error
            raise
        members = self._journal.members.of(run)
        sidecars = tuple(member for member in members if member.kind is MemberKind.SIDECAR)
        return Spawned(prepared.group, prepared.session, started.agent, sidecars)

    def _record(self, prepared: Prepared) -> None:
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
                    details={
                        "worker": [me.pid, me.started] if me else [],
                        "task": prepared.task,
                        "variables": dict(prepared.variables),
                        "overrides": {name: dict(fields) for name, fields in prepared.settings.types.items()},
                    },
                )
            )
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
            self._journal.note(self._clock.wall(), "spawn-began", run, polecat=prepared.group.address)

    def _start_agent(self, prepared: Prepared) -> StartedPolecat:
        run_dir = self._town.run_dir(prepared.group.run)
        make_run_dir(run_dir)
        environment = polecat_environment(
            self._town,
            prepared.group,
            prepared.session,
            prepared.workdir,
            prepared.settings.key_env,
            prepared.settings.hook_wait,
        )
        argv = launch_arguments(prepared, run_dir)
        tmux: Tmux = self._rounds.tmux
        started = start_polecat(
            tmux, prepared.session, run_dir, argv, prepared.workdir, environment, prepared.settings.stop_grace
        )
        run = prepared.group.run
        self._rounds.actor.record_polecat(run, started.reaper, started.keeper, started.agent)
        tmux.set_environment(prepared.session, "GT_PANE_ID", started.pane.id)
        return started

    def _start_sidecars(self, run: str, prepared: Prepared, *, witness: bool) -> None:
        if witness:
            control.start_witness(self._town, self._inside)
        answer = control.ask(self._town, {"op": "await", "run": run}, _SIDECARS_SECONDS)
        if answer is None:
            self._start_sidecars_here(run)
        group = self._journal.groups.get(run)
        if group is None or group.state in (GroupState.NUKED, GroupState.NUKING, GroupState.ZOMBIE):
            raise SpawnError(prepared.group.address, self._last_words(prepared))

    def _start_sidecars_here(self, run: str) -> None:
        """Without a Witness the spawner itself makes the group's first rounds, until all sidecars observe."""
        deadline = self._clock.monotonic() + _SIDECARS_SECONDS
        while True:
            deeds = Deeds()
            self._rounds.glance([run], (), deeds)
            group = self._journal.groups.get(run)
            if group is None or group.state is not GroupState.SPAWNING:
                return
            handle, remaining = self._rounds.nursery.fileno(), deadline - self._clock.monotonic()
            if remaining <= 0 or handle is None:
                raise SpawnError(run, "; ".join(deeds.errors) or "its sidecars did not become ready")
            select.select([handle], [], [], remaining)
            self._rounds.nursery.news()

    def _settle(self, prepared: Prepared, started: StartedPolecat) -> None:
        """An agent that ends at once was not started; from then on its session ends with it."""
        if not wait_gone({started.agent}, prepared.settings.spawn_settle):
            raise SpawnError(prepared.group.address, self._last_words(prepared))
        self._rounds.tmux.close_on_exit(prepared.session)
        self._journal.groups.detail(prepared.group.run, worker=None)

    def _last_words(self, prepared: Prepared) -> str:
        ended = agent_exit(self._town.run_dir(prepared.group.run)).describe()
        try:
            screen = self._rounds.tmux.capture(prepared.session, 3).strip()
        except WitnessError:
            screen = ""
        said = " / ".join(line.strip() for line in screen.splitlines() if line.strip() and "Pane is dead" not in line)
        printable = "".join(mark for mark in said if mark.isprintable())[:300]
        return (
            f"{shlex.join(prepared.argv)} ended at once"
            + (f", {ended}" if ended else "")
            + (f"; its last words: {printable}" if printable else "")
        )

    def _undo(self, run: str) -> tuple[int, ...]:
        deeds = Deeds()
        results = self._rounds.end([(run, "spawn-failed")], deeds, grace=1.0)
        return tuple(survivor.process.pid for result in results for survivor in result.survivors)


def launch_arguments(prepared: Prepared, run_dir: Path) -> list[str]:
    """The agent's argument list with what its client needs: our hooks, and the work as its first prompt."""
    settings = run_dir / "settings.json"
    write_private(settings, json.dumps(session_settings(), indent=2))
    program, *rest = prepared.argv
    # Kept for those who judge the agent against what it was told.
    write_private(run_dir / "prompt.xml", prepared.prompt)
    if Path(program).name != "claude":
        return [program, *rest]
    # The prompt goes first: a flag that takes several values would swallow it.
    prompt = [prepared.prompt] if prepared.prompt else []
    return [program, *prompt, *rest, "--settings", str(settings)]
