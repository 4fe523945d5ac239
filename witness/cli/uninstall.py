"""``gt uninstall``: a town without us."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from witness.agents import hook_settings
from witness.api import Witness
from witness.cli.context import ask_for_force
from witness.config.keys import user_key_file
from witness.config.town import Town
from witness.daemon import service_units
from witness.doctor.prerequisites import settings_files
from witness.doctor.runtime import remove_dead_socket
from witness.errors import UsageError, WitnessError


@click.command
@click.option("--yes", is_flag=True, help="Do it without asking.")
@click.option("--force", is_flag=True, help="Also from inside a polecat.")
def uninstall(yes: bool, force: bool) -> None:
    """End this town's polecats and its Witness, and take away all that we have put anywhere for it.

    What people wrote stays, and is named: town.yaml, settings, memories, the key.
    """
    town = Town.find()
    with Witness(town) as witness:
        ask_for_force(witness.journal, force=force)
        groups = [group for group, _ in witness.polecats()]
        names = ", ".join(group.id.address for group in groups) or "no polecat"
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError(f"it would end {names} and remove {town.runtime}: say --yes")
            click.confirm(f"End {names} and remove {town.runtime}?", abort=True)
        survivors = [each for ended in witness.end(groups) for each in ended.as_json()["survivors"]]
        witness.stop()
    if survivors:
        raise WitnessError(f"still alive, so nothing was removed: {survivors}")
    for line in (*_hooks(town), *service_units.remove(town), *_folders(town)):
        click.echo(f"removed: {line}")
    for path in (town.root / "town.yaml", town.root / "settings", town.root / ".gt", user_key_file()):
        if path.exists():
            click.echo(f"kept: {path}")
    click.echo("the program itself: pipx uninstall gt-witness, or uv tool uninstall, or pip uninstall")


def _hooks(town: Town) -> list[str]:
    """The settings files of clients that held our hooks."""
    return [str(path) for path in settings_files(town, os.environ) if path.exists() and hook_settings.uninstall(path)]


def _folders(town: Town) -> list[Path]:
    """The town's files and, once no session of it is left, the socket that tmux leaves of its server."""
    shutil.rmtree(town.own_folder)
    return [town.own_folder, *remove_dead_socket(town, os.environ)]
