"""Injecting without any hook: the text is typed into the client's input box while the client is idle.

Only where an input box of a known kind is seen, empty and at rest, is anything typed: into a shell the same keys would
be a command.
"""

from __future__ import annotations

import re

from witness.clock import Clock
from witness.errors import TmuxError
from witness.journal import Decision
from witness.transport.tmux import Tmux

_LINES = 30
_RULE = re.compile(r"^\s*[─━╭╰][─━╮╯ ]{8,}\s*$")
_EMPTY_PROMPT = re.compile(r"^[│\s]*[❯>]\s*[│\s]*$")
_BUSY = re.compile(r"esc to interrupt", re.IGNORECASE)


def is_idle(screen: str) -> bool:
    """Whether the screen shows an empty input box of a client that does nothing."""
    lines = [line for line in screen.splitlines() if line.strip()]
    rules = [at for at, line in enumerate(lines) if _RULE.match(line)]
    if len(rules) < 2 or _BUSY.search("\n".join(lines[rules[-2] :])):
        return False
    box = lines[rules[-2] + 1 : rules[-1]]
    return len(box) == 1 and _EMPTY_PROMPT.match(box[0]) is not None


class Typist:
    """Holds what is to be said until the client is idle."""

    def __init__(self, tmux: Tmux, session: str, clock: Clock) -> None:
        self._tmux, self._session, self._clock = tmux, session, clock
        self._waiting: list[tuple[float, str]] = []

    def enqueue(self, decision: Decision, deliver_after: float = 0.0) -> str:
        """Let a decision's message wait; see ``Deliverer.enqueue``."""
        self._waiting.append((deliver_after, decision.message))
        return f"typed into {self._session}"

    def waits(self, decision: str) -> bool:
        """Whether it waits still; what a predecessor held is gone with it."""
        return False

    def flush(self) -> list[str]:
        """Type what is due, one message after the other, while the client is idle.

        Returns:
            What was typed.
        """
        typed: list[str] = []
        while self._waiting and self._waiting[0][0] <= self._clock.wall():
            try:
                if not is_idle(self._tmux.capture(self._session, _LINES)):
                    return typed
                self._tmux.paste(self._session, self._waiting[0][1])
                self._tmux.press(self._session, "Enter")
            except TmuxError:
                return typed
            typed.append(self._waiting.pop(0)[1])
        return typed
