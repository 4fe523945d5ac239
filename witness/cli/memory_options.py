"""What the commands about memory share: their options, the project, the session."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from witness.cli.context import open_journal, own_group
from witness.config.town import Town
from witness.errors import NotFoundError, UsageError
from witness.journal import GroupState
from witness.launch.spawn_request import MemoryContext
from witness.names import GroupId

if TYPE_CHECKING:
    from sidecars.memory.record import Sidecar
    from sidecars.memory.sessions import SessionId
    from sidecars.memory.store import MemoryStore
    from witness.journal.records import Usage

_F = TypeVar("_F", bound=Callable[..., Any])


def project_option(command: _F) -> _F:
    """``--project``: whose memories."""
    return click.option(
        "--project",
        type=click.Path(file_okay=False, path_type=Path),
        help="Project whose memories are meant; found from the working directory by default.",
    )(command)


def session_option(command: _F) -> _F:
    """``--session``: which session an addition belongs to."""
    return click.option(
        "--session", default="", help="Session that this belongs to; inside a polecat its own run by default."
    )(command)


def json_option(command: _F) -> _F:
    """``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def tell_costs(usage: Usage) -> None:
    """Say on stderr what a model's calls cost; nothing when there were none."""
    if not usage.calls:
        return
    sent = usage.input_tokens + usage.cached_tokens + usage.cache_written_tokens
    spent = f"{usage.calls} calls of {usage.model}, {sent} tokens in, {usage.output_tokens} out, ${usage.dollars:.4f}"
    click.echo(spent, err=True)


def open_store(project: Path | None) -> MemoryStore:
    """The memories of the project that is given, else of the one around the working directory."""
    from sidecars.memory.paths import ROOT_VARIABLES, find_root
    from sidecars.memory.store import MemoryStore

    if project is not None:
        return MemoryStore(project.absolute())
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was deleted under us: what the environment names still stands
        here = Path("/")
        if not any(os.environ.get(name) for name in ROOT_VARIABLES):
            raise UsageError("the working directory is gone: say which --project is meant") from None
    return MemoryStore(find_root(here))


def which_session(store: MemoryStore, agent: str, given: str, *, fresh: bool = False) -> SessionId:
    """The session that is meant: the one given, the environment's, the polecat's own run, else the one by hand."""
    from sidecars.memory.paths import SESSION_VARIABLE
    from sidecars.memory.sessions import SessionId, manual_session

    given = given or os.environ.get(SESSION_VARIABLE, "")
    if given:
        return SessionId(given)
    group = own_group()
    return SessionId.of_group(group) if group else manual_session(store, agent, fresh=fresh)


def known(store: MemoryStore, agent: str) -> Sidecar:
    """The agent's memory.

    Raises:
        NotFoundError: it has none.
    """
    if not store.exists(agent):
        raise NotFoundError("agent memory", agent, f"'gt memory init {agent}' makes an empty one")
    return store.read(agent)


# The memory of `sidecars.memory`, as a spawn asks for one.


def memory_provider(agent: str, group: GroupId, workdir: Path, task: str) -> MemoryContext:
    """Begin a session of an agent's memory for a polecat; see ``witness.launch.spawn_request.Remember``.

    Raises:
        UsageError: the agent's name is not usable.
        WitnessError: the memory is out of reach.
    """
    from sidecars.memory.paths import check_agent, find_root
    from sidecars.memory.sessions import briefing, environment, with_memory_hooks

    check_agent(agent)
    root = find_root(workdir)

    def with_hooks(settings: Mapping[str, Any]) -> Mapping[str, Any]:
        return with_memory_hooks(settings, agent)

    with open_journal(Town.find(workdir)) as journal:

        def is_over(run: str) -> bool:
            known = journal.groups.get(run)
            return known is not None and known.state is GroupState.NUKED

        told = briefing(root, agent, task, group=group, is_over=is_over)
    return MemoryContext(told, environment(root, agent), with_hooks)
