"""What somebody asks for, checked whole before anything is started."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from witness.agents.folder_dialog import FolderDialog, folder_dialog
from witness.assignment import Assignment
from witness.config.settings import Settings
from witness.config.town import Town
from witness.declare.molecule import Molecule
from witness.declare.sidecar_spec import ResolvedSidecars, SidecarSpec, argument_files, resolve_specs
from witness.declare.source import Source
from witness.declare.variables import SIDECARS
from witness.errors import DeclarationError, Problem, UsageError
from witness.files import read_project
from witness.names import GroupId, check_name, is_text
from witness.process import ProcessId
from witness.process.limits import Limits
from witness.prompts import minimal_prompt
from witness.tmux import check_tmux
from witness.trust.definition import allowed
from witness.trust.molecules import molecule_asking, project_of
from witness.trust.requests import reaches_outside
from witness.trust.settings import rig_askings, trusted_settings, withheld_settings
from witness.worktrees.making import WorktreePlan, plan_worktree

DEFAULT_AGENT = "claude"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class MemoryContext:
    """What a memory adds to a polecat.

    Args:
        briefing: what its prompt says of it, framed as data.
        environment: variables by which the agent's own calls find the same memory.
        settings: given the client's settings, the same with what saves the memory at the end.
    """

    briefing: str
    environment: Mapping[str, str]
    settings: Callable[[Mapping[str, Any]], Mapping[str, Any]]


# (agent, group, workdir, task) → what it adds. The Witness knows nothing of how memories are kept.
MemoryProvider = Callable[[str, GroupId, Path, str], MemoryContext]


# A sidecar as it would be started → (why it could never speak, empty when it can; what it will hold the agent to). A
# DeclarationError or UsageError says that its declaration is wrong. The Witness knows nothing of what a type means.
SidecarCheck = Callable[[Assignment], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class SpawnRequest:
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
        limits: what its agent may use of the machine, by name; beats the settings' and the molecule's.
        memory: name of the agent whose memory it is given; empty for the molecule's ``memory`` variable, or none.
        memory_provider: how memories are opened; the command line gives the one of ``sidecars.memory``.
        check: looks at each sidecar before anything starts; the command line gives the one of ``sidecars.observer``.
        more_variables: told to the sidecars beside the molecule's variables, and over them.
        more_sidecars: a spec that is added, unless a sidecar of its type is declared already.
        accept_folder: answer the client's question about its folder beforehand.
        ask_folder: asks a person whether to; for the setting ``folders: ask``.
        worktree: give it a worktree and a branch of its own; None for the molecule's or the settings' word.
        branch: the branch's name; empty for one after the polecat and the run.
        base: what it begins at; empty for the commit that is checked out.
        environment: variables for the agent, over the caller's.
        continues: the run that it goes on from, empty for none: its worktree, and what its sidecars have said.
        conversation: the client's id of the conversation that is begun again; empty for a new one.
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
    limits: Mapping[str, int | None] = field(default_factory=dict)
    memory: str = ""
    memory_provider: MemoryProvider | None = None
    check: SidecarCheck | None = None
    more_variables: Mapping[str, str] = field(default_factory=dict)
    more_sidecars: str = ""
    accept_folder: bool = False
    ask_folder: Callable[[FolderDialog], bool] | None = None
    worktree: bool | None = None
    branch: str = ""
    base: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    continues: str = ""
    conversation: str = ""


@dataclass(frozen=True, slots=True)
class SpawnPlan:
    """A request that was found good.

    Args:
        group: the life that it will be.
        session: its tmux session.
        workdir: where the agent will work.
        argv: the agent's command.
        sidecars: what it gets, and who said so.
        variables: the molecule's, resolved.
        molecule: its file or name, empty for none.
        task: the text of the work and where it comes from.
        memory: name of the agent whose memory it is given, empty for none.
        memory_provider: how memories are opened.
        settings: the town's and the rig's.
        mute: why a sidecar could never speak, by its name.
        found: what a sidecar will hold the agent to, by its name.
        warnings: about the molecule, one line each.
        folder: the client's question about its folder that is to be answered beforehand; None for none.
        limits: what its agent may use of the machine.
        withheld: one line for each declaration of the project that does not count, because nobody has trusted it.
        worktree: what it works in, to be made; None for the working directory as it is.
        check: looks at each sidecar once more, in the worktree.
        environment: variables for the agent, over the caller's.
        continues: the run that it goes on from, empty for none.
        conversation: the client's id of the conversation that is begun again; empty for a new one.
    """

    group: GroupId
    session: str
    workdir: Path
    argv: tuple[str, ...]
    sidecars: ResolvedSidecars
    variables: Mapping[str, str]
    molecule: str
    task: Task
    memory: str
    memory_provider: MemoryProvider | None
    settings: Settings
    mute: Mapping[str, str] = field(default_factory=dict)
    found: Mapping[str, str] = field(default_factory=dict)
    folder: FolderDialog | None = None
    warnings: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    withheld: tuple[str, ...] = ()
    worktree: WorktreePlan | None = None
    check: SidecarCheck | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    continues: str = ""
    conversation: str = ""

    @property
    def specs(self) -> tuple[SidecarSpec, ...]:
        """The sidecars that it gets."""
        return self.sidecars.specs


def prepare(town: Town, request: SpawnRequest) -> SpawnPlan:
    """Check everything that can be checked without starting anything.

    Raises:
        DeclarationError: all that is wrong with molecule, sidecars and settings, at once.
        UsageError: a name, a folder, tmux or the agent is not usable.
    """
    rig, workdir, session, problems = _place(town, request)
    given = {"issue": request.issue, **request.variables} if request.issue else dict(request.variables)
    settings, molecule, variables = Settings(), None, given
    try:
        settings = trusted_settings(town.root, rig)
        if request.molecule:
            molecule = Molecule.load(request.molecule, town, workdir)
            variables = molecule.variables(given)
    except DeclarationError as error:
        problems += error.problems
    except UsageError as error:
        problems.append(Problem(str(error)))
    sidecars = ResolvedSidecars()
    try:
        text, source = _sidecars(request, molecule, given, settings)
        if workdir.is_dir():
            sidecars = resolve_specs(text, source, town=town, rig=rig, workdir=workdir)
            if request.more_sidecars and request.more_sidecars not in {spec.type for spec in sidecars.specs}:
                text = ",".join(filter(None, (text, request.more_sidecars)))
                sidecars = resolve_specs(text, source, town=town, rig=rig, workdir=workdir)
    except DeclarationError as error:
        problems += [problem for problem in error.problems if problem not in problems]
    withheld = [*_withheld(town, rig), *sidecars.withheld]
    limits = _molecule_limits(molecule, settings.limits, town, rig, workdir, withheld)
    problems += _outside(molecule, request, given, sidecars, town, rig, workdir)
    argv, problem = _agent(request, molecule, town, rig, workdir)
    problems += problem
    try:
        check_tmux()
    except UsageError as error:
        problems.append(Problem(str(error)))
    task, wrong = read_task(
        request.task, request.issue or ("" if request.task else _issue_of(variables, workdir)), workdir
    )
    problems += wrong
    memory = request.memory or variables.get("memory", "")
    if memory and request.memory_provider is None:
        problems.append(Problem("nothing here opens memories: give the request a 'memory_provider'", "--memory"))
    group = GroupId(rig, request.polecat, uuid.uuid4().hex)
    # A restart gives it the same memory again.
    variables = {**variables, **request.more_variables, **({"memory": memory} if memory else {})}
    mute: dict[str, str] = {}
    found: dict[str, str] = {}
    if request.check and not problems:
        mute, found, problems = look_at_sidecars(request.check, town, group, workdir, sidecars, task.text, variables)
    if problems:
        raise DeclarationError(problems)
    worktree = _worktree(town, request, molecule, settings, group, workdir)
    if worktree:
        workdir = worktree.workdir
    folder = _folder(request, settings, argv, workdir)
    return SpawnPlan(
        group,
        session,
        workdir,
        argv,
        sidecars,
        variables,
        str(molecule.path) if molecule else "",
        task,
        memory,
        request.memory_provider,
        settings,
        mute,
        found,
        folder,
        (*map(str, molecule.warnings if molecule else ()), *(worktree.warnings if worktree else ())),
        limits.over(request.limits),
        tuple(withheld),
        worktree,
        request.check,
        _environment(request.environment),
        request.continues,
        request.conversation,
    )


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """The variables that somebody sets for an agent.

    Raises:
        UsageError: a name is none, or one by which we know our own.
    """
    for name, value in given.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            raise UsageError(f"--env {name!r} is no variable: write it as NAME=VALUE")
        if name.startswith("GT_") or name in ("CLAUDECODE", "BD_ACTOR", "BEADS_AGENT_NAME"):
            raise UsageError(f"--env {name}: that variable says who the polecat is, and is ours to set")
    return dict(given)


def _worktree(
    town: Town, request: SpawnRequest, molecule: Molecule | None, settings: Settings, group: GroupId, workdir: Path
) -> WorktreePlan | None:
    """The worktree that the polecat is to have: the request's word counts before the molecule's, and that before the
    settings'.

    Raises:
        UsageError: it cannot be made.
    """
    asked = request.worktree
    if request.branch or request.base:
        if asked is False:
            raise UsageError("--branch and --base are of a worktree: leave --no-worktree out")
        asked = True
    if town.gastown:
        if asked:
            raise UsageError("--worktree: in a Gas Town worktrees are made by the real gt: gt sling")
        return None
    declared = molecule.worktree if molecule else None
    if not (asked if asked is not None else settings.worktree if declared is None else declared):
        return None
    return plan_worktree(
        town,
        group,
        workdir,
        branch=request.branch,
        base=request.base,
        files=settings.worktree_files,
        setup=settings.setup,
        setup_timeout=settings.setup_timeout,
        throwaway=settings.worktree_throwaway,
    )


def check_in_worktree(town: Town, plan: SpawnPlan) -> None:
    """See that what was declared is in the new worktree too: it holds what was committed, and nothing else.

    Raises:
        DeclarationError: a sidecar's file, or the issue, is not there. Holds all such faults.
    """
    assert plan.worktree  # noqa: S101 - the caller has asked
    problems: list[Problem] = []
    if plan.check:
        _, _, problems = look_at_sidecars(
            plan.check, town, plan.group, plan.workdir, plan.sidecars, plan.task.text, plan.variables
        )
    # What bd gave is in no file; what was read from a file is in the worktree as it was read.
    source = plan.task.source
    if source and (plan.worktree.source / source).is_file() and not (plan.workdir / source).is_file():
        problems.append(Problem(f"{source} is not committed, so the worktree does not have it", "--issue"))
    if problems:
        more = Problem("a worktree holds what its --base holds: commit it, or name it in worktree_files", "--worktree")
        raise DeclarationError([*problems, more])


def look_at_sidecars(
    check: SidecarCheck,
    town: Town,
    group: GroupId,
    workdir: Path,
    sidecars: ResolvedSidecars,
    task: str = "",
    variables: Mapping[str, str] | None = None,
) -> tuple[dict[str, str], dict[str, str], list[Problem]]:
    """Look at each sidecar before anything starts.

    Returns:
        Why some could never speak and what some hold the agent to, by the sidecar's name; all that is wrong with them.
    """
    mute: dict[str, str] = {}
    found: dict[str, str] = {}
    problems: list[Problem] = []
    for spec in sidecars.specs:
        definition = sidecars.definitions[spec.type].to_json()
        assignment = _assignment(town, group, workdir, spec, task, variables or {}, definition)
        mute[spec.name], found[spec.name], faults = _checked(check, assignment)
        problems += [problem for problem in faults if problem not in problems]
    return {n: text for n, text in mute.items() if text}, {n: text for n, text in found.items() if text}, problems


def _checked(check: SidecarCheck, assignment: Assignment) -> tuple[str, str, Sequence[Problem]]:
    """(why a sidecar could never speak, what it holds the agent to, what is wrong with it)."""
    try:
        return (*check(assignment), ())
    except DeclarationError as error:
        return "", "", error.problems
    except UsageError as error:
        return "", "", [Problem(str(error), "--sidecars")]


def _folder(request: SpawnRequest, settings: Settings, argv: tuple[str, ...], workdir: Path) -> FolderDialog | None:
    """The client's question about its folder, when it is to be answered beforehand.

    Raises:
        UsageError: it is wanted and forbidden, or it cannot be done.
    """
    if settings.folders == "never":
        if request.accept_folder:
            raise UsageError("--accept-folder: the settings say folders: never; answer the client's dialog yourself")
        return None
    wanted = request.accept_folder or settings.folders == "accept"
    if not wanted and request.ask_folder is None:
        return None
    try:
        dialog = folder_dialog(argv, workdir, os.environ)
    except UsageError:
        if wanted:
            raise
        return None  # the client itself will say what is wrong with its file
    return dialog if dialog and (wanted or (request.ask_folder and request.ask_folder(dialog))) else None


def _outside(
    molecule: Molecule | None,
    request: SpawnRequest,
    given: Mapping[str, str],
    sidecars: ResolvedSidecars,
    town: Town,
    rig: str,
    workdir: Path,
) -> list[Problem]:
    """What a project's molecule names outside of the project: it is not read on the project's word."""
    project = project_of(molecule.path, town.root, rig, workdir) if molecule else None
    if molecule is None or project is None or allowed(project, town.root, rig, workdir):
        return []
    named: dict[str, Iterable[str]] = {}
    if request.sidecars is None and SIDECARS not in given:
        named["--sidecars"] = [part for spec in sidecars.specs for part in argument_files(spec.argument)]
    if not request.task and "issue" not in given and "issue" in molecule.declared:
        named["--issue"] = [molecule.declared["issue"].default or ""]
    return [
        Problem(f"{part!r} lies outside of {project}: not read on the word of {molecule.path}; give {flag} yourself")
        for flag, parts in named.items()
        for part in parts
        if reaches_outside(part)
    ]


def _withheld(town: Town, rig: str) -> list[str]:
    try:
        return withheld_settings(town.root, rig)
    except DeclarationError:
        return []  # what is wrong there is told beside all other faults


def _molecule_limits(
    molecule: Molecule | None, limits: Limits, town: Town, rig: str, workdir: Path, withheld: list[str]
) -> Limits:
    """The settings' limits with the molecule's; those of a project that nobody has trusted only make them tighter."""
    for name, (path, value) in molecule.limits.items() if molecule else ():
        wanted = limits.over({name: value})
        if molecule and limits.tightened({name: value}) != wanted:
            trust = molecule_asking(path, molecule.asks[path], town.root, rig, workdir)
            if not trust.counts:
                withheld += [line for line in [trust.withheld()] if line not in withheld]
                continue
        limits = wanted
    return limits


def _assignment(
    town: Town,
    group: GroupId,
    workdir: Path,
    spec: SidecarSpec,
    task: str,
    variables: Mapping[str, str],
    definition: str,
) -> Assignment:
    """What the sidecar will be told, as far as it is known before anything has started."""
    return Assignment(
        group=group,
        name=spec.name,
        type=spec.type,
        argument=spec.argument,
        session="",
        socket="",
        town=str(town.root),
        workdir=str(workdir),
        run_dir=str(town.run_dir(group.run)),
        journal="",
        queue="",
        agent=ProcessId(0, 0),
        task=task,
        variables=dict(variables),
        definition=definition,
    )


def _place(town: Town, request: SpawnRequest) -> tuple[str, Path, str, list[Problem]]:
    """(rig, working directory, session) of a request, and what is wrong with them."""
    problems: list[Problem] = []
    here = request.workdir or Path.cwd()
    rig = request.rig or town.rig_around(here) or town.rig_of_bead(request.issue) or town.rig_of(here)
    # Links stay as the user wrote them.
    workdir = Path(os.path.abspath(request.workdir or town.workdir(rig) or Path.cwd()))  # noqa: PTH100
    session = ""
    asking = rig_askings(town.root).get(rig) if request.workdir is None and not town.gastown else None
    if asking is not None and not asking.counts:
        problems.append(Problem(f"{asking.withheld()}, or give --workdir"))
    try:
        check_name("polecat", request.polecat)
        session = town.session(rig, request.polecat)
    except UsageError as error:
        problems.append(Problem(str(error)))
    try:
        town.check_rig(rig)
    except UsageError as error:
        problems.append(Problem(str(error), "--rig" if request.rig else ""))
    tree = town.worktree(rig, request.polecat) if town.gastown and session else None
    if tree is not None and not workdir.is_relative_to(tree):
        problems.append(Problem(f"Gas Town has a polecat {rig}/{request.polecat} with a worktree: choose another name"))
    if town.stopped(rig):
        problems.append(Problem(f"an emergency stop stands in {town.root}: nothing is spawned until it is over"))
    if not is_text(workdir):
        problems.append(Problem(f"{str(workdir)!r} is not UTF-8, and the journal holds text: rename it", "--workdir"))
    if not workdir.is_dir():
        problems.append(Problem(f"no directory {str(workdir)!r}: make it, or name another one", "--workdir"))
    return rig, workdir, session, problems


def _issue_of(variables: Mapping[str, str], workdir: Path) -> str:
    """The molecule's own issue variable, where it names a file that is there."""
    issue = variables.get("issue", "")
    return issue if issue and (workdir / issue).is_file() else ""


