"""``gt state``: everything that is known of the town, once or as it changes."""

from __future__ import annotations

import json
from typing import Any

import click

from witness.cli.context import open_journal, print_json
from witness.cli.tables import state_lines, write_lines
from witness.config.town import Town
from witness.state.reader import StateReader


@click.command(epilog="Examples:\n\n  gt state\n\n  gt state --json --follow")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; docs/state.md has its keys.")
@click.option("--follow", "-f", is_flag=True, help="Then one line a change, until interrupted.")
def state(as_json: bool, follow: bool) -> None:
    """What every polecat does, which of them waits for a person, and what runs beside them."""
    town = Town.find()
    with open_journal(town) as journal:
        reader = StateReader(town, journal)
        if follow:
            from witness.state.reader import follow as changes

            for change in changes(reader, journal):
                if as_json:
                    click.echo(json.dumps(change, ensure_ascii=False))
                else:
                    write_lines(_told(change))
            return
        found = reader.read()
    if as_json:
        print_json(found.as_json())
        return
    running = f"Witness pid {found.witness['pid']}" if found.witness["running"] else "no Witness runs: gt witness start"
    write_lines([f"{found.town['root']}: {running}"])
    write_lines(line for each in found.polecats for line in state_lines(each.as_json()))


def _told(change: dict[str, Any]) -> list[str]:
    if change["kind"] == "snapshot":
        return [line for each in change["polecats"] for line in state_lines(each)]
    if change["kind"] == "witness":
        return ["the Witness runs" if change["witness"]["running"] else "no Witness runs"]
    return state_lines(change["polecat"])[:1]
