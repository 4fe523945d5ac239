"""``gt worktree`` and ``gt diff``: what polecats have changed, and the worktrees that are kept for it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from witness.api import Witness
from witness.cli.completion import polecats
from witness.cli.context import print_json
from witness.cli.tables import write_lines
from witness.config.town import Town
from witness.errors import UsageError
from witness.journal import Worktree
from witness.state.records import rfc3339
from witness.worktrees.place import read_laid
from witness.worktrees.shown import facts_of, words_of


@click.command(epilog="Examples:\n\n  gt diff toast\n\n  gt diff toast --stat")
@click.argument("name", shell_complete=polecats)
@click.option("--stat", is_flag=True, help="Only the files, and how much of each.")
def diff(name: str, stat: bool) -> None:
    """What a polecat with a worktree has changed since it began: commits, uncommitted and new files.

    Also of one that has ended, as long as its worktree is kept.
    """
    with Witness(Town.find()) as witness:
        found = witness.worktree(name)
        text = witness.diff(name, stat=stat, colour=sys.stdout.isatty())
    click.echo(text or f"nothing has changed in {found.path} since {found.base[:12]}", nl=not text.endswith("\n"))


@click.group()
def worktree() -> None:
    """The worktrees that polecats have, or have left because they hold work."""


@worktree.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def list_(as_json: bool) -> None:
    """Every worktree of this town that stands, with what it holds."""
    with Witness(Town.find()) as witness:
        found = witness.journal.worktrees.standing()
        rows = worktree_rows(witness.town, found)
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo("no worktrees")
    else:
        write_lines(line for row in rows for line in _lines(row))


def worktree_rows(town: Town, worktrees: Sequence[Worktree]) -> list[dict[str, Any]]:
    """What ``gt worktree list --json`` promises of each."""
    facts = facts_of(worktrees, {each.run: read_laid(town, each.run) for each in worktrees})
    return [
        {"address": each.address, "run": each.run, "since": rfc3339(each.since), **facts[each.run]}
        for each in worktrees
    ]


def _lines(row: dict[str, Any]) -> list[str]:
    why = f": {row['reason']}" if row["state"] == "KEPT" else ""
    return [
        f"{row['address']}  {row['state']}  {words_of(row)}{why}",
        f"  {row['path']}",
        f"  see it: gt diff {row['address']}",
    ]


@worktree.command()
@click.option("--dry-run", is_flag=True, help="Only say what would become of each.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def prune(dry_run: bool, as_json: bool) -> None:
    """Look again at the worktrees that are kept, and remove those whose work is pushed or merged by now.

    What still holds work stays; gt polecat nuke --discard NAME removes that too.
    """
    with Witness(Town.find()) as witness:
        ends = witness.worktrees.prune(dry_run=dry_run)
    if as_json:
        print_json([{"address": each.worktree.address, **each.as_json()} for each in ends])
        return
    for each in ends:
        does = "would be " if dry_run else ""
        become = f"{does}kept" if each.kept else f"{does}removed"
        click.echo(f"{each.worktree.address}: {become}: {each.words}: {each.worktree.path}")
    if not ends:
        click.echo("no worktree is kept")


def ask_to_discard(witness: Witness, worktrees: Sequence[Worktree], *, yes: bool) -> None:
    """Show what goes with some worktrees, and ask.

    Raises:
        UsageError: nobody can be asked.
        click.Abort: the answer was no.
    """
    for each in worktrees:
        words = witness.worktrees.judge(each)
        click.echo(f"{each.address}: {each.path} holds {words or 'nothing that is not elsewhere'}", err=True)
        if words:
            click.echo(witness.diff(each.address, stat=True).rstrip("\n"), err=True)
    if not worktrees or yes:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--discard removes all of this for good: say --yes")
    click.confirm("Remove all of this for good?", default=False, abort=True)