def _sidecars(
    request: SpawnRequest, molecule: Molecule | None, given: Mapping[str, str], settings: Settings
) -> tuple[str, str | Source]:
    """The spec string that counts: ``--sidecars`` beats ``--var sidecars=…`` beats the molecule beats the rig."""
    if request.sidecars is not None:
        return request.sidecars, "--sidecars"
    if "sidecars" in given and not molecule:
        return given["sidecars"], "--var sidecars"
    if molecule and ("sidecars" in given or "sidecars" in molecule.declared):
        return molecule.sidecars(given), molecule.sidecars_source(given)
    return settings.sidecars, "settings/witness.yaml"


def _agent(
    request: SpawnRequest, molecule: Molecule | None, town: Town, rig: str, workdir: Path
) -> tuple[tuple[str, ...], list[Problem]]:
    """The agent's words; a project's molecule names one only when the user has trusted it."""
    command = request.agent or (molecule.agent if molecule else "") or DEFAULT_AGENT
    if molecule and molecule.agent and not request.agent:
        trust = molecule_asking(molecule.path, molecule.asks[molecule.path], town.root, rig, workdir)
        if not trust.counts:
            return (), [Problem(f"{trust.withheld()}, or give --agent")]
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


# What a polecat is to do: the task in words, and the prompt it is started with.

