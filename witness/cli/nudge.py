"""``gt nudge``: send a polecat a line of text."""

from __future__ import annotations

import os
import sys

import click

from witness.api.messages import MODES, PRIORITIES, send_nudge
from witness.cli.context import open_journal, print_json
from witness.config.town import Town


@click.command(
    epilog="Examples:\n\n"
    "  gt nudge toast 'the API spec has moved to docs/v2.md'\n\n"
    "  gt nudge toast --priority urgent --mode queue 'stop: main is broken'\n\n"
    "  git log -1 --format=%s | gt nudge toast --stdin"
)
@click.argument("target")
@click.argument("message", required=False)
@click.option("-m", "--message", "flag", default="", help="The message, when it is not given as an argument.")
@click.option("--stdin", "from_stdin", is_flag=True, help="Read the message from standard input.")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="wait-idle",
    show_default=True,
    help="queue: at its next step. wait-idle: as soon as it is idle, else at its next step. immediate: typed in now.",
)
@click.option("--priority", type=click.Choice(PRIORITIES), default="normal", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def nudge(
    target: str, message: str | None, flag: str, from_stdin: bool, mode: str, priority: str, as_json: bool
) -> None:
    """Tell a polecat something. It hears it between two steps, or at once when it sits at its prompt.

    TARGET is name, rig/name, rig/polecats/name or a session.
    """
    text = sys.stdin.read() if from_stdin else message or flag
    town = Town.find()
    with open_journal(town) as journal:
        sender = os.environ.get("GT_ROLE") or "human"
        result = send_nudge(town, journal, target, text, sender=sender, mode=mode, priority=priority)
    address = result.group.id.address
    if as_json:
        outcome = {"mode": mode, "delivered": result.delivered, "file": result.file}
        print_json({"polecat": address, "session": result.group.session, **outcome})
    else:
        click.echo(f"{address} has it" if result.delivered else f"waits for the next step of {address}")
