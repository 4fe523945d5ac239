"""``gt memory``: what an agent remembers from session to session."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witness.cli import memory_admin as people
from witness.cli import memory_versions as versions
from witness.cli.completion import memories
from witness.cli.context import open_journal, print_json
from witness.cli.memory_options import (
    json_option,
    known,
    open_store,
    project_option,
    session_option,
    tell_costs,
    which_session,
)
from witness.errors import UsageError, WitnessError

if TYPE_CHECKING:
    from sidecars.memory.store import MemoryStore

_TYPES = ("observation", "preference", "context", "decision")
_BASES = ("explicit", "unchallenged", "observed", "inferred")
_KINDS = ("agrees_with", "disagrees_with", "complements")


@click.group()
def memory() -> None:
    """What an agent remembers from session to session."""


@memory.command()
@click.argument("agent", shell_complete=memories)
@project_option
def init(agent: str, project: Path | None) -> None:
    """Make an empty memory for AGENT; one that exists is left as it is."""
    store = open_store(project)
    store.fold(agent)
    click.echo(f"{store.place(agent).file}", err=True)


@memory.command()
@click.argument("agent", shell_complete=memories)
@click.option("--task", default="", help="What the session is about: decides which memories are told.")
@click.option("--target", default="", help="Polecat to tell it to, in its running session; printed otherwise.")
@session_option
@project_option
@json_option
def load(*, agent: str, task: str, target: str, session: str, project: Path | None, as_json: bool) -> None:
    """Begin a session of AGENT and print what it is told of its memory."""
    from sidecars.memory.briefing import polecat_briefing
    from sidecars.memory.sessions import load as load_session

    store = open_store(project)
    if target:
        _tell(store, agent, target, task)
        return
    chosen = which_session(store, agent, session, fresh=True)
    loaded = load_session(store, agent, chosen)
    text = polecat_briefing(loaded, task)
    if as_json:
        print_json({"agent": agent, "session": chosen.name, "memories": len(loaded.memories), "briefing": text})
    else:
        click.echo(text)


def _tell(store: MemoryStore, agent: str, target: str, task: str) -> None:
    from sidecars.memory.briefing import polecat_briefing
    from sidecars.memory.sessions import SessionId
    from sidecars.memory.sessions import load as load_session
    from witness.clock import SystemClock
    from witness.config.town import Town
    from witness.delivery.nudge_queue import Nudge, NudgeQueue

    town = Town.find()
    with open_journal(town) as journal:
        group = journal.groups.find(target)
    loaded = load_session(store, agent, SessionId.of_group(group.id))
    # The same way into a running session as every other line: the hooks hand it over at its next step. A second
    # telling replaces one that still waits.
    queue = NudgeQueue(town.queue_dir(group.session), SystemClock())
    queue.withdraw("memory", agent)
    queue.enqueue(Nudge("memory", polecat_briefing(loaded, task), kind="memory", thread_id=agent))
    click.echo(f"told to {group.id.address} at its next step", err=True)


@memory.command()
@click.argument("agent", shell_complete=memories)
@click.argument("content")
@click.option("--type", "kind", type=click.Choice(_TYPES), default="observation", show_default=True)
@click.option("--basis", type=click.Choice(_BASES), default="observed", show_default=True, help="What it rests on.")
@click.option("--evidence", default="", help="Where it was seen.")
@click.option("--tag", "tags", multiple=True)
@session_option
@project_option
@json_option
def add(
    *,
    agent: str,
    content: str,
    kind: str,
    basis: str,
    evidence: str,
    tags: tuple[str, ...],
    session: str,
    project: Path | None,
    as_json: bool,
) -> None:
    """Remember CONTENT, one fact of about 100 characters; what is known already is reinforced."""
    store = open_store(project)
    data = {"content": content, "type": kind, "basis": basis, "evidence": evidence, "tags": list(tags)}
    applied = store.change(agent, "add", which_session(store, agent, session).name, data)
    assert applied.memory is not None  # noqa: S101
    if as_json:
        print_json({"id": applied.memory.id, "confidence": applied.memory.confidence, "note": applied.note})
    else:
        click.echo(f"{applied.memory.id} {applied.note}")


@memory.command()
@click.argument("agent", shell_complete=memories)
@click.argument("ids", nargs=-1, required=True)
@session_option
@project_option
def use(agent: str, ids: tuple[str, ...], session: str, project: Path | None) -> None:
    """Say that memories IDS were used again and held: each gains confidence, once a session."""
    store = open_store(project)
    known(store, agent)
    name = which_session(store, agent, session).name
    for given in ids:
        applied = store.change(agent, "use", name, {"id": given})
        assert applied.memory is not None  # noqa: S101
        click.echo(f"{applied.memory.id} {applied.memory.confidence:g}")


@memory.command()
@click.argument("agent", shell_complete=memories)
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("other")
@session_option
@project_option
def relate(agent: str, kind: str, other: str, session: str, project: Path | None) -> None:
    """Note that AGENT agreed with, disagreed with or complemented OTHER; twice makes a relationship."""
    store = open_store(project)
    name = which_session(store, agent, session).name
    click.echo(store.change(agent, "relate", name, {"kind": kind, "other": other}).note)


@memory.command()
@click.argument("agent", shell_complete=memories)
@click.option("--fold-only", is_flag=True, help="Put the journal into the file; the session goes on.")
@click.option(
    "--transcript",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="Let a model look for observations in this transcript; this allows it, nothing else does.",
)
@session_option
@project_option
@json_option
def save(
    *, agent: str, fold_only: bool, transcript: Path | None, session: str, project: Path | None, as_json: bool
) -> None:
    """End AGENT's session: count it, let unused memories fade, write the file."""
    from sidecars.memory.sessions import Gains
    from sidecars.memory.sessions import save as save_session

    store = open_store(project)
    known(store, agent)
    if fold_only:
        saved, refused = store.fold(agent), tuple[str, ...]()
    else:
        gains = _learned(store, agent, transcript) if transcript else Gains()
        result = save_session(store, agent, which_session(store, agent, session), gains)
        saved, refused = result.sidecar, result.refused
    for line in refused:
        click.echo(f"left out: {line}", err=True)
    if as_json:
        print_json(
            {
                "agent": agent,
                "sessions_participated": saved.sessions_participated,
                "memories": len(saved.memories),
                "refused": list(refused),
            }
        )
    else:
        click.echo(f"{agent}: {saved.sessions_participated} sessions, {len(saved.memories)} memories")


