"""``gt attach``: a terminal on a polecat's session."""

from __future__ import annotations

import os

import click

from witness.cli.context import open_journal
from witness.config.town import Town
from witness.errors import RunEndedError, TmuxUnusableError
from witness.journal import GroupState
from witness.tmux import Tmux, check_tmux


@click.command(epilog="Examples:\n\n  gt attach toast\n\n  gt attach main/toast --read-only")
@click.argument("target")
@click.option("--read-only", "-r", is_flag=True, help="Only look: keys do not reach the agent.")
@click.option("--print", "only_print", is_flag=True, help="Print the command instead of running it.")
def attach(target: str, read_only: bool, only_print: bool) -> None:
    """Show a polecat's session in this terminal; detach with the prefix key and d.

    Inside of the town's own tmux the client switches to it. TARGET is name, rig/name or a session.
    """
    town = Town.find()
    with open_journal(town) as journal:
        group = journal.groups.find(target, ended=True)
    tmux = Tmux(*town.tmux_place)
    if group.state is GroupState.NUKED or not tmux.has_session(group.session):
        raise RunEndedError(f"{group.id.address} has no session any more: 'gt peek {target}' shows its last screen")
    argv, environment = tmux.attaching(group.session, os.environ, read_only=read_only)
    if only_print:
        import shlex

        directory = f"TMUX_TMPDIR={shlex.quote(tmux.directory)} " if tmux.directory else ""
        click.echo(f"{directory}{shlex.join(argv)}")
        return
    check_tmux()
    try:
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - no shell wanted
    except OSError as error:
        raise TmuxUnusableError(f"tmux: {error.strerror}") from error
