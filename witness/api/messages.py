"""Saying something to a polecat's agent, and reading its screen."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from witness.agents.clients import client_for
from witness.clock import SystemClock
from witness.config.town import Town
from witness.delivery import message_format
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.delivery.prompt_typist import WATCH, IdlePoller, Typist
from witness.errors import NotFoundError, RunEndedError, UsageError, WitnessError
from witness.journal import Group, GroupState, Journal, MemberKind
from witness.launch.pane import LAST_SCREEN
from witness.process.table import ancestors, read_table
from witness.state.ended import last_screen
from witness.tmux import Tmux

MODES = ("queue", "wait-idle", "immediate")
PRIORITIES = ("normal", "urgent")
# Gas Town's own patience with a busy agent.
IDLE_SECONDS = 15.0
_LOOK = 0.5


@dataclass(frozen=True, slots=True)
class NudgeResult:
    """What became of a nudge.

    Args:
        group: whose agent it is for.
        mode: how it was sent.
        delivered: the agent has it; else it waits for the agent's next step.
        file: its file in the queue; empty when it was typed.
    """

    group: Group
    mode: str
    delivered: bool
    file: str = ""


def send_nudge(
    town: Town, journal: Journal, target: str, message: str, *, sender: str, mode: str, priority: str
) -> NudgeResult:
    """Tell a polecat something.

    Args:
        town, journal: where it is.
        target: name, address or session.
        message: what.
        sender: who says it.
        mode: ``queue`` (at its next step), ``wait-idle`` (as soon as it is idle, else at its next step) or
            ``immediate`` (typed in now).
        priority: ``normal`` or ``urgent``.

    Raises:
        UsageError: the message is empty, or a word is not one of these.
        NotFoundError: there is no such polecat.
        RunEndedError: it has ended, so the agent would never hear it.
        WitnessError: nothing could be typed.
    """
    if mode not in MODES or priority not in PRIORITIES:
        raise UsageError(f"the mode is one of {', '.join(MODES)}, the priority one of {', '.join(PRIORITIES)}")
    if not message_format.clean(message):
        raise UsageError("the message is empty: write it after the target, or give it by --stdin")
    group = _living(journal, target)
    sender = _signature(journal, sender)
    note = Nudge(sender, message_format.defuse(message).strip(), priority=priority, kind="nudge", run=group.id.run)
    if mode == "immediate":
        _type(town, group, note)
        return NudgeResult(group, mode, delivered=True)
    queue = NudgeQueue(town.queue_dir(group.session), SystemClock())
    file = queue.enqueue(note)
    return NudgeResult(group, mode, mode == "wait-idle" and _wait_idle(town, group, queue, file), file)


def _signature(journal: Journal, claimed: str) -> str:
    """Who says it: a polecat signs as itself, whatever it claims.

    Raises:
        UsageError: somebody signs as what only we are.
    """
    if group := group_around(journal):
        return f"{group.id.rig}/polecats/{group.id.polecat}"
    if claimed.strip().lower().startswith(("sidecar:", "gt-witness")):
        raise UsageError(f"nobody but a sidecar or the Witness itself signs as {claimed!r}: unset GT_ROLE")
    return claimed


def group_around(journal: Journal) -> Group | None:
    """The polecat that the calling process runs in, by its ancestors and not by what its environment says."""
    table = read_table()
    line = {table[pid].process for pid in ancestors(os.getpid(), table) if pid in table}
    for run, members in journal.members.of_living().items():
        if any(member.process in line for member in members if member.kind is not MemberKind.SIDECAR):
            return journal.groups.get(run)
    return None


def _living(journal: Journal, target: str) -> Group:
    try:
        group = journal.groups.find(target)
    except NotFoundError:
        ended = journal.groups.find(target, ended=True)
        raise RunEndedError(
            f"{ended.id.address} has ended (run {ended.id.run}): nothing was queued, for nobody would hear it"
        ) from None
    if group.state is GroupState.NUKING:
        raise RunEndedError(f"{group.id.address} is being ended: nothing was queued, for nobody would hear it")
    return group


def _type(town: Town, group: Group, note: Nudge) -> None:
    text = message_format.line(note.to_fields())
    refused = Typist(Tmux(*town.tmux_place)).type_while_busy(group.pane, client_for(group.agent), text)
    if refused:
        raise WitnessError(f"nothing was typed to {group.id.address}: {refused}; --mode queue waits for its next step")


def _wait_idle(town: Town, group: Group, queue: NudgeQueue, file: str) -> bool:
    """Whether it left the queue in time: drained by the client's hooks, or typed into a prompt proven idle."""
    poller = IdlePoller(Tmux(*town.tmux_place), SystemClock())
    client = client_for(group.agent)
    watched = town.run_dir(group.id.run) / "spool" / WATCH
    deadline = time.monotonic() + IDLE_SECONDS
    while time.monotonic() < deadline:
        if queue.was_drained(file):
            return True
        if not watched.exists():
            poller.tick(group.pane, client, queue.folder, group.id.run)
        time.sleep(_LOOK)
    return queue.was_drained(file)


def screen(town: Town, journal: Journal, target: str, lines: int = 100) -> str:
    """The last lines of a polecat's pane, or of what it left of it at its end; nothing is sent to it.

    Args:
        town, journal: where it is.
        target: name, address, or a session that simply stands on the town's tmux server.
        lines: how many.

    Raises:
        NotFoundError: there is none of that name.
    """
    tmux = Tmux(*town.tmux_place)
    try:
        group = journal.groups.find(target)
        place = group.pane
        if (town.run_dir(group.id.run) / LAST_SCREEN).exists() and not tmux.has_session(group.session):
            return last_screen(town, group.id.run, lines)
    except NotFoundError:
        if "/" in target or not tmux.has_session(target):
            return last_screen(town, journal.groups.find(target, ended=True).id.run, lines)
        place = target
    # tmux gives the history and the whole screen besides: so many lines are the last ones of both.
    return tmux.capture(place, lines)
