"""``gt nudge``: send a polecat a line of text."""

from __future__ import annotations

import os
import sys
import time

import click

from witness.agents.clients import client_for
from witness.cli.context import find_group, open_journal, print_json
from witness.clock import SystemClock
from witness.config.town import Town
from witness.delivery import message_format
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.delivery.prompt_typist import WATCH, IdlePoller, Typist
from witness.errors import NotFoundError, RunEndedError, UsageError, WitnessError
from witness.journal import Group, GroupState
from witness.tmux import Tmux

# Gas Town's own patience with a busy agent.
_IDLE_SECONDS = 15.0
_LOOK = 0.5


@click.command(
    epilog="Examples:\n\n"
    "  gt nudge toast 'the API spec has moved to docs/v2.md'\n\n"
    "  gt nudge toast --priority urgent --mode queue 'stop: main is broken'\n\n"
    "  git log -1 --format=%s | gt nudge toast --stdin"
)
@click.argument("target")
@click.argument("message", required=False)
@click.option("-m", "--message", "flag", default="", help="The message, when it is not given as an argument.")
@click.option("--stdin", "from_stdin", is_flag=True, help="Read the message from standard input.")
@click.option(
    "--mode",
    type=click.Choice(["queue", "wait-idle", "immediate"]),
    default="wait-idle",
    show_default=True,
    help="queue: at its next step. wait-idle: as soon as it is idle, else at its next step. immediate: typed in now.",
)
@click.option("--priority", type=click.Choice(["normal", "urgent"]), default="normal", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def nudge(
    target: str, message: str | None, flag: str, from_stdin: bool, mode: str, priority: str, as_json: bool
) -> None:
    """Tell a polecat something. It hears it between two steps, or at once when it sits at its prompt.

    TARGET is name, rig/name, rig/polecats/name or a session.
    """
    text = sys.stdin.read() if from_stdin else message or flag
    if not message_format.clean(text):
        raise UsageError("the message is empty: write it after the target, or give it by --stdin")
    town = Town.find()
    group = _living(town, target)
    sender = os.environ.get("GT_ROLE") or "human"
    note = Nudge(sender, text.strip(), priority=priority, kind="nudge", run=group.id.run)
    if mode == "immediate":
        outcome = {"delivered": True, "file": ""}
        _type(town, group, note)
    else:
        queue = NudgeQueue(town.queue_dir(group.session), SystemClock())
        file = queue.enqueue(note)
        outcome = {"delivered": mode == "wait-idle" and _wait_idle(town, group, queue, file), "file": file}
    if as_json:
        print_json({"polecat": group.id.address, "session": group.session, "mode": mode, **outcome})
    elif outcome["delivered"]:
        click.echo(f"{group.id.address} has it")
    else:
        click.echo(f"waits for the next step of {group.id.address}")


def _living(town: Town, target: str) -> Group:
    with open_journal(town) as journal:
        try:
            group = find_group(journal, target)
        except NotFoundError:
            ended = find_group(journal, target, ended=True)
            raise RunEndedError(
                f"{ended.id.address} has ended (run {ended.id.run}): nothing was queued, for nobody would hear it"
            ) from None
    if group.state is GroupState.NUKING:
        raise RunEndedError(f"{group.id.address} is being ended: nothing was queued, for nobody would hear it")
    return group


def _type(town: Town, group: Group, note: Nudge) -> None:
    text = message_format.line(note.to_fields())
    refused = Typist(Tmux(town.socket)).type_while_busy(group.session, client_for(group.agent), text)
    if refused:
        raise WitnessError(f"nothing was typed to {group.id.address}: {refused}; --mode queue waits for its next step")


def _wait_idle(town: Town, group: Group, queue: NudgeQueue, file: str) -> bool:
    """Whether it left the queue in time: drained by the client's hooks, or typed into a prompt proven idle."""
    poller = IdlePoller(Tmux(town.socket), SystemClock())
    client = client_for(group.agent)
    watched = town.run_dir(group.id.run) / "spool" / WATCH
    deadline = time.monotonic() + _IDLE_SECONDS
    while time.monotonic() < deadline:
        if queue.was_drained(file):
            return True
        if not watched.exists():
            poller.tick(group.session, client, queue.folder, group.id.run)
        time.sleep(_LOOK)
    return queue.was_drained(file)
