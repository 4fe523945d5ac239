from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sidecars.observer.observe.pane import PaneWatch
from sidecars.type_reader.sidecar_type import SidecarType
from tests.sidecars.observe.test_screen import BUSY, EDIT, LONG, TEST, screen
from witness.clock import ManualClock
from witness.errors import TmuxTimeoutError


class Screen:
    """What the pane shows; an exception is raised in its place."""

    def __init__(self) -> None:
        self.shows: Any = ""
        self.captures = 0

    def __call__(self, lines: int) -> str:
        self.captures += 1
        if isinstance(self.shows, Exception):
            raise self.shows
        return str(self.shows)


@pytest.fixture
def shown() -> Screen:
    return Screen()


@pytest.fixture
def pane(shown: Screen, clock: ManualClock, tmp_path: Path) -> PaneWatch:
    return PaneWatch(SidecarType("t", poll=10.0), shown, str(tmp_path), clock)


def test_an_edit_on_the_screen_is_an_edit(pane: PaneWatch, shown: Screen) -> None:
    shown.shows = screen(EDIT)
    (seen,) = pane.look()
    assert (seen.tool, seen.written, seen.source) == ("Edit", ("src/sum.py",), "pane")
    assert "return a + b" in seen.text
    assert "return a - b" not in seen.text


def test_each_action_is_seen_once(pane: PaneWatch, shown: Screen) -> None:
    shown.shows = screen(EDIT)
    assert len(pane.look()) == 1
    shown.shows = screen(EDIT, TEST)
    assert [seen.tool for seen in pane.look()] == ["Bash"]
    shown.shows = screen(TEST, "● Bash(git status)\n  ⎿  clean, nothing to commit, all is well\n")
    assert [seen.command for seen in pane.look()] == ["git status"]


def test_a_spinner_costs_nothing_and_stretches_the_interval(pane: PaneWatch, shown: Screen, clock: ManualClock) -> None:
    waits = []
    for second in range(12):
        shown.shows = screen(LONG, f"✢ Pondering… ({second}s)", box=BUSY)
        seen = pane.look()
        assert bool(seen) is (second == 0)
        waits.append(pane.due)
        clock.advance(pane.due)
    assert waits[:3] == [10.0, 15.0, 22.5]
    assert waits[-1] == 60.0
    shown.shows = screen(LONG, EDIT, TEST)
    assert pane.look()
    assert pane.due == 10.0


def test_an_unknown_screen_is_no_screen(pane: PaneWatch, shown: Screen) -> None:
    shown.shows = screen(EDIT)
    pane.look()
    shown.shows = TmuxTimeoutError("capture-pane", "no answer")
    assert pane.look() == []
    shown.shows = screen(EDIT)
    assert pane.look() == []


def test_a_plain_shell_gives_its_new_lines(pane: PaneWatch, shown: Screen) -> None:
    shown.shows = "$ make\ncc -o a a.c\n"
    assert pane.look()[0].rendered() == "$ make\ncc -o a a.c"
    shown.shows = "$ make\ncc -o a a.c\n$ rm -rf build\n"
    (seen,) = pane.look()
    assert (seen.tool, seen.rendered()) == ("", "$ rm -rf build")
