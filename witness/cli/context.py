"""What most commands begin with: the town, its journal, the polecat that is meant."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from typing import Any

import click

from witness.config.town import Town
from witness.errors import UsageError
from witness.journal import Group, Journal
from witness.names import MARKER_VARIABLE, GroupId


def print_json(value: Any) -> None:
    """Print one JSON document to stdout, and nothing else with it."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def open_journal(town: Town) -> Journal:
    """The town's journal, made when there is none yet."""
    town.need_runtime()
    return Journal(town.journal_path)


def since_when(text: str) -> float:
    """The wall clock second that a ``--since`` means: a length of time ago; 0 for an empty text.

    Raises:
        UsageError: it is no length of time.
    """
    if not text:
        return 0.0
    from witness.config.settings import parse_duration

    try:
        return time.time() - parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--since: {error}") from error


def own_group() -> GroupId | None:
    """The group that this very process runs in, None outside of polecats."""
    return GroupId.from_marker(os.environ.get(MARKER_VARIABLE, ""))


def tell_withheld(lines: Iterable[str]) -> None:
    """Say which declarations of a project do not count, one line each."""
    for line in lines:
        click.echo(f"gt: {line}", err=True)


def ask_for_force(journal: Journal, groups: Iterable[Group] = (), *, force: bool) -> None:
    """Let a polecat end others, or the supervision of all, only when it says that it means to.

    Args:
        journal: the town's.
        groups: the polecats that the command is about; none in particular when empty.
        force: it was said.

    Raises:
        UsageError: it was not, and the caller runs in another polecat.
    """
    from witness.api.messages import group_around

    here = group_around(journal)
    if here is None or force:
        return
    others = [group.id.address for group in groups if group.id.run != here.id.run]
    if others or not list(groups):
        what = f"end {', '.join(others)}" if others else "end the supervision of all"
        raise UsageError(f"this is polecat {here.id.address}, and it would {what}: say --force if that is meant")
