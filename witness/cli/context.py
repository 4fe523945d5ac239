"""What most commands begin with: the town, its journal, the polecat that is meant."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

import click

from witness.config.town import Town
from witness.journal import Journal
from witness.names import MARKER_VARIABLE, GroupId


def print_json(value: Any) -> None:
    """Print one JSON document to stdout, and nothing else with it."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def open_journal(town: Town) -> Journal:
    """The town's journal, made when there is none yet."""
    town.need_runtime()
    return Journal(town.journal_path)


def own_group() -> GroupId | None:
    """The group that this very process runs in, None outside of polecats."""
    return GroupId.from_marker(os.environ.get(MARKER_VARIABLE, ""))


def tell_withheld(lines: Iterable[str]) -> None:
    """Say which declarations of a project do not count, one line each."""
    for line in lines:
        click.echo(f"gt: {line}", err=True)
