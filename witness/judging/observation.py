"""What was seen of one completed action, in the words that judges and people read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Ran:
    """One program that runs.

    Args:
        words: its base name, then what it was given; of a word that is not known, what it surely begins with.
        by: the wrappers and runners that it was started by, the outermost first.
        given: the text on its standard input, empty when that is not known.
        whole: all of its words are known.
    """

    words: tuple[str, ...]
    by: tuple[str, ...] = ()
    given: str = ""
    whole: bool = True


UNTOLD = " (the client does not tell whether it failed)"


@dataclass(frozen=True, slots=True)
class Observation:
    """One completed action of the agent.

    Args:
        id: the event's id in the spool, or the pane's.
        time: wall clock.
        source: ``event``, ``pane`` or ``transcript``.
        tool: name of the tool, in Claude Code's vocabulary whatever the client calls it; empty for a pane.
        failed: the tool call certainly failed.
        untold: the client does not tell whether it failed.
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
        given: what tells the tool's input from another of the same tool, where the other fields do not.
        prompt: what the user typed, for the event of a prompt; empty for others.
    """

    id: str
    time: float = 0.0
    source: str = "event"
    tool: str = ""
    failed: bool = False
    untold: bool = False
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
    given: str = ""

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
        """How that is known which an evidence quotes: what a command opened is told by its text alone.

        Args:
            evidence: quoted from ``rendered()``.

        Returns:
            ``client``, ``effect`` or ``read``, as ``seen``.
        """
        return "read" if self.command and evidence.startswith("opened: ") else self.seen

    def rendered(self) -> str:
        """The action as a judge reads it; a verdict must quote from here."""
        if not self.tool:
            return self.output
        end = " (failed)" if self.failed else UNTOLD if self.untold else ""
        head = f"{self.tool}{end}{f' by subagent {self.subagent}' if self.subagent else ''}"
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

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Observation:
        """Read what ``dataclasses.asdict`` made of one, after a way through JSON.

        Args:
            value: the object.

        Raises:
            ValueError: it is none.
        """
        known = {each.name: value[each.name] for each in fields(cls) if each.name in value}
        try:
            programs = known.pop("ran", ())
            ran = tuple(Ran(tuple(p["words"]), tuple(p["by"]), p["given"], p["whole"]) for p in programs)
            made: dict[str, Any] = {
                name: tuple(each) if isinstance(each, list) else each for name, each in known.items()
            }
            return cls(**made, ran=ran)
        except (TypeError, KeyError) as error:
            raise ValueError(f"not an observation: {error}") from error
