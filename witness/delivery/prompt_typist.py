"""Typing to an agent that sits at its prompt: proven idle and empty first, verified after, and nothing else touched.

The last resort for every client whose hooks are missing or fail. A half-typed prompt, a permission dialog, a pane in
copy mode or a screen that moves is left alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from witness.agents.clients import Client
from witness.clock import Clock
from witness.delivery import message_format, queue_files
from witness.delivery.nudge_queue import NudgeQueue
from witness.tmux import Tmux

# In a run's spool: the client's own hook watches beside the prompt.
WATCH = "idle"
# Two looks this far apart must show the same idle screen.
STILL = 1.5
# What a prompt takes is a screenful, not a book.
_ROOM = 4000
# A client on a busy machine takes a second and more to draw what it was given.
_SHOWN_SECONDS = 5.0
_STEP = 0.05
_STYLE = re.compile(r"\x1b\[([0-9;:]*)m")
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9])")
_RULE = re.compile(r"^[─━═-]{20,}")
_FOOT = 15


class PromptState(StrEnum):
    """What the bottom of a screen shows."""

    IDLE = "idle"
    BUSY = "busy"
    TYPED = "half-typed"
    DIALOG = "dialog"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What was read from a screen.

    Args:
        state: what it shows.
        typed: what stands in the prompt.
    """

    state: PromptState
    typed: str = ""


def read_prompt(screen: str, client: Client) -> Prompt:
    """What the bottom of a screen shows.

    Args:
        screen: the visible screen with its styles, as ``Tmux.screen`` gives it.
        client: whose screen it is.
    """
    if client.prompt is None:
        return Prompt(PromptState.UNKNOWN)
    styled = screen.rstrip().split("\n")
    lines = [_ESCAPE.sub("", line) for line in styled]
    foot = "\n".join(lines[-_FOOT:])
    if any(sign in foot for sign in client.busy):
        return Prompt(PromptState.BUSY)
    place = _find_prompt(lines, client)
    if place < 0:
        shows = any(sign in foot for sign in client.dialog)
        return Prompt(PromptState.DIALOG if shows else PromptState.UNKNOWN)
    typed = _typed(styled, lines, place, client)
    return Prompt(PromptState.TYPED, typed) if typed else Prompt(PromptState.IDLE)


def _find_prompt(lines: list[str], client: Client) -> int:
    assert client.prompt is not None  # noqa: S101
    for place in range(len(lines) - 1, -1, -1):
        if not client.prompt.match(lines[place]):
            continue
        if not client.framed:
            return place
        above = place > 0 and _RULE.match(lines[place - 1])
        return place if above and any(_RULE.match(line) for line in lines[place + 1 :]) else -1
    return -1


def _typed(styled: list[str], lines: list[str], place: int, client: Client) -> str:
    assert client.prompt is not None  # noqa: S101
    plain = _ESCAPE.sub("", _without_dim(styled[place]))
    found = client.prompt.match(plain)
    parts = [found[1] if found else ""]
    if client.framed:
        for line in lines[place + 1 :]:
            if _RULE.match(line):
                break
            parts.append(line)
    typed = " ".join(part.replace("\u00a0", " ").strip() for part in parts).strip()
    return "" if typed in client.placeholders else typed


def _without_dim(line: str) -> str:
    """The line without what is drawn dim: hints that nobody typed."""
    kept, dim, end = [], False, 0
    for found in _STYLE.finditer(line):
        if not dim:
            kept.append(line[end : found.start()])
        end = found.end()
        for code in (found[1] or "0").split(";"):
            if code == "2":
                dim = True
            elif code in ("0", "22", ""):
                dim = False
    if not dim:
        kept.append(line[end:])
    return "".join(kept)


@dataclass
class _Look:
    at: float
    screen: str


