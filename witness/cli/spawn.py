"""``gt polecat spawn``: one polecat with its sidecars, and what its agent shows first."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from witness.agents.clients import ANY, client_for
from witness.agents.folder_dialog import FolderDialog
from witness.agents.screen import WaitsFor
from witness.api import Witness
from witness.cli.completion import agents, memories, molecules, type_list
from witness.cli.context import print_json, tell_withheld
from witness.cli.memory_options import memory_provider
from witness.cli.scope_options import Scope, with_scope
from witness.config.town import Town
from witness.errors import TownNotFoundError, UsageError, WitnessError
from witness.files import read_bytes
from witness.launch.spawn_request import SpawnRequest
from witness.process.limits import parse_limit
from witness.state.first_sight import PATIENCE, FirstSight, Sight, first_sight
from witness.state.words import PLACES
from witness.supervise.spawn import SpawnResult

# What `timeout`, a shutdown and a closed terminal send; Ctrl-C is an exception of Python's own.
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_LARGEST_TASK = 1 << 20


def _variables(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    variables = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise UsageError(f"--var {value!r}: write it as NAME=VALUE")
        variables[name] = text
    return variables


def _environment(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Variables from ``--env``: NAME=VALUE, or the NAME of one that the caller has."""
    variables = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals and name not in os.environ:
            raise UsageError(f"--env {name!r}: write it as NAME=VALUE, or as the name of a variable that you have")
        variables[name] = text if equals else os.environ[name]
    return variables


def _environment_file(_: click.Context, __: click.Parameter, paths: tuple[str, ...]) -> dict[str, str]:
    """Variables from files of NAME=VALUE lines; # begins a comment line, quotes around a value are taken off."""
    variables = {}
    for path in paths:
        try:
            text = read_bytes(path, _LARGEST_TASK, follow=True, owners=()).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--env-file {path}: {getattr(error, 'strerror', None) or error}") from error
        for number, line in enumerate(text.splitlines(), 1):
            bare = line.strip().removeprefix("export ")
            if not bare or bare.startswith("#"):
                continue
            name, equals, value = bare.partition("=")
            if not equals or not name.strip().isidentifier():
                raise UsageError(f"--env-file {path}:{number}: write it as NAME=VALUE")
            value = value.strip()
            if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
                value = value[1:-1]
            variables[name.strip()] = value
    return variables


def _limit(_: click.Context, option: click.Parameter, value: str | None) -> tuple[int | None] | None:
    """None where it was not given; a limit of ``max`` is a None that was."""
    if value is None:
        return None
    try:
        return (parse_limit(option.name or "", value),)
    except ValueError as error:
        raise UsageError(f"{option.opts[0]}: {error}") from error