_LARGEST_ISSUE = 256 * 1024
_BD_SECONDS = 10.0
# A longer task is read from a file: the kernel takes no argument of more than 128 KiB, and no window needs it twice.
LONGEST_TASK = 16 * 1024
_FINISH = "When it is finished, run `gt done`."


@dataclass(frozen=True, slots=True)
class Task:
    """The work.

    Args:
        text: all of it, for the sidecars (front matter of an issue included); empty when none was given.
        source: the issue's file or id, empty for a task in words.
    """

    text: str = ""
    source: str = ""

    @property
    def is_long(self) -> bool:
        """Whether it is a text that has to be read from a file."""
        return not self.source and len(self.text.encode("utf-8", "surrogateescape")) > LONGEST_TASK

    def prompt(self, group: GroupId, sidecars: Sequence[str], memory: str = "", file: str = "") -> str:
        """The minimal prompt of a polecat with this task; empty when it has none.

        Args:
            group: who it is.
            sidecars: names of those it may ask.
            memory: its briefing, framed as data already; empty when none.
            file: where a long task was written to.
        """
        if not self.text and not memory:
            return ""
        source = self.source or file
        objective = f"Do what {source} asks; read it first." if source else self.text.strip()
        prompt = minimal_prompt(
            f"You are {group.polecat}, a coding agent working alone in this directory.",
            f"{objective}\n\n{_FINISH}".strip(),
            polecat=group.address,
            sidecars=sidecars,
        )
        return f"{prompt}\n{memory}" if memory else prompt