class IdlePoller:
    """Delivers what waits to agents whose prompt is proven idle; ``tick`` it every few seconds.

    Args:
        tmux: the town's tmux.
        clock: time.
        pause: how to let the client draw; ``time.sleep`` but in tests.
    """

    def __init__(self, tmux: Tmux, clock: Clock, pause: Callable[[float], None] = time.sleep) -> None:
        self._tmux, self._clock, self._typist = tmux, clock, Typist(tmux, pause)
        self._looks: dict[str, _Look] = {}

    def forget(self, place: str) -> None:
        """The pane is gone, or nothing waits for it any more."""
        self._looks.pop(place, None)

    def tick(self, place: str, client: Client, folder: Path, run: str = "") -> int:
        """Look at a pane for which something waits, and type it in if this is the second look at a still, idle one.

        Args:
            place: the agent's pane, or a session whose active pane is its.
            client: whose screen it is.
            folder: the queue.
            run: the run that it is for.

        Returns:
            How many nudges were delivered.

        Raises:
            TmuxError: tmux said no; nothing was typed.
        """
        screen = self._tmux.screen(place)
        now = self._clock.monotonic()
        # The cursor blinks, and is a blank more or less at the line's end.
        plain = "\n".join(line.rstrip() for line in _ESCAPE.sub("", screen).split("\n"))
        before = self._looks.get(place)
        if read_prompt(screen, client).state is not PromptState.IDLE or self._tmux.in_mode(place):
            self.forget(place)
            return 0
        if before is None or before.screen != plain:
            self._looks[place] = _Look(now, plain)
            return 0
        if now - before.at < STILL:
            return 0
        self.forget(place)
        return self._deliver(place, client, NudgeQueue(folder, self._clock), run)

    def _deliver(self, place: str, client: Client, queue: NudgeQueue, run: str) -> int:
        with queue_files.Locked(str(queue.folder), name=".typing") as typing:
            if not typing.held:
                return 0
            taken = queue.claim(_ROOM, run)
            if not taken:
                return 0
            try:
                arrived = self._typist.submit(place, client, message_format.compose(claim.fields for claim in taken))
            except BaseException:
                for claim in taken:
                    queue.release(claim)
                raise
            if not arrived:
                for claim in taken:
                    queue.release(claim)
                return 0
            queue.acknowledge_all(taken, event="Prompt")
            queue.note_seen(taken)
        return len(taken)


class Typist:
    """Types into a prompt and looks what comes of it.

    Args:
        tmux: the town's tmux.
        pause: how to let the client draw; ``time.sleep`` but in tests.
    """

    def __init__(self, tmux: Tmux, pause: Callable[[float], None] = time.sleep) -> None:
        self._tmux, self._pause = tmux, pause

    def submit(self, place: str, client: Client, text: str) -> bool:
        """Paste text into an empty prompt as one bracketed paste, see it there, press Enter apart, see it gone.

        Returns:
            Whether the client took it. When it is not seen in the prompt, Enter is not pressed.

        Raises:
            TmuxError: tmux said no.
        """
        self._tmux.paste(place, text)
        if not self._until(place, client, lambda prompt: _shows(prompt, text)):
            return False
        for _ in range(2):
            self._tmux.press(place, "Enter")
            if self._until(place, client, lambda prompt: prompt.state in (PromptState.IDLE, PromptState.BUSY)):
                return True
        return False

    def type_while_busy(self, place: str, client: Client, text: str) -> str:
        """Type a text in although the agent may be at work; most clients take it up after the current step.

        Returns:
            Empty when it was typed, else why not.

        Raises:
            TmuxError: tmux said no.
        """
        if self._tmux.in_mode(place):
            return "its pane is in copy mode"
        state = PromptState.BUSY if client.prompt is None else read_prompt(self._tmux.screen(place), client).state
        if state in (PromptState.DIALOG, PromptState.UNKNOWN):
            return "no prompt is seen on its screen: it may be asking a person something, and this would be the answer"
        if state is PromptState.TYPED:
            return "somebody has half-typed a prompt there"
        if state is PromptState.IDLE:
            return "" if self.submit(place, client, text) else "the text did not appear in its prompt"
        self._tmux.paste(place, text)
        self._pause(_STEP * 4)
        self._tmux.press(place, "Enter")
        return ""

    def _until(self, place: str, client: Client, fact: Callable[[Prompt], bool]) -> bool:
        for _ in range(round(_SHOWN_SECONDS / _STEP)):
            self._pause(_STEP)
            if fact(read_prompt(self._tmux.screen(place), client)):
                return True
        return False


def _shows(prompt: Prompt, text: str) -> bool:
    if prompt.state is not PromptState.TYPED:
        return False
    squeezed = "".join(prompt.typed.split())
    # Nothing but ours: whoever began to type in that very moment keeps what he typed. Long pastes are folded.
    return squeezed.startswith("".join(text.split())[:40]) or bool(re.match(r"\[Pasted", squeezed))
