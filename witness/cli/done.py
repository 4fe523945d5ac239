"""``gt done``: inside a polecat, the work is finished."""

from __future__ import annotations

import click

from witness.cli.context import own_group
from witness.errors import UsageError
from witness.patrol.witness import Witness
from witness.town import Town


@click.command()
@click.option(
    "--status",
    type=click.Choice(["COMPLETED", "ESCALATED", "DEFERRED"], case_sensitive=False),
    default="COMPLETED",
    help="How the work ended.",
)
def done(status: str) -> None:
    """Say that this polecat's work is finished: the Witness ends it with all its sidecars.

    Returns at once; the end comes a moment later, from outside.
    """
    group = own_group()
    if group is None:
        raise UsageError("gt done is for polecats: GT_WITNESS_GROUP is not set here")
    with Witness(Town.find()) as witness:
        witness.done(group, status.upper())
    click.echo(f"{group.address}: {status.upper()}; the Witness ends this group")
