"""``gt metrics``: the town's state for Prometheus."""

from __future__ import annotations

import click

from witness.cli.context import open_journal
from witness.config.town import Town
from witness.state.metrics import metrics_text
from witness.state.reader import StateReader


@click.command(epilog="Examples:\n\n  gt metrics\n\n  gt metrics > /var/lib/node_exporter/textfile/gt.prom")
def metrics() -> None:
    """The state of the town in Prometheus' text format.

    For node_exporter's textfile collector, or whatever else reads such a page; docs/grafana.json is a board for it.
    """
    town = Town.find()
    with open_journal(town) as journal:
        text = metrics_text(StateReader(town, journal).read(), journal.decisions.spend())
    click.echo(text, nl=False)
