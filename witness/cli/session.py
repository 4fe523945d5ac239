"""A polecat's session: ``gt attach`` opens it here, ``gt peek`` reads it, ``gt nudge`` says a line to it."""

from __future__ import annotations

import os
import sys

import click

from witness.api.messages import MODES, PRIORITIES, screen, send_nudge
from witness.cli.completion import polecats
from witness.cli.context import open_journal, print_json
from witness.config.town import Town
from witness.errors import NotFoundError, RunEndedError, TmuxUnusableError
from witness.journal import GroupState, Journal
from witness.state.ended import ended_state
from witness.tmux import Tmux, check_tmux


@click.command(epilog="Examples:\n\n  gt attach toast\n\n  gt attach main/toast --read-only")
@click.argument("target", shell_complete=polecats)
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


# `gt peek`: read a polecat's pane.


@click.command(epilog="Examples:\n\n  gt peek toast\n\n  gt peek main/toast -n 20")
@click.argument("target", shell_complete=polecats)
@click.argument("count", type=click.IntRange(1, 50_000), required=False)
@click.option("-n", "--lines", type=click.IntRange(1, 50_000), default=100, show_default=True, help="How many lines.")
def peek(target: str, count: int | None, lines: int) -> None:
    """Print the last lines of a polecat's pane, or of its last screen when it has ended; nothing is sent to it.

    TARGET is name, rig/name, rig/polecats/name or a session.
    """
    town = Town.find()
    with open_journal(town) as journal:
        click.echo(screen(town, journal, target, count or lines))
        if how := _how_it_ended(town, journal, target):
            click.echo(f"gt: {how}", err=True)


def _how_it_ended(town: Town, journal: Journal, target: str) -> str:
    try:
        group = journal.groups.find(target, ended=True)
    except NotFoundError:  # a session that is none of ours
        return ""
    if group.state is not GroupState.NUKED:
        return ""
    return f"{group.id.address} {ended_state(town, journal, group).sentence}"


# `gt nudge`: send a polecat a line of text.


@click.command(
    epilog="Examples:\n\n"
    "  gt nudge toast 'the API spec has moved to docs/v2.md'\n\n"
    "  gt nudge toast --priority urgent --mode queue 'stop: main is broken'\n\n"
    "  git log -1 --format=%s | gt nudge toast --stdin"
)
@click.argument("target", shell_complete=polecats)
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