@click.command(
    epilog="Examples:\n\n"
    "  gt polecat spawn toast --molecule mol-demo\n\n"
    "  gt polecat spawn toast --sidecars specs:docs/api-spec.md,scope --task 'Fix the order check'\n\n"
    "  gt polecat spawn toast --worktree --base main --issue 17.md\n\n"
    "  gt polecat spawn toast --agent 'codex --full-auto' --memory-max 4G --pids-max 500"
)
@click.argument("name")
@click.option("--rig", default="", help="The rig; that of the working directory when not given.")
@click.option("--workdir", type=click.Path(path_type=Path), help="Where the agent works (default: here).")
@click.option(
    "--molecule",
    default="",
    shell_complete=molecules,
    metavar="FILE|NAME",
    help="The molecule that declares the sidecars.",
)
@click.option(
    "--sidecars",
    default=None,
    shell_complete=type_list,
    metavar="SPEC",
    help="type[:argument] by comma; beats the molecule's.",
)
@click.option("--var", "variables", multiple=True, callback=_variables, metavar="K=V", help="A molecule variable.")
@click.option("--task", default="", help="What is to be done, as text; @FILE reads it, - reads standard input.")
@click.option("--issue", default="", metavar="ID|FILE", help="What is to be done, as an issue's file or id.")
@click.option(
    "--agent",
    default=None,
    shell_complete=agents,
    metavar="CMD",
    help="The agent's command (default: the molecule's, else claude).",
)
@click.option("--memory", default="", shell_complete=memories, metavar="AGENT", help="Give it this agent's memory.")
@click.option("--only", multiple=True, metavar="GLOB", help="What is in scope: tells a scope sidecar; several times.")
@click.option("--not", "outside", multiple=True, metavar="GLOB", help="What is out of scope; several times.")
@click.option("--accept-scope", is_flag=True, help="Hold it to the paths that the issue's words allow or forbid.")
@click.option("--memory-high", callback=_limit, metavar="SIZE", help="From this memory on (3G) it is slowed down.")
@click.option("--memory-max", callback=_limit, metavar="SIZE", help="Memory (4G) that all its processes may use.")
@click.option("--pids-max", callback=_limit, metavar="N", help="How many processes and threads it may have.")
@click.option("--cpu-weight", callback=_limit, metavar="N", help="Its share of a busy processor; 100 is the usual one.")
@click.option(
    "--accept-folder", is_flag=True, help="Answer the client's question about the folder, for this folder only."
)
@click.option(
    "--worktree/--no-worktree", default=None, help="Give it a git worktree and a branch of its own, in this town."
)
@click.option("--branch", default="", metavar="NAME", help="The worktree's new branch (default: polecat/NAME-RUN).")
@click.option("--base", default="", metavar="REF", help="What the branch begins at (default: what is checked out).")
@click.option(
    "--env", "environment", multiple=True, callback=_environment, metavar="K=V", help="A variable for the agent."
)
@click.option(
    "--env-file",
    "environment_file",
    multiple=True,
    callback=_environment_file,
    metavar="FILE",
    help="Variables for the agent, NAME=VALUE a line; --env beats it.",
)
@click.option("--no-wait", is_flag=True, help="Do not wait until the agent shows a prompt, work or a dialog.")
@click.option("--no-witness", is_flag=True, help="Do not start the Witness; sidecars are not respawned then.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def spawn(
    name: str,
    rig: str,
    workdir: Path | None,
    molecule: str,
    sidecars: str | None,
    variables: dict[str, str],
    task: str,
    issue: str,
    agent: str | None,
    memory: str,
    only: tuple[str, ...],
    outside: tuple[str, ...],
    accept_scope: bool,
    accept_folder: bool,
    worktree: bool | None,
    branch: str,
    base: str,
    environment: dict[str, str],
    environment_file: dict[str, str],
    no_wait: bool,
    no_witness: bool,
    as_json: bool,
    **limits: tuple[int | None] | None,
) -> None:
    """Start a polecat NAME in its own tmux session, with its sidecars.

    It returns when the agent shows its prompt, works, waits at a dialog or has ended; after 10 s at the latest.
    """
    task = _task_text(task)
    if task and issue:
        raise UsageError("--task and --issue both say what is to be done: give one of them")
    if agent is not None and not agent.strip():
        raise UsageError("--agent is empty: name the agent's command, or leave the option out")
    from sidecars.observer.factory import prospects

    request = SpawnRequest(
        name,
        rig,
        workdir,
        molecule,
        sidecars,
        variables,
        task,
        agent or "",
        not no_witness,
        issue=issue,
        memory=memory,
        limits={name: value[0] for name, value in limits.items() if value is not None},
        memory_provider=memory_provider,
        check=prospects,
        accept_folder=accept_folder,
        ask_folder=None if as_json or not _at_terminal() else _ask_folder,
        worktree=worktree,
        branch=branch,
        base=base,
        environment={**environment_file, **environment},
    )
    with Witness(_town_for(workdir)) as witness:
        request = with_scope(witness, request, Scope(only, outside, accept_scope), asks=request.ask_folder is not None)
        with undone_when_told_to_end():
            spawned = witness.spawn_request(request)
        report_spawned(witness, spawned, no_wait=no_wait, as_json=as_json)


def report_spawned(witness: Witness, spawned: SpawnResult, *, no_wait: bool, as_json: bool) -> None:
    """Say that a polecat runs, and what its agent shows first.

    Raises:
        WitnessError: it has ended already.
    """
    tell_withheld(spawned.withheld)
    if spawned.accepted:
        click.echo(f"gt: accepted {spawned.accepted}", err=True)
    if not as_json:
        _tell_spawned(spawned)
    sight = None if no_wait else _first_sight(witness, spawned)
    if as_json:
        first = {"first": sight.as_json()} if sight else {}
        print_json({**spawned.as_json(), **first})
    elif sight:
        _tell_sight(spawned, sight)
    if sight and sight.saw is Sight.ENDED:
        raise WitnessError(f"{spawned.group.address} {sight.ended}: see gt peek {spawned.group.polecat}")


