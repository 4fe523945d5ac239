"""``gt done``: inside a polecat, the work is finished."""

from __future__ import annotations

import os
import sys

import click

from witness.api import Witness
from witness.api.messages import group_around
from witness.cli.context import own_group
from witness.cli.gas_town import done_there
from witness.config.town import Town
from witness.errors import RunEndedError
from witness.names import GroupId

# An agent says it once, and takes a failure for the end of the matter.
_PATIENCE = 30.0


class _Done(click.Command):
    """Keeps the arguments as they were given: the real ``gt done`` has flags that we need not know."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.obj = list(args)
        return super().parse_args(ctx, args)


@click.command(cls=_Done, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.option(
    "--status",
    type=click.Choice(["COMPLETED", "ESCALATED", "DEFERRED"], case_sensitive=False),
    default="COMPLETED",
    help="How the work ended.",
)
@click.pass_context
def done(ctx: click.Context, status: str) -> None:
    """Say that this polecat's work is finished: the Witness ends it with all its sidecars.

    Returns at once; the end comes a moment later, from outside. In a Gas Town the real gt done goes first, with all its
    flags, and the group is ended only when it succeeded.
    """
    group = own_group()
    town = Town.find()
    with Witness(town, patience=_PATIENCE) as witness:
        # What the environment says, an agent can change: a polecat is done with its own work alone.
        here = group_around(witness.journal)
        if here and (here.run_state.by_person or not here.run_state.followed):
            group = here.id
        group = group or _followed(witness)
        if group is None:
            raise click.UsageError(
                "gt done is for polecats: GT_WITNESS_GROUP is not set here; from outside, 'gt polecat nuke NAME'"
            )
        code = done_there(town, group, ctx.obj)
        if code is None and ctx.args:
            raise click.UsageError(f"no such option: {ctx.args[0]}")
        if code:
            sys.exit(code)
        try:
            witness.done(group, status.upper())
        except RunEndedError:
            if code is None:
                raise
            return  # the Witness saw it before we could say so
    ends = "its sidecars; the session goes on" if here and here.run_state.by_person else "this group"
    click.echo(f"{group.address}: {status.upper()}; the Witness ends {ends}")


def _followed(witness: Witness) -> GroupId | None:
    """The group of a polecat that Gas Town itself has started: it bears no marker of ours, but a session."""
    session = os.environ.get("GT_SESSION", "")
    found = [group for group in witness.journal.groups.named(session) if group.session == session] if session else []
    return found[0].id if len(found) == 1 else None
