"""The first moments of an agent: what it shows once it has started, so that a person learns whether it waits."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum

from witness.agents.clients import client_for
from witness.agents.screen import read_prompt, read_trouble
from witness.config.town import Town
from witness.errors import WitnessError
from witness.journal import Group, Journal, MemberKind
from witness.process import ProcessId
from witness.process.exits import wait_gone
from witness.state.activity import Screen, activity_of, last_events
from witness.state.ended import ended_state
from witness.state.records import ActivityKind, Waiting
from witness.tmux import Tmux

#: Seconds that a client is given to show something known.
PATIENCE = 10.0
# Between two looks at the screen; the agent's end is heard of at once.
_LOOK_SECONDS = 0.1
_RECORD_SECONDS = 2.0


class Sight(StrEnum):
    """What was seen first."""

    PROMPT = "prompt"
    WORK = "work"
    DIALOG = "dialog"
    ENDED = "ended"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class FirstSight:
    """What an agent showed first.

    Args:
        client: the client's own name.
        saw: the kind of it.
        waiting: at a dialog, or with trouble that its client complains of: for what.
        ended: how it came to its end, in words; empty while it lives.
    """

    client: str
    saw: Sight
    waiting: Waiting | None = None
    ended: str = ""

    def as_json(self) -> dict[str, object]:
        """The form in which ``gt polecat spawn --json`` tells it."""
        waiting = {"for": self.waiting.reason, "question": self.waiting.question} if self.waiting else None
        return {"saw": str(self.saw), "waiting": waiting, "ended": self.ended or None}


_SEEN = {
    ActivityKind.IDLE: Sight.PROMPT,
    ActivityKind.WORKING: Sight.WORK,
    ActivityKind.STUCK: Sight.WORK,
    ActivityKind.WAITING: Sight.DIALOG,
}


def first_sight(town: Town, journal: Journal, group: Group, agent: ProcessId, seconds: float = PATIENCE) -> FirstSight:
    """Wait for the first of: a prompt, work, a dialog, the agent's end, the time.

    Args:
        town, journal: where it runs.
        group: the run.
        agent: its process.
        seconds: how long at most.
    """
    tmux, client = Tmux(*town.tmux_place), client_for(group.agent)
    run_dir, deadline = town.run_dir(group.id.run), time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if not wait_gone({agent}, min(_LOOK_SECONDS, left)):
            # Its reapers are about to write down how it ended and what its screen showed last, and end with that.
            members = journal.members.of(group.id.run)
            wait_gone(
                {each.process for each in members if each.kind is MemberKind.REAPER and each.process}, _RECORD_SECONDS
            )
            now = journal.groups.get(group.id.run) or group
            return FirstSight(client.title, Sight.ENDED, ended=ended_state(town, journal, now).sentence)
        try:
            text = tmux.screen(group.run_state.pane or group.session)
        except WitnessError:
            continue  # it is just ending, or tmux is slow
        screen = Screen(read_prompt(text, client), read_trouble(text), time.time())
        found = activity_of(last_events(run_dir / "spool"), screen)
        if sight := _SEEN.get(found.kind):
            return FirstSight(client.title, sight, found.waiting)
    return FirstSight(client.title, Sight.NOTHING)