def _task_text(given: str) -> str:
    """The task that ``--task`` means: its own words, those of a file (``@FILE``) or of standard input (``-``).

    Raises:
        UsageError: it cannot be read, or is no text.
    """
    if given != "-" and not given.startswith("@"):
        return given
    try:
        if given == "-":
            data = sys.stdin.buffer.read(_LARGEST_TASK + 1)
        else:
            data = read_bytes(given[1:], _LARGEST_TASK, follow=True, owners=())
        if len(data) > _LARGEST_TASK:
            raise UsageError(f"--task {given}: larger than {_LARGEST_TASK} bytes: give it as --issue FILE")
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"--task {given}: not UTF-8 text") from error
    except FileNotFoundError as error:
        raise UsageError(f"--task {given}: no such file; words that begin with @ want a blank before it") from error
    except OSError as error:
        raise UsageError(f"--task {given}: {error}") from error
    if not text.strip() or "\0" in text:
        raise UsageError(f"--task {given}: {'holds a NUL character' if text.strip() else 'it is empty'}")
    return text


def _at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _ask_folder(dialog: FolderDialog) -> bool:
    brings = f" It brings {', '.join(dialog.brings)}, which {dialog.client} obeys then." if dialog.brings else ""
    click.echo(f"{dialog.client} will ask whether you trust {dialog.folder}.{brings}")
    return click.confirm(f"Record it now, for this folder only ({dialog.entry} in {dialog.path})?", default=False)


def _tell_spawned(spawned: SpawnResult) -> None:
    click.echo(f"{spawned.group.address} runs in session {spawned.session} (agent {spawned.agent.pid})")
    if spawned.channel.reason:
        click.echo(f"  channel {spawned.channel.channel}: {spawned.channel.reason}")
    if spawned.worktree:
        click.echo(f"  works in {spawned.worktree.path} (branch {spawned.worktree.branch})")
    click.echo(f"  watch it: gt attach {spawned.group.address}")
    for sidecar in spawned.sidecars:
        pid = sidecar.process.pid if sidecar.process else "-"
        click.echo(f"  {sidecar.name} {sidecar.state} ({pid})" + (f": {sidecar.note}" if sidecar.note else ""))
        if found := spawned.found.get(sidecar.name):
            click.echo(f"    holds it to {found}")
        if reason := spawned.mute.get(sidecar.name):
            click.echo(f"    it can never speak: {reason}")


def _first_sight(witness: Witness, spawned: SpawnResult) -> FirstSight | None:
    """What the agent shows first; None for a client whose screen nobody knows."""
    group = witness.journal.groups.get(spawned.group.run)
    if group is None or client_for(group.agent) is ANY:
        return None
    return first_sight(witness.town, witness.journal, group, spawned.agent)


def _tell_sight(spawned: SpawnResult, sight: FirstSight) -> None:
    """Say what the agent does now, and what a person has to do about it."""
    client, name = sight.client, spawned.group.polecat
    if sight.saw is Sight.DIALOG and sight.waiting:
        waits = PLACES.get(sight.waiting.reason, "waits")
        asks = f": {sight.waiting.question}" if sight.waiting.question else ""
        accept = ", or nuke it and spawn again with --accept-folder" if sight.waiting.reason == WaitsFor.TRUST else ""
        click.echo(f"  it {waits} of {client}{asks}")
        click.echo(f"  answer it: gt attach {name}{accept}")
    elif sight.saw is Sight.NOTHING:
        click.echo(f"  {client} has shown nothing known within {PATIENCE:.0f} s: gt peek {name} shows its screen")
    elif sight.saw is not Sight.ENDED:
        click.echo(f"  {client} {'works' if sight.saw is Sight.WORK else 'is at its prompt'}")


def _town_for(workdir: Path | None) -> Town:
    """The town that the caller stands in; outside of any, the one that the polecat is to work in."""
    try:
        return Town.find()
    except TownNotFoundError:
        if workdir is None:
            raise
        return Town.find(workdir)


def _leave(number: int, _: FrameType | None) -> NoReturn:
    # The clean-up takes a moment, and is not to be cut off by the same signal coming twice.
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


@contextmanager
def undone_when_told_to_end() -> Iterator[None]:
    """Turn TERM and HUP into an exception here, so that what was started half-way is ended as after Ctrl-C."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # nohup
            signal.signal(number, _leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
