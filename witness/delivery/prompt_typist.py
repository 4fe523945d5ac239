"""Typing to an agent that sits at its prompt: proven idle and empty first, verified after, and nothing else touched.

The last resort for every client whose hooks are missing or fail. A half-typed prompt, a permission dialog, a pane in
copy mode or a screen that moves is left alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from witness.agents.clients import Client
from witness.agents.screen import Prompt, PromptState, plain, read_prompt
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
        # The screens on which a paste did not appear, by place.
        self._unseen: dict[str, str] = {}

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
        shown = "\n".join(line.rstrip() for line in plain(screen).split("\n"))
        before = self._looks.get(place)
        if read_prompt(screen, client).state is not PromptState.IDLE or self._tmux.in_mode(place):
            self.forget(place)
            return 0
        if before is None or before.screen != shown:
            self._looks[place] = _Look(now, shown)
            return 0
        if now - before.at < STILL or self._unseen.get(place) == shown:
            return 0
        self.forget(place)
        delivered = self._deliver(place, client, NudgeQueue(folder, self._clock), run)
        if delivered is None:
            # It was pasted and is nowhere to be seen: the client holds it, or has thrown it away. As long as nothing
            # changes there, once more would be twice.
            self._unseen[place] = shown
        else:
            self._unseen.pop(place, None)
        return delivered or 0

    def _deliver(self, place: str, client: Client, queue: NudgeQueue, run: str) -> int | None:
        """How many were delivered; None when they were typed in and not seen there."""
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
                return None
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
    # Nothing but ours: what somebody began to type in that very moment stays. Long pastes are folded.
    return squeezed.startswith("".join(text.split())[:40]) or bool(re.match(r"\[Pasted", squeezed))
