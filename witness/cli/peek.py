"""``gt peek``: read a polecat's pane."""

from __future__ import annotations

import click

from witness.cli.context import find_group, open_journal
from witness.config.town import Town
from witness.errors import NotFoundError
from witness.tmux import Tmux


@click.command(epilog="Examples:\n\n  gt peek toast\n\n  gt peek main/toast -n 20")
@click.argument("target")
@click.argument("count", type=click.IntRange(1, 50_000), required=False)
@click.option("-n", "--lines", type=click.IntRange(1, 50_000), default=100, show_default=True, help="How many lines.")
def peek(target: str, count: int | None, lines: int) -> None:
    """Print the last lines of a polecat's pane; nothing is sent to it.

    TARGET is name, rig/name, rig/polecats/name or a session.
    """
    town = Town.find()
    session = session_of(town, target)
    # tmux gives the history and the whole screen besides: so many lines are the last ones of both.
    click.echo(Tmux(town.socket).capture(session, count or lines))


def session_of(town: Town, target: str) -> str:
    """The session that TARGET means: a polecat's, or one that simply stands on the town's tmux socket.

    Raises:
        NotFoundError: there is none of that name.
    """
    with open_journal(town) as journal:
        try:
            return find_group(journal, target).session
        except NotFoundError:
            if "/" not in target and Tmux(town.socket).has_session(target):
                return target
            raise
