"""Waiting for the first sign of life of a polecat's channel, and telling once that it did not come."""

from __future__ import annotations

from collections.abc import Iterable

from witness.agents.channels import PATIENCE, recorded_state
from witness.agents.clients import client_for
from witness.agents.screen import PromptState, read_prompt
from witness.clock import Clock
from witness.config.town import Town
from witness.errors import WitnessError
from witness.journal import Group, GroupState, Journal
from witness.tmux import Tmux

_KIND = "channel-silent"
_WORKING = (GroupState.RUNNING, GroupState.DEGRADED)
# Claude Code shows what a call gave behind this: one that has completed without an event tells at once.
_RESULT = "⎿"


class ChannelWatch:
    """Looks at the polecats whose client has not reported anything yet.

    A client runs no hook while its first dialogs wait, so the time runs from when none is seen any more.

    Args:
        town, journal, tmux, clock: of the town.
    """

    def __init__(self, town: Town, journal: Journal, tmux: Tmux, clock: Clock) -> None:
        self._town, self._journal, self._tmux, self._clock = town, journal, tmux, clock
        self._over: set[str] = set()
        self._from: dict[str, float] = {}

    def look(self, groups: Iterable[Group]) -> None:
        """One look; what is missing is noted in the journal, once a run."""
        waiting = [group for group in groups if group.state in _WORKING and not self._is_over(group)]
        if not waiting:
            return
        try:
            screens = self._tmux.screens([group.pane for group in waiting if group.pane])
        except WitnessError:
            return  # nothing is known of any screen, so nothing is said
        now = self._clock.wall()
        for group in waiting:
            run, screen = group.id.run, screens.get(group.pane, "")
            shown = read_prompt(screen, client_for(group.agent)).state
            if shown not in (PromptState.IDLE, PromptState.BUSY, PromptState.TYPED):
                self._from[run] = now
            elif _RESULT in screen or now - self._from.setdefault(run, group.created) >= PATIENCE:
                self._over.add(run)
                self._journal.note(now, _KIND, run, channel=group.run_state.channel)

    def _is_over(self, group: Group) -> bool:
        run = group.id.run
        if run not in self._over:
            chosen = group.run_state
            spool = self._town.run_dir(run) / "spool"
            # Without a channel of the client's own there is nothing to wait for.
            if not chosen.channel or recorded_state(chosen.channel, chosen.channel_reason, spool, 0.0).seen:
                self._over.add(run)
            elif run not in self._from and any(event.kind == _KIND for event in self._journal.history(run)):
                self._over.add(run)  # an earlier Witness has told it
        return run in self._over
