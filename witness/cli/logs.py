"""``gt logs``: what happened in the town, or to one polecat."""

from __future__ import annotations

import json
from collections.abc import Iterable

import click

from witness.api.events import changes
from witness.cli.completion import polecats
from witness.cli.context import open_journal, since_when
from witness.cli.tables import write_lines
from witness.config.town import Town
from witness.journal import Event, Journal
from witness.state.history import event_json, event_line

_LAST = 200


@click.command(epilog="Examples:\n\n  gt logs -f\n\n  gt logs toast --since 1h --json")
@click.argument("target", required=False, shell_complete=polecats)
@click.option("--follow", "-f", is_flag=True, help="Go on with what happens from now on, until interrupted.")
@click.option("--since", default="", metavar="DURATION", help="Only what is younger, as 10m or 24h.")
@click.option("--last", "-n", type=click.IntRange(0), default=_LAST, show_default=True, help="So many lines at most.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def logs(target: str | None, follow: bool, since: str, last: int, as_json: bool) -> None:
    """What happened, oldest first: starts, ends, respawns, zombies, what was told.

    TARGET is a polecat, living or ended: of its newest run. Without it, the whole town.
    """
    begin = since_when(since)
    with open_journal(Town.find()) as journal:
        run = journal.groups.find(target, ended=True).id.run if target else ""
        newest = journal.last_event
        history = [event for event in journal.history(run, last=last) if event.time >= begin]
        _print(journal, history, as_json)
        if not follow:
            return
        for _ in changes(journal):
            fresh = journal.events_after(newest)
            newest = fresh[-1][0] if fresh else newest
            _print(journal, [event for _, event in fresh if run in ("", event.run)], as_json)


def _print(journal: Journal, events: Iterable[Event], as_json: bool) -> None:
    addresses: dict[str, str] = {}
    for event in events:
        if event.run not in addresses:
            group = journal.groups.get(event.run) if event.run else None
            addresses[event.run] = group.id.address if group else ""
        address = addresses[event.run]
        if as_json:
            click.echo(json.dumps(event_json(event, address), ensure_ascii=False))
        else:
            write_lines([event_line(event, address)])
