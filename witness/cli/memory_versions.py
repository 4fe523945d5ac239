"""``gt memory merge`` and ``gt memory git-setup``: memories that git versions."""

from __future__ import annotations

from pathlib import Path

import click

from witness.cli.completion import memories
from witness.cli.memory_options import open_store, project_option
from witness.errors import NotFoundError, UsageError, WitnessError
from witness.files import read_project, replace_file

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("agent", shell_complete=memories, required=False, default="")
@click.option(
    "--files",
    type=(_FILE, _FILE, _FILE),
    metavar="BASE OURS THEIRS",
    help="Join these three files into OURS instead, as git runs its merge drivers.",
)
@click.option("--name", default="", help="With --files: what the file is called in the project.")
@project_option
def merge(*, agent: str, files: tuple[Path, Path, Path] | None, name: str, project: Path | None) -> None:
    """Join both sides of a merge by the memories' ids: in AGENT's file with git's conflict marks, or of --files."""
    if bool(agent) == bool(files):
        raise UsageError("say whose memory has conflict marks, or --files BASE OURS THEIRS")
    if files:
        _merge_files(files, name)
        return
    store = open_store(project)
    place = store.place(agent)
    if not place.file.exists():
        raise NotFoundError("agent memory", agent, "'gt memory list' shows who has one")
    kept = store.join_conflict(agent)
    click.echo(f"{agent}: no conflict marks, nothing to join" if kept is None else f"{agent}: both sides joined")
    if kept is not None:
        click.echo(f"as it was: {kept.name}", err=True)


def _merge_files(files: tuple[Path, Path, Path], name: str) -> None:
    from sidecars.memory.paths import SUFFIX
    from sidecars.memory.record import iso
    from sidecars.memory.versions import join_files
    from witness.clock import SystemClock

    shown = name or str(files[1])
    try:
        base, ours, theirs = (read_project(path) for path in files)
        agent = Path(shown).name.removesuffix(SUFFIX)
        joined = join_files(base, ours, theirs, agent, iso(SystemClock().wall()))
        replace_file(files[1], joined, mode=files[1].stat().st_mode & 0o777)
    except ValueError as error:
        # OURS stands as it was and git marks the path as in conflict: nobody's side is lost.
        raise WitnessError(f"{shown}: not joined: {error}") from error
    except OSError as error:
        raise WitnessError(f"{shown}: {error.strerror or error}") from error


@click.command("git-setup")
@click.argument("agents", nargs=-1, metavar="[AGENT]...", shell_complete=memories)
@project_option
def git_setup(agents: tuple[str, ...], project: Path | None) -> None:
    """Let git version the memories of AGENTS (of all, when none is named) and join them with 'gt memory merge'."""
    from sidecars.memory.paths import check_agent
    from sidecars.memory.versions import set_up

    store = open_store(project)
    names = [check_agent(agent) for agent in agents] or store.agents()
    if not names:
        raise UsageError("nobody has a memory here: 'gt memory init AGENT' makes one")
    done = set_up(store.root, names)
    click.echo(f"git sees the memories of {', '.join(done.shown)} and joins them by id in this clone")
    click.echo(f"commit {done.attributes.parent}; each other clone runs 'gt memory git-setup' once", err=True)