def read_task(task: str, issue: str, workdir: Path) -> tuple[Task, list[Problem]]:
    """The work as it was ordered.

    Args:
        task: the text of ``--task``.
        issue: file or id of ``--issue``.
        workdir: relative files are read from here.

    Returns:
        (the task, what is wrong with the request).
    """
    if not issue:
        return Task(task), []
    path = workdir / issue
    if path.is_file():
        try:
            text = read_project(path, _LARGEST_ISSUE, cut=True).decode("utf-8-sig", errors="replace")
        except OSError as error:
            return Task(), [Problem(f"cannot be read: {error.strerror}", issue)]
        return Task(text, issue), []
    return _ask_bd(issue, workdir)


def _ask_bd(issue: str, workdir: Path) -> tuple[Task, list[Problem]]:
    """Gas Town's own issue tracker, where it is installed."""
    if not shutil.which("bd"):
        return Task(), [Problem(f"no file {issue!r} under {workdir}, and no bd to ask for an issue", "--issue")]
    try:
        done = subprocess.run(
            ["bd", "show", "--", issue], cwd=workdir, capture_output=True, timeout=_BD_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Task(), [Problem(f"bd show {issue} gave no answer: {error}", "--issue")]
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        return Task(), [Problem(f"neither a file nor an issue of bd's: {said[0] if said else issue}", "--issue")]
    return Task(done.stdout[:_LARGEST_ISSUE].decode(errors="replace"), issue), []
