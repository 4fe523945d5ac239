"""Proof that a prompt is idle and empty, and typing that touches nothing else."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from witness.agents.clients import ANY, CLAUDE, CODEX, GEMINI, Client
from witness.clock import ManualClock
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.delivery.prompt_typist import STILL, IdlePoller, PromptState, Typist, read_prompt
from witness.errors import TmuxError
from witness.tmux import Tmux

PROGRAM = Path(__file__).parents[1] / "programs" / "prompting.py"
SCREENS = Path(__file__).parent / "screens"
RULE = "─" * 80


@pytest.mark.parametrize(
    ("file", "state"),
    [
        ("01-idle-prompt.txt", PromptState.IDLE),
        ("02-typed-not-submitted.txt", PromptState.TYPED),
        ("03-spinner-waiting-model.txt", PromptState.BUSY),
        ("04-read-group-running.txt", PromptState.BUSY),
        ("05-bash-running.txt", PromptState.BUSY),
        ("06-edit-diff.txt", PromptState.BUSY),
        ("07-turn-done-long-output.txt", PromptState.IDLE),
        ("08-permission-dialog.txt", PromptState.DIALOG),
    ],
)
def test_real_screens_of_claude_code(file: str, state: PromptState) -> None:
    assert read_prompt((SCREENS / file).read_text(), CLAUDE).state is state


@pytest.mark.parametrize(
    ("screen", "client", "state"),
    [
        (f'{RULE}\n❯ \x1b[2mTry "fix lint"\x1b[22m\n{RULE}\n', CLAUDE, PromptState.IDLE),
        (f"{RULE}\n❯ \x1b[2mTry\x1b[0m mine\n{RULE}\n", CLAUDE, PromptState.TYPED),
        (f"{RULE}\n❯\u00a0\n{RULE}\n", CLAUDE, PromptState.IDLE),
        (f"{RULE}\n❯ \n  second line\n{RULE}\n", CLAUDE, PromptState.TYPED),
        ("❯ \nsomething that only looks like it\n", CLAUDE, PromptState.UNKNOWN),
        (f"❯ said before\n{RULE}\n Do you want to proceed?\n ❯ 1. Yes\n Esc to cancel\n", CLAUDE, PromptState.DIALOG),
        ("", CLAUDE, PromptState.UNKNOWN),
        ("\x1b[1m›\x1b[0m \x1b[2mAsk Codex to do anything\n  ? for shortcuts", CODEX, PromptState.IDLE),
        ("• Working (2s • esc to interrupt)\n\n\x1b[1m›\x1b[0m \x1b[2mAsk Codex\n", CODEX, PromptState.BUSY),
        ("› hello there\n  gpt default · ~/w", CODEX, PromptState.TYPED),
        ("  Allow command?\n› 1. Yes, proceed (y)\n  2. No\n  Press enter to confirm", CODEX, PromptState.TYPED),
        (" > \x1b[7m \x1b[0m Type your message or @path/to/file\n workspace", GEMINI, PromptState.IDLE),
        (" ⠋ Thinking... (esc to cancel, 2s)\n >   Type your message or @path/to/file", GEMINI, PromptState.BUSY),
        (" > hello there\n workspace", GEMINI, PromptState.TYPED),
        (" *   Type your message or @path/to/file\n", GEMINI, PromptState.IDLE),
        ("anything\n$ ", ANY, PromptState.UNKNOWN),
    ],
)
def test_what_a_screen_shows(screen: str, client: Client, state: PromptState) -> None:
    assert read_prompt(screen, client).state is state


# -- with a real tmux and a program that draws a prompt like the client's -----------------------------------------


@pytest.fixture
def tmux() -> Iterator[Tmux]:
    tmux = Tmux(f"gtw-idle-{os.getpid()}-{secrets.token_hex(3)}")
    yield tmux
    if tmux.panes():
        tmux.run("kill-server")


class Pane:
    """A program in a pane that draws Claude Code's prompt and writes down what it is given."""

    def __init__(self, tmux: Tmux, folder: Path, typed: str = "") -> None:
        self.log = folder / "log"
        self.log.write_text("")
        self.clock = ManualClock()
        self.queue = NudgeQueue(folder / "queue", self.clock)
        self.tmux = tmux
        environment = {"PROMPT_LOG": str(self.log), "PROMPT_TYPED": typed}
        tmux.new_session("toast", str(folder), [sys.executable, str(PROGRAM)], environment, (100, 20))
        while "❯" not in tmux.screen("toast"):
            pass
        self.poller = IdlePoller(tmux, self.clock)

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
    while "x" not in tmux.screen("toast"):
        pass
    assert pane.tick() == 0
    assert pane.took() == []


def test_a_blinking_cursor_is_no_movement(tmux: Tmux, tmp_path: Path) -> None:
    pane = Pane(tmux, tmp_path)
    pane.queue.enqueue(Nudge("mayor", "hello"))
    assert pane.tick() == 0
    look = pane.poller._looks["toast"]
    pane.poller._tmux = _Blinking(tmux)  # type: ignore[assignment]
    assert pane.poller.tick("toast", CLAUDE, pane.queue.folder) == 1, look


class _Blinking:
    """tmux whose cursor has just turned into a reversed blank."""

    def __init__(self, tmux: Tmux) -> None:
        self._tmux = tmux

    def screen(self, session: str) -> str:
        return self._tmux.screen(session).replace("❯", "❯\u00a0\x1b[7m \x1b[0m", 1)

    def in_mode(self, session: str) -> bool:
        return self._tmux.in_mode(session)


def test_two_looks_too_close_together_prove_nothing(tmux: Tmux, tmp_path: Path) -> None:
    pane = Pane(tmux, tmp_path)
    pane.queue.enqueue(Nudge("mayor", "hello"))
    looks = [pane.poller.tick("toast", CLAUDE, pane.queue.folder) for _ in range(3)]
    assert looks == [0, 0, 0]


def test_what_does_not_show_in_the_prompt_is_not_submitted_and_waits_on(tmux: Tmux, tmp_path: Path) -> None:
    """The program of the pane has died in the very moment: a shell must not get the text with Enter."""
    pane = Pane(tmux, tmp_path)
    pane.queue.enqueue(Nudge("mayor", "hello"))
    assert pane.tick() == 0
    pane.poller._typist = Typist(_Deaf(tmux), lambda seconds: None)  # type: ignore[arg-type]
    assert pane.tick() == 0
    assert [claim.nudge.message for claim in pane.queue.pending()] == ["hello"]
    assert pane.took() == []


class _Deaf:
    """tmux whose pane does not take what is pasted."""

    def __init__(self, tmux: Tmux) -> None:
        self._tmux = tmux

    def screen(self, session: str) -> str:
        return self._tmux.screen(session)

    def paste(self, session: str, text: str) -> None:
        pass

    def press(self, session: str, *keys: str) -> None:
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
    while "❯ x" not in tmux.screen("toast"):
        pass
    assert "half-typed" in Typist(tmux).type_while_busy("toast", CLAUDE, "again")
    assert pane.took()[-1] == "took 'now'"
