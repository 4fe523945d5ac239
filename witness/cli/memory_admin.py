"""The part of ``gt memory`` that is for people: look, forget, move, explain, check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witness.cli.completion import memories
from witness.cli.context import print_json
from witness.cli.memory_options import json_option, known, open_store, project_option, session_option, which_session
from witness.cli.tables import write_table
from witness.errors import DeclarationError, NotFoundError, Problem, UsageError
from witness.files import read_project

if TYPE_CHECKING:
    from sidecars.memory.record import Memory, Sidecar
    from sidecars.memory.store import MemoryStore


@click.command("list")
@project_option
@json_option
def list_agents(project: Path | None, as_json: bool) -> None:
    """Who has a memory in this project."""
    from sidecars.memory.store import MemoryConflictError

    store = open_store(project)
    rows = []
    for agent in store.agents():
        try:
            sidecar = store.read(agent)
        except MemoryConflictError as error:
            click.echo(str(error), err=True)
            continue
        rows.append(
            {
                "agent": agent,
                "memories": len(sidecar.memories),
                "sessions": sidecar.sessions_participated,
                "last_updated": sidecar.last_updated,
            }
        )
    if as_json:
        print_json(rows)
    else:
        cells = [[str(value) for value in row.values()] for row in rows]
        _table(("agent", "memories", "sessions", "last updated"), cells)


@click.command()
@click.argument("agent", shell_complete=memories)
@click.option("--archive", is_flag=True, help="What the memory no longer holds, and why.")
@click.option("--query", default="", help="With --archive: only what holds all these words.")
@project_option
@json_option
def show(*, agent: str, archive: bool, query: str, project: Path | None, as_json: bool) -> None:
    """Print AGENT's memory as a table."""
    from sidecars.memory.briefing import rank
    from sidecars.memory.record import RELATIONSHIPS, sidecar_to_json

    if query and not archive:
        raise UsageError("--query looks through the archive: say --archive with it")
    store = open_store(project)
    sidecar = known(store, agent)
    if archive:
        _show_archive(store, agent, query, as_json=as_json)
        return
    if as_json:
        print_json(sidecar_to_json(sidecar))
        return
    click.echo(f"{sidecar.display_name}: {sidecar.sessions_participated} sessions, last {sidecar.last_updated}")
    rows = [_memory_row(each.memory) for each in rank(sidecar)]
    _table(("id", "type", "conf.", "content", "from"), rows)
    for kind, names in sidecar.relationships.items():
        if names and kind in RELATIONSHIPS:
            click.echo(f"{kind.replace('_', ' ')}: {', '.join(names)}")
    _table(
        ("decision", "role", "outcome", "position"),
        [[entry.dr_id, entry.role, entry.outcome, entry.position] for entry in sidecar.decision_history],
    )


def _show_archive(store: MemoryStore, agent: str, query: str, *, as_json: bool) -> None:
    from sidecars.memory.archive import view

    found = store.archived(agent, query)
    if as_json:
        print_json([view(each) for each in found])
        return
    rows = [[each.memory.id, each.memory.type, each.memory.content, each.why, each.at[:10]] for each in found]
    _table(("id", "type", "content", "why", "since"), rows)
    click.echo(f"{len(found)} in the archive: 'gt memory restore {agent} ID' brings one back", err=True)


def _memory_row(memory: Memory) -> list[str]:
    return [memory.id, memory.type, f"{memory.confidence:.2f}", memory.content, memory.source_session[:24]]


def _table(heads: tuple[str, ...], rows: list[list[str]]) -> None:
    if rows:
        write_table(heads, rows)


