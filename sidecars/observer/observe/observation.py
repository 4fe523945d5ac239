"""What was seen of one completed action, in the words that judges and people read."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from sidecars.syntax.scope import Ran


@dataclass(frozen=True, slots=True)
class Observation:
    """One completed action of the agent.

    Args:
        id: the event's id in the spool, or the pane's.
        time: wall clock.
        source: ``event``, ``pane`` or ``transcript``.
        tool: name of the tool, in Claude Code's vocabulary whatever the client calls it; empty for a pane.
        failed: the tool call failed.
        opened: files that it opened, relative to the agent's workdir, absolute outside of it.
        written: files that it changed, created or removed, spelled likewise.
        created: those of them that did not stand there before.
        removed: those of them that do not stand there any longer.
        generated: those of them that nobody writes by hand: what git ignores, caches, installed packages.
        seen: how ``written`` is known: ``effect`` it was looked at, ``client`` the client's tool says so, ``read``
            the command says so, and it holds if the command did it.
        command: the shell command, empty for other tools.
        ran: the programs that it surely ran, if it succeeded.
        text: what it wrote (new text only), empty when nothing.
        replaced: the text in whose place ``text`` was put, as far as the client says it.
        lines_written: number of non-blank lines in ``text``.
        output: what the tool answered, without our own words and without system reminders.
        subagent: type of the subagent that did it, empty for the agent itself.
        subagent_id: which of them it was, empty where the client does not tell.
        cut: something was too long and is missing.
        prompt: what the user typed, for the event of a prompt; empty for others.
    """

    id: str
    time: float = 0.0
    source: str = "event"
    tool: str = ""
    failed: bool = False
    opened: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    generated: tuple[str, ...] = ()
    seen: str = "client"
    command: str = ""
    ran: tuple[Ran, ...] = ()
    text: str = ""
    replaced: str = ""
    lines_written: int = 0
    output: str = ""
    subagent: str = ""
    subagent_id: str = ""
    cut: bool = False
    prompt: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file that the action opened or wrote."""
        return self.opened + self.written

    @property
    def changed(self) -> tuple[str, ...]:
        """The files that stood there before, as far as that is known: one that was written whole may be new."""
        if self.tool == "Write" and not self.created and not self.replaced:
            return ()
        return tuple(path for path in self.written if path not in self.created)

    def done(self) -> dict[str, str]:
        """What was done to each of its files, as a sentence goes on after the file's name."""
        return (
            dict.fromkeys(self.opened, "was opened")
            | dict.fromkeys(self.written, "was changed")
            | dict.fromkeys(self.created, "was created")
            | dict.fromkeys(self.removed, "was removed")
        )

    def known(self, evidence: str) -> str:
        """How that is known which an evidence quotes: what a command opened is told by its text alone."""
        return "read" if self.command and evidence.startswith("opened: ") else self.seen

    def rendered(self) -> str:
        """The action as a judge reads it; a verdict must quote from here."""
        if not self.tool:
            return self.output
        head = (
            f"{self.tool}{' (failed)' if self.failed else ''}{f' by subagent {self.subagent}' if self.subagent else ''}"
        )
        parts = [head]
        if self.command:
            parts.append(f"command: {self.command}")
        parts += [f"opened: {path}" for path in self.opened]
        parts += [f"wrote: {path}" for path in self.written]
        if self.text:
            parts.append(f"new text:\n{self.text}")
        if self.output:
            parts.append(f"result:\n{self.output}")
        return "\n".join(parts)


# Taking out of what was seen what the agent did not do itself: our own words, and the client's reminders.

_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL | re.IGNORECASE)
# Our own line ends at the next blank line or at the next line of somebody else's queue block.
_OWN_LINE = re.compile(r"^.*\[sidecar:[A-Za-z0-9_-]{1,64}\].*$\n?", re.MULTILINE)
# CSI and OSC sequences, then any other escape with its one following byte.
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]?")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def without_own_words(text: str) -> str:
    """Remove ``[sidecar:…]`` lines and system reminders."""
    if "<system-reminder" in text.lower():
        text = _REMINDER.sub("", text)
    return _OWN_LINE.sub("", text) if "[sidecar:" in text else text


def plain(text: str) -> str:
    """Remove terminal escapes and control characters, and put composed characters into one form."""
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    text = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def excerpt(text: str, limit: int) -> tuple[str, bool]:
    """Keep the beginning and the end of a text that is too long.

    Returns:
        (text of about ``limit`` characters at most, whether something was left out).
    """
    if len(text) <= limit:
        return text, False
    head = limit * 2 // 3
    return f"{text[:head]}\n… {len(text) - limit} characters left out …\n{text[head - limit :]}", True
