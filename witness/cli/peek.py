"""``gt peek``: read a polecat's pane."""

from __future__ import annotations

import click

from witness.api.messages import screen
from witness.cli.context import open_journal
from witness.config.town import Town
from witness.errors import NotFoundError
from witness.journal import GroupState, Journal
from witness.state.ended import ended_state


@click.command(epilog="Examples:\n\n  gt peek toast\n\n  gt peek main/toast -n 20")
@click.argument("target")
@click.argument("count", type=click.IntRange(1, 50_000), required=False)
@click.option("-n", "--lines", type=click.IntRange(1, 50_000), default=100, show_default=True, help="How many lines.")
def peek(target: str, count: int | None, lines: int) -> None:
    """Print the last lines of a polecat's pane, or of its last screen when it has ended; nothing is sent to it.

    TARGET is name, rig/name, rig/polecats/name or a session.
    """
    town = Town.find()
    with open_journal(town) as journal:
        click.echo(screen(town, journal, target, count or lines))
        if how := _how_it_ended(town, journal, target):
            click.echo(f"gt: {how}", err=True)


def _how_it_ended(town: Town, journal: Journal, target: str) -> str:
    try:
        group = journal.groups.find(target, ended=True)
    except NotFoundError:  # a session that is none of ours
        return ""
    if group.state is not GroupState.NUKED:
        return ""
    return f"{group.id.address} {ended_state(town, journal, group).sentence}"
