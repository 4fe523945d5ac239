"""``gt init``: make a standalone town."""

from __future__ import annotations

import os
from pathlib import Path

import click

from witness.cli.context import print_json
from witness.config.town import Town
from witness.errors import TownNotFoundError


@click.command
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=Path())
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def init(directory: Path, as_json: bool) -> None:
    """Make DIRECTORY (default: this one) a town of its own, for use without Gas Town.

    \b
    Example:
      gt init ~/town && cd ~/town && gt polecat spawn toast --sidecars scope
    """
    place = Path(os.path.abspath(directory.expanduser()))  # noqa: PTH100 - links stay as they were written
    existed = Town.is_town(place)
    if not existed:
        _refuse_inside_another(place)
    town = Town.init(place)
    if as_json:
        print_json({"town": str(town.root), "made": not existed, "gastown": town.gastown, "socket": town.socket})
        return
    kind = "a Gas Town" if town.gastown else "a town"
    click.echo(f"{town.root} is {kind} already" if existed else f"made a town at {town.root}")
    if not existed:
        click.echo(
            "next: gt polecat spawn NAME --sidecars conventions --task '…'  ('gt doctor' says what is missing)",
            err=True,
        )


def _refuse_inside_another(place: Path) -> None:
    """A town within a town would never be found: the outermost one wins."""
    try:
        outer = Town.find(place, environ={})
    except TownNotFoundError:
        return
    if outer.gastown:
        # To the real gt, 'gt init' in a Gas Town means something: make this repository a rig.
        raise click.UsageError(f"{place} lies in the Gas Town {outer.root}, which is a town already: work there")