def _learned(store: MemoryStore, agent: str, transcript: Path) -> Any:
    from sidecars.memory.learn import learn
    from sidecars.memory.model import model_for

    model = model_for(Path.cwd())
    try:
        return learn(store.read(agent), transcript, model)
    finally:
        tell_costs(model.usage)
        model.close()


@memory.command(hidden=True)
@click.argument("agent", shell_complete=memories)
@project_option
def hook(agent: str, project: Path | None) -> None:
    """What the client's SessionStart, PreCompact and SessionEnd run; their JSON comes on stdin."""
    from sidecars.memory.sessions import on_event

    try:
        event = json.loads(sys.stdin.read())
        if not isinstance(event, dict):
            raise ValueError("it is not a JSON object")
        store = open_store(project)
        told = on_event(store, agent, which_session(store, agent, ""), event)
    except ValueError as error:
        raise WitnessError(f"stdin is no event of a client: {error}") from error
    except UsageError as error:
        # Exit code 2 would tell the client to block what it was about to do.
        raise WitnessError(str(error)) from error
    if told:
        click.echo(told)


for _command in (
    people.list_agents,
    people.show,
    people.forget,
    people.restore,
    people.export,
    people.import_file,
    people.explain,
    people.lint,
    versions.merge,
    versions.git_setup,
):
    memory.add_command(_command)
