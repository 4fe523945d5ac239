"""Proof that a prompt is idle and empty, and typing that touches nothing else."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import until, until_shown
from witness.agents.clients import CLAUDE
from witness.clock import ManualClock
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.delivery.prompt_typist import STILL, IdlePoller, Typist
from witness.errors import TmuxError
from witness.tmux import Tmux

PROGRAM = Path(__file__).parents[1] / "programs" / "prompting.py"

# -- with a real tmux and a program that draws a prompt like the client's -----------------------------------------


@pytest.fixture
def tmux() -> Iterator[Tmux]:
    tmux = Tmux(f"gtw-idle-{os.getpid()}-{secrets.token_hex(3)}")
    yield tmux
    if tmux.panes():
        tmux.run("kill-server")


class Pane:
    """A program in a pane that draws Claude Code's prompt and writes down what it is given.

    Args:
        tmux: where the pane is made.
        folder: where its files go.
        typed: what is half-typed in its prompt.
        seen: the tmux that the poller sees; the same when None. Between looks no time passes for it.
    """

    def __init__(self, tmux: Tmux, folder: Path, typed: str = "", seen: Tmux | None = None) -> None:
        self.log = folder / "log"
        self.log.write_text("")
        self.clock = ManualClock()
        self.queue = NudgeQueue(folder / "queue", self.clock)
        self.tmux = tmux
        environment = {"PROMPT_LOG": str(self.log), "PROMPT_TYPED": typed}
        tmux.new_session("toast", str(folder), [sys.executable, str(PROGRAM)], environment, (100, 20))
        until_shown(tmux, "toast", lambda: "❯" in tmux.screen("toast"))
        self.poller = IdlePoller(seen, self.clock, lambda seconds: None) if seen else IdlePoller(tmux, self.clock)

    def tick(self) -> int:
        delivered = self.poller.tick("toast", CLAUDE, self.queue.folder)
        self.clock.advance(STILL + 0.1)
        return delivered

    def took(self) -> list[str]:
        return self.log.read_text().splitlines()


def test_an_idle_prompt_gets_what_waits_after_two_equal_looks(tmux: Tmux, tmp_path: Path) -> None:
    pane = Pane(tmux, tmp_path)
    pane.queue.enqueue(Nudge("mayor", "first; $(touch x) `y`"))
    pane.queue.enqueue(Nudge("sidecar:specs", "[sidecar:specs] zweitens ❯ é"))
    assert pane.tick() == 0
    assert pane.took() == []
    assert pane.tick() == 2
    assert pane.took() == [
        "paste",
        "took '[from mayor] first; $(touch x) `y`\\r[sidecar:specs] zweitens ❯ é'",
    ]
    assert pane.queue.pending() == []


def test_a_half_typed_prompt_is_left_alone(tmux: Tmux, tmp_path: Path) -> None:
    pane = Pane(tmux, tmp_path, "please do not")
    pane.queue.enqueue(Nudge("mayor", "hello"))
    assert [pane.tick() for _ in range(3)] == [0, 0, 0]
    assert pane.took() == []
    assert len(pane.queue.pending()) == 1


def test_copy_mode_is_left_alone(tmux: Tmux, tmp_path: Path) -> None:
    pane = Pane(tmux, tmp_path)
    pane.queue.enqueue(Nudge("mayor", "hello"))
    tmux.run("copy-mode", "-t", "=toast:")
    assert [pane.tick() for _ in range(3)] == [0, 0, 0]
    assert pane.took() == []


def test_a_screen_that_moves_between_two_looks_is_left_alone(tmux: Tmux, tmp_path: Path) -> None:
    pane = Pane(tmux, tmp_path)
    pane.queue.enqueue(Nudge("mayor", "hello"))
    assert pane.tick() == 0
    tmux.press("toast", "x")
    until(lambda: "x" in tmux.screen("toast"))
    assert pane.tick() == 0
    assert pane.took() == []


def test_a_blinking_cursor_is_no_movement(tmux: Tmux, tmp_path: Path) -> None:
    blinking = _Blinking(tmux.socket)
    pane = Pane(tmux, tmp_path, seen=blinking)
    pane.queue.enqueue(Nudge("mayor", "hello"))
    assert pane.tick() == 0
    blinking.lit = True
    assert pane.tick() == 1


class _Blinking(Tmux):
    """tmux whose cursor is a reversed blank at times."""

    lit = False

    def screen(self, *given: Any, **options: Any) -> str:
        shown = super().screen(*given, **options)
        return shown.replace("❯", "❯\u00a0\x1b[7m \x1b[0m", 1) if self.lit else shown


def test_two_looks_too_close_together_prove_nothing(tmux: Tmux, tmp_path: Path) -> None:
    pane = Pane(tmux, tmp_path)
    pane.queue.enqueue(Nudge("mayor", "hello"))
    looks = [pane.poller.tick("toast", CLAUDE, pane.queue.folder) for _ in range(3)]
    assert looks == [0, 0, 0]


def test_what_does_not_show_in_the_prompt_is_not_submitted_and_waits_on(tmux: Tmux, tmp_path: Path) -> None:
    """The program of the pane has died in the very moment: a shell must not get the text with Enter."""
    pane = Pane(tmux, tmp_path, seen=_Deaf(tmux.socket))
    pane.queue.enqueue(Nudge("mayor", "hello"))
    assert [pane.tick() for _ in range(2)] == [0, 0]
    assert [claim.nudge.message for claim in pane.queue.pending()] == ["hello"]
    assert pane.took() == []


def test_what_was_pasted_and_is_not_seen_is_pasted_once_into_that_prompt(tmux: Tmux, tmp_path: Path) -> None:
    deaf = _Deaf(tmux.socket)
    pane = Pane(tmux, tmp_path, seen=deaf)
    pane.queue.enqueue(Nudge("mayor", "hello"))
    assert [pane.tick() for _ in range(8)] == [0] * 8
    assert deaf.pasted == ["[from mayor] hello"]
    assert len(pane.queue.pending()) == 1


class _Deaf(Tmux):
    """tmux whose pane does not take what is pasted."""

    def __init__(self, socket: str) -> None:
        super().__init__(socket)
        self.pasted: list[str] = []

    def paste(self, place: str, text: str) -> None:
        self.pasted.append(text)

    def press(self, place: str, *keys: str) -> None:
        raise AssertionError("Enter must not be pressed")


def test_a_session_that_is_gone_is_an_error_and_nothing_is_lost(tmux: Tmux, tmp_path: Path) -> None:
    pane = Pane(tmux, tmp_path)
    pane.queue.enqueue(Nudge("mayor", "hello"))
    tmux.new_session("other", "/", ["sleep", "60"], {}, (80, 24))
    tmux.kill_session("toast")
    with pytest.raises(TmuxError):
        pane.tick()
    assert len(pane.queue.pending()) == 1


def test_insisting_goes_round_dialogs_and_half_typed_prompts(tmux: Tmux, tmp_path: Path) -> None:
    pane = Pane(tmux, tmp_path)
    assert Typist(tmux).type_while_busy("toast", CLAUDE, "now") == ""
    assert pane.took()[-1] == "took 'now'"
    tmux.press("toast", "x")
    until(lambda: "❯ x" in tmux.screen("toast"))
    assert "half-typed" in Typist(tmux).type_while_busy("toast", CLAUDE, "again")
    assert pane.took()[-1] == "took 'now'"