@click.command()
@click.argument("agent", shell_complete=memories)
@click.argument("ids", nargs=-1)
@click.option("--query", default="", help="Forget every memory that holds all these words.")
@click.option("--undo", is_flag=True, help="Bring back what was forgotten last.")
@click.option("--purge", is_flag=True, help="Keep nothing of it for --undo.")
@session_option
@project_option
@json_option
def forget(
    *,
    agent: str,
    ids: tuple[str, ...],
    query: str,
    undo: bool,
    purge: bool,
    session: str,
    project: Path | None,
    as_json: bool,
) -> None:
    """Forget memories IDS, or those that --query finds."""
    from sidecars.memory.briefing import matching
    from sidecars.memory.operations import find_memory

    if bool(ids) + bool(query) + undo != 1:
        raise UsageError("say which memories to forget: their ids, or --query, or --undo")
    store = open_store(project)
    sidecar = known(store, agent)
    name = which_session(store, agent, session).name
    gone: list[Memory] = []
    if undo:
        note = store.change(agent, "restore", name).note
    else:
        archived = _of_archive(store, agent, sidecar, ids, query) if purge else []
        live = [each for each in ids if all(each != other.id for other in archived)]
        chosen = [find_memory(sidecar, each) for each in live] if ids else list(matching(sidecar, query))
        gone = [*chosen, *archived]
        if not gone:
            raise NotFoundError("memory", query, f"'gt memory show {agent}' lists them all")
        data = {"ids": [each.id for each in chosen], "purge": purge, "archived": [each.id for each in archived]}
        note = store.change(agent, "forget", name, data).note
        if archived:
            note += f", {len(archived)} taken out of the archive"
    # At once: what somebody wants forgotten should not stand in a file until the session ends.
    store.fold(agent)
    if purge:
        store.purge_archive(agent, gone)
    if as_json:
        print_json({"agent": agent, "forgotten": [each.id for each in gone], "note": note})
    else:
        for each in gone:
            click.echo(f"forgot {each.id} {each.content}", err=True)
        click.echo(note)


def _of_archive(store: MemoryStore, agent: str, sidecar: Sidecar, ids: tuple[str, ...], query: str) -> list[Memory]:
    """What of the archive is meant: by its full id where no living memory has it, or by the query."""
    living = {memory.id for memory in sidecar.memories}
    found = store.archived(agent, query)
    return [each.memory for each in found if query or (each.memory.id in ids and each.memory.id not in living)]


@click.command()
@click.argument("agent", shell_complete=memories)
@click.argument("ids", nargs=-1)
@click.option("--query", default="", help="Restore every archived memory that holds all these words.")
@session_option
@project_option
@json_option
def restore(*, agent: str, ids: tuple[str, ...], query: str, session: str, project: Path | None, as_json: bool) -> None:
    """Bring memories IDS back from the archive, or those that --query finds."""
    from sidecars.memory.archive import find
    from sidecars.memory.operations import MEMORY_CAP
    from sidecars.memory.record import memory_to_json

    if bool(ids) == bool(query):
        raise UsageError("say which memories to restore: their ids, or --query")
    store = open_store(project)
    known(store, agent)
    archive = store.archived(agent, query)
    chosen = [each.memory for each in (archive if query else (find(archive, given) for given in ids))]
    if not chosen:
        raise NotFoundError("memory in the archive", query, f"'gt memory show {agent} --archive' lists them all")
    if len(chosen) > MEMORY_CAP:
        raise UsageError(f"{len(chosen)} were found, and {MEMORY_CAP} are kept in all: say more exactly which")
    data = {"memories": [memory_to_json(each) for each in chosen]}
    note = store.change(agent, "restore", which_session(store, agent, session).name, data).note
    store.fold(agent)
    if as_json:
        print_json({"agent": agent, "restored": [each.id for each in chosen], "note": note})
    else:
        click.echo(note)


@click.command()
@click.argument("agent", shell_complete=memories)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option("--client", is_flag=True, help="Into the client's own file, .claude/agent-memory/AGENT/MEMORY.md.")
@project_option
def export(*, agent: str, file: Path | None, client: bool, project: Path | None) -> None:
    """Write AGENT's memory, in the shared format and without our bookkeeping, to FILE or stdout."""
    from sidecars.memory.bridges import write_client
    from sidecars.memory.record import BOOKKEEPING_KEY, sidecar_to_json

    if client:
        store = open_store(project)
        try:
            click.echo(str(write_client(store.root, known(store, agent))), err=True)
        except OSError as error:
            raise UsageError(f"{store.root}: {error.strerror or error}") from error
        return
    content = sidecar_to_json(known(open_store(project), agent))
    content.pop(BOOKKEEPING_KEY)
    if file is None:
        print_json(content)
        return
    try:
        file.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error


