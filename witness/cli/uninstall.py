"""``gt uninstall``: a town without us."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator

import click

from witness.agents import client_extensions, hook_settings
from witness.agents.clients import claude_home
from witness.api import Witness
from witness.cli.context import ask_for_force
from witness.config.keys import user_key_file
from witness.config.town import Town
from witness.daemon import service_units
from witness.doctor.prerequisites import settings_files
from witness.doctor.runtime import remove_dead_socket
from witness.errors import UsageError, WitnessError
from witness.worktrees.place import worktrees_dir


@click.command
@click.option("--yes", is_flag=True, help="Do it without asking.")
@click.option("--force", is_flag=True, help="Also from inside a polecat.")
def uninstall(yes: bool, force: bool) -> None:
    """End this town's polecats and its Witness, and take away all that we have put anywhere for it.

    What people wrote stays, and is named: town.yaml, settings, memories, the key.
    """
    town = Town.find()
    _end(town, yes=yes, force=force)
    faults: list[str] = []
    told = [
        *_hooks(town, faults),
        *_plugin(faults),
        *(f"removed: {path}" for path in service_units.remove(town)),
        *_worktrees(town),
        *_folders(town),
    ]
    for line in told or [f"nothing of ours is left in {town.root}"]:
        click.echo(line)
    for path in (town.root / "town.yaml", town.root / "settings", town.root / ".gt", user_key_file()):
        if path.exists():
            click.echo(f"kept: {path}")
    click.echo("the program itself: pipx uninstall gt-witness, or uv tool uninstall, or pip uninstall")
    if faults:
        raise WitnessError("; ".join(faults))


def _end(town: Town, *, yes: bool, force: bool) -> None:
    """End the polecats and the Witness of a town, after asking.

    Raises:
        UsageError: nobody can be asked, or the caller is in a polecat.
        WitnessError: something survived.
    """
    if not town.runtime.exists():
        _ask("no polecat", town, yes=yes)
        return
    with Witness(town) as witness:
        ask_for_force(witness.journal, force=force)
        groups = [group for group, _ in witness.polecats()]
        _ask(", ".join(group.id.address for group in groups) or "no polecat", town, yes=yes)
        survivors = [each for ended in witness.end(groups) for each in ended.as_json()["survivors"]]
        witness.stop()
        witness.worktrees.prune()
    if survivors:
        raise WitnessError(f"still alive, so nothing was removed: {survivors}")


def _ask(names: str, town: Town, *, yes: bool) -> None:
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"it would end {names} and remove {town.runtime}: say --yes")
        click.confirm(f"End {names} and remove {town.runtime}?", abort=True)


def _hooks(town: Town, faults: list[str]) -> Iterator[str]:
    """Take our hooks out of the clients' settings; a file that cannot be read is a fault, and keeps nothing else here.

    Args:
        town: the town.
        faults: takes what could not be done.
    """
    for path in settings_files(town, os.environ):
        try:
            if path.exists() and hook_settings.uninstall(path):
                yield f"removed: our hooks in {path}, which other towns of yours may want: gt hooks install"
        except (WitnessError, OSError) as error:
            faults.append(f"our hooks may still be in {path}: {error}")


def _plugin(faults: list[str]) -> Iterator[str]:
    """What is left of our plugin in Claude Code; it is the client that installs and removes it.

    Args:
        faults: takes what could not be done.
    """
    home = claude_home(os.environ)
    if client_extensions.plugin_installed(home):
        yield "kept: our plugin in Claude Code, for other towns: claude plugin uninstall gt-witness@gt-witness"
    try:
        yield from (f"removed: {what}" for what in client_extensions.clear_plugin(home))
    except OSError as error:
        faults.append(f"what the client has left of our plugin is still there: {error}")


def _worktrees(town: Town) -> Iterator[str]:
    """The worktrees that hold work stay, whatever else goes; the record of them goes with the journal."""
    top = worktrees_dir(town)
    if not top.is_dir() or top.is_symlink():
        return
    kept = [each for rig in sorted(top.iterdir()) if rig.is_dir() and rig.name != ".removed" for each in rig.iterdir()]
    for each in kept:
        yield f"kept: {each}, for it holds work: git -C {shlex.quote(str(each))} status"
    if not kept:
        shutil.rmtree(top)
        yield f"removed: {top}"


def _folders(town: Town) -> Iterator[str]:
    """Take away the folders in which only we write, and, once no session is left, tmux's socket of the town.

    What somebody else has put beside them stays, and so does what a link leads to.
    """
    shared = town.runtime.parent
    if shared.is_symlink():
        yield f"kept: {shared}: a link, and what it leads to may be somebody's: take it away yourself"
    else:
        # A Gas Town's queues are its own, and so is the rest of the folder.
        for path in (town.runtime,) if town.gastown else (town.runtime, town.queue_dir("any").parent):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
                yield f"removed: {path}"
        if town.own_folder == shared and shared.is_dir():
            others = sorted(each.name for each in shared.iterdir() if each.name != ".gitignore")
            if others:
                yield f"kept: {shared}, for it holds what is not ours: {', '.join(others[:5])}"
            else:
                shutil.rmtree(shared)
                yield f"removed: {shared}"
    yield from (f"removed: {path}" for path in remove_dead_socket(town, os.environ))
