"""A channel that gives no sign of life is told once, and not while a dialog keeps the client from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from witness.agents.channels import PATIENCE
from witness.agents.clients import Channel
from witness.clock import ManualClock
from witness.config.town import Town
from witness.journal import Group, GroupState, Journal, RunState
from witness.names import GroupId
from witness.supervise.channel_watch import ChannelWatch
from witness.tmux import Tmux

RULE = "─" * 40
IDLE = f"{RULE}\n❯\u00a0\n{RULE}\n  ? for shortcuts\n"
CALLED = f"● Read(a.py)\n  ⎿  Read 3 lines\n\n{IDLE}"
DIALOG = " Quick safety check: do you trust this folder?\n ❯ 1. Yes\n   2. No\n\n Enter to confirm\n"


class _Screens:
    """A tmux that shows one screen in every pane."""

    shown = IDLE

    def screens(self, panes: Sequence[str]) -> dict[str, str]:
        return dict.fromkeys(panes, self.shown)


class _Place:
    def __init__(self, town: Town, journal: Journal) -> None:
        self.journal, self.tmux, self.clock = journal, _Screens(), ManualClock()
        begin, state = self.clock.wall(), RunState(channel=str(Channel.MOD), pane="%1")
        self.group = Group(
            GroupId("main", "a", "r1"), "gt-a", GroupState.RUNNING, "boot", 0.0, begin, "/", agent=("claude",),
            run_state=state,
        )  # fmt: skip
        self.spool = town.run_dir("r1") / "spool"
        self.spool.mkdir(parents=True)
        self.town = town
        self.watch = self.fresh()

    def fresh(self) -> ChannelWatch:
        return ChannelWatch(self.town, self.journal, cast(Tmux, self.tmux), self.clock)

    def look(self, seconds: float) -> int:
        """Look so much later; how often it has been told by now."""
        self.clock.advance(seconds)
        self.watch.look([self.group])
        return [event.kind for event in self.journal.history("r1")].count("channel-silent")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[_Place]:
    town = Town.init(tmp_path)
    town.make_runtime()
    with Journal(town.journal_path) as journal:
        yield _Place(town, journal)


def test_the_lack_is_told_once_also_by_a_witness_that_starts_later(place: _Place) -> None:
    assert place.look(1.0) == 0
    assert place.look(PATIENCE) == 1
    assert place.look(60.0) == 1
    place.watch = place.fresh()
    assert place.look(60.0) == 1


def test_the_time_runs_from_when_the_dialog_is_answered(place: _Place) -> None:
    place.tmux.shown = DIALOG
    assert place.look(300.0) == 0
    place.tmux.shown = IDLE
    assert place.look(1.0) == 0
    assert place.look(PATIENCE) == 1


def test_a_completed_call_without_an_event_tells_at_once(place: _Place) -> None:
    place.tmux.shown = CALLED
    assert place.look(1.0) == 1


def test_a_sign_of_life_or_a_client_without_hooks_ends_the_waiting(place: _Place) -> None:
    (place.spool / "client").write_text("")
    assert place.look(300.0) == 0
    place.group = Group(
        place.group.id, "gt-a", GroupState.RUNNING, "boot", 0.0, 0.0, "/", agent=("claude",),
        run_state=RunState(channel=str(Channel.PANE), channel_reason="switched off", pane="%1"),
    )  # fmt: skip
    place.watch = place.fresh()
    assert place.look(300.0) == 0