@click.command("import")
@click.argument("agent", shell_complete=memories)
@click.argument("file", type=click.Path(exists=True, path_type=Path), required=False)
@click.option("--client", is_flag=True, help="What the client (Claude Code) remembers of the project, instead.")
@session_option
@project_option
def import_file(*, agent: str, file: Path | None, client: bool, session: str, project: Path | None) -> None:
    """Take the memories of FILE (a memory file, a list in JSON, markdown, or a folder of it) into AGENT's."""
    from sidecars.memory.bridges import client_folders, folder_memories
    from sidecars.memory.lenient_reader import read_import
    from sidecars.memory.paths import check_agent

    if bool(file) == client:
        raise UsageError("say which file or folder to import, or --client")
    store = open_store(project)
    folders = client_folders(store.root, check_agent(agent)) if client else tuple(filter(None, (file,)))
    if not folders:
        raise NotFoundError("memory of the client", agent, f"Claude Code remembers nothing of {store.root}")
    data: dict[str, Any] = {"memories": []}
    try:
        for path in folders:
            if path.is_file():
                data = read_import(read_project(path))
                continue
            found, left = folder_memories(path)
            data["memories"] += found
            for name in left:
                click.echo(f"{path}: {name} is no markdown: not imported", err=True)
    except ValueError as error:
        raise UsageError(f"{file}: {error}") from error
    if not any(data.values()):
        raise UsageError(f"{folders[0]}: nothing in it is a memory")
    applied = store.change(agent, "merge", which_session(store, agent, session).name, data)
    for line in applied.refused:
        click.echo(f"{folders[0]}: {line}", err=True)
    store.fold(agent)
    click.echo(applied.note)


@click.command()
@click.argument("agent", shell_complete=memories)
@click.argument("given", metavar="[ID]", required=False)
@click.option("--task", default="", help="Rank as for this task.")
@project_option
@json_option
def explain(agent: str, given: str | None, task: str, project: Path | None, as_json: bool) -> None:
    """Say where each memory came from and why it ranks where it does."""
    from sidecars.memory.briefing import explained
    from sidecars.memory.operations import find_memory

    sidecar = known(open_store(project), agent)
    views = explained(sidecar, task)
    if given:
        chosen = find_memory(sidecar, given).id
        views = [view for view in views if view["id"] == chosen]
    if as_json:
        print_json(views)
        return
    for view in views:
        click.echo("\n".join(view["lines"]) + "\n")


@click.command()
@click.argument("targets", nargs=-1, metavar="[AGENT|FILE]...")
@project_option
@json_option
def lint(targets: tuple[str, ...], project: Path | None, as_json: bool) -> None:
    """Check memory files against the published format; all of the project by default."""
    from sidecars.memory.lint import lint as check

    store = open_store(project)
    errors: list[Problem] = []
    warnings: list[Problem] = []
    checked = 0
    for target in targets or tuple(store.agents()):
        is_file = target.endswith(".json") or "/" in target
        path = Path(target) if is_file else store.place(target).file
        try:
            data = read_project(path)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
        found = check(data, str(path), path.name.removesuffix(".sidecar.json") if not is_file else "")
        errors += found.errors
        warnings += found.warnings
        checked += 1
    if as_json:
        print_json(
            [
                {"file": problem.file, "key": problem.key, "severity": severity, "message": problem.message}
                for severity, problems in (("error", errors), ("warning", warnings))
                for problem in problems
            ]
        )
    else:
        for problem in warnings:
            click.echo(f"warning: {problem}", err=True)
    if errors:
        raise DeclarationError(errors)
    click.echo(f"{checked} checked, {len(warnings)} warning(s)", err=True)
