"""What ``gt top`` shows and does, without a terminal: the town's states, and commands to its polecats."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from witness.agents.clients import client_for
from witness.agents.screen import PromptState, plain, read_prompt
from witness.api.messages import screen
from witness.config.town import Town
from witness.errors import WitnessError
from witness.journal import Group, Journal
from witness.state.history import event_line
from witness.state.reader import StateReader, follow
from witness.tmux import Tmux

_LINES, _LOG_LINES = 200, 200
_COMMAND_SECONDS = 60.0
# What may be pressed by a name; anything else is typed as it stands.
_KEYS = {
    "enter": "Enter", "esc": "Escape", "escape": "Escape", "up": "Up", "down": "Down", "tab": "Tab", "space": "Space",
    "left": "Left", "right": "Right",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Seen:
    """The town at one moment.

    Args:
        state: as ``gt state --json`` has it.
        ended: the states of the runs that have ended today.
    """

    state: Mapping[str, Any]
    ended: tuple[Mapping[str, Any], ...] = ()

    @property
    def polecats(self) -> list[Mapping[str, Any]]:
        return [*self.state["polecats"], *self.ended]


@dataclass
class TownFeed:
    """One town.

    Args:
        town: which.
    """

    town: Town
    _ended: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def moments(self) -> Iterator[Seen]:
        """The town as it is, and whenever it changes; never ends. For a thread of its own."""
        with Journal(self.town.journal_path) as journal:
            reader = StateReader(self.town, journal)
            state: dict[str, Any] = {}
            for change in follow(reader, journal):
                if change["kind"] == "snapshot":
                    state = change
                elif change["kind"] == "witness":
                    state["witness"] = change["witness"]
                else:
                    fresh = change["polecat"]
                    others = [each for each in state["polecats"] if each["run"] != fresh["run"]]
                    state["polecats"] = others if fresh["ended"] else [*others, fresh]
                yield Seen(dict(state), self._today(journal, reader))

    def _today(self, journal: Journal, reader: StateReader) -> tuple[Mapping[str, Any], ...]:
        now = time.localtime()
        midnight = time.mktime((now.tm_year, now.tm_mon, now.tm_mday, 0, 0, 0, 0, 0, -1))
        groups = journal.groups.ended(midnight)
        for group in groups:
            if group.id.run not in self._ended:
                self._ended[group.id.run] = reader.ended(group).as_json()
        return tuple(self._ended[group.id.run] for group in groups)

    def screen(self, address: str) -> list[str]:
        """The last lines of a polecat's screen, without colours and control bytes."""
        with Journal(self.town.journal_path) as journal:
            return plain(screen(self.town, journal, address, _LINES)).rstrip().split("\n")

    def log(self, run: str) -> list[str]:
        """What happened to one run, oldest first."""
        with Journal(self.town.journal_path) as journal:
            group = journal.groups.get(run)
            return [
                event_line(event, group.id.address if group else "") for event in journal.history(run, last=_LOG_LINES)
            ]

    def attaching(self, session: str) -> tuple[list[str], dict[str, str]]:
        """The command that shows a session here, and its environment."""
        return Tmux(*self.town.tmux_place).attaching(session, os.environ)

    def command(self, *words: str) -> str:
        """Run ``gt WORDS`` and return its last line; for a thread of its own."""
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "witness.cli", *words], capture_output=True, text=True,
                env={**os.environ, "GT_TOWN_ROOT": str(self.town.root)}, stdin=subprocess.DEVNULL, check=False,
                timeout=_COMMAND_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"gt {words[0]} did not end within {_COMMAND_SECONDS:.0f} s"
        lines = (done.stdout + done.stderr).strip().splitlines()
        return lines[-1] if lines else f"gt {words[0]}: exit status {done.returncode}"

    def dialog(self, state: Mapping[str, Any]) -> tuple[list[str], str]:
        """What a polecat's screen shows, and what its dialog asks; the question is empty where it is at none."""
        tmux, group = Tmux(*self.town.tmux_place), self._group(state["run"])
        shown = tmux.screen(group.pane) if group else ""
        prompt = read_prompt(shown, client_for(group.agent)) if group else None
        asks = prompt.question or "a dialog" if prompt and prompt.state is PromptState.DIALOG else ""
        return plain(shown).rstrip().split("\n"), asks

    def answer(self, state: Mapping[str, Any], keys: str, asked: str) -> str:
        """Press keys at a polecat's dialog, if it is still the one that was shown.

        Args:
            state: the polecat's.
            keys: names (``enter``, ``esc``, ``up``, …) and texts, parted by blanks.
            asked: the question of the dialog that was shown.

        Returns:
            What was done, or why nothing was.
        """
        try:
            group, asks = self._group(state["run"]), self.dialog(state)[1]
            if group is None or not asks:
                return f"nothing was pressed: {state['address']} is at no dialog any more"
            if asks != asked:
                return f"nothing was pressed: {state['address']} asks something else by now"
            for word in keys.split():
                named = _KEYS.get(word.lower())
                Tmux(*self.town.tmux_place).press(group.pane, *([named] if named else ["-l", "--", word]))
        except WitnessError as error:
            return str(error)
        return f"pressed {keys} at {state['address']}"

    def _group(self, run: str) -> Group | None:
        with Journal(self.town.journal_path) as journal:
            return journal.groups.get(run)
