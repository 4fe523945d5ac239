"""What most commands begin with: the town, its journal, the polecat that is meant."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from witness.config.town import Town
from witness.errors import NotFoundError, UsageError
from witness.journal import Group, Journal
from witness.names import MARKER_VARIABLE, GroupId, split_address


def print_json(value: Any) -> None:
    """Print one JSON document to stdout, and nothing else with it."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def open_journal(town: Town) -> Journal:
    """The town's journal, made when there is none yet."""
    town.make_runtime()
    return Journal(town.journal_path)


def find_group(journal: Journal, target: str, *, ended: bool = False) -> Group:
    """The polecat that TARGET means: ``name``, ``rig/name``, ``rig/polecats/name`` or a session.

    Args:
        journal: where it is looked up.
        target: what the user wrote.
        ended: accept the last run of that name when none lives.

    Raises:
        NotFoundError: no such polecat.
        UsageError: the name lives in several rigs.
    """
    rig, name = split_address(target)
    found = journal.groups.named(name, rig)
    if len(found) > 1:
        raise UsageError(f"{target!r} is in several rigs: write {' or '.join(group.id.address for group in found)}")
    if found:
        return found[0]
    if ended and (last := journal.groups.last(name, rig)):
        return last
    raise NotFoundError("polecat", target, "'gt polecat list' shows those that run")


def own_group() -> GroupId | None:
    """The group that this very process runs in, None outside of polecats."""
    return GroupId.from_marker(os.environ.get(MARKER_VARIABLE, ""))
