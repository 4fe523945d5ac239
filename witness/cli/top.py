"""``gt top``: everybody at a glance, live."""

from __future__ import annotations

import sys

import click

from witness.config.town import Town
from witness.errors import UsageError, WitnessError


@click.command(epilog="Examples:\n\n  gt top")
def top() -> None:
    """The town's polecats, live: who needs you, who is stuck, at work, idle, done and dead today.

    Keys stand in the last line. Needs the extra `top`: pip install 'gt-witness[top]'.
    """
    town = Town.find()
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("gt top needs a terminal: 'gt state' prints the same once, 'gt state --json --follow' follows")
    try:
        from witness.views.top import Top
    except ModuleNotFoundError as error:
        if error.name != "textual" and not str(error.name).startswith("textual."):
            raise
        raise WitnessError("gt top needs Textual: pip install 'gt-witness[top]'") from error
    from witness.views.feed import TownFeed

    town.need_runtime()
    Top(TownFeed(town)).run()
