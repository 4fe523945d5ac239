"""Every error this product raises on purpose.

A class exists here only where a caller acts differently on it. Data stands in fields; the text is built in the class,
so that a person always reads one line that says what is wrong, where, and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class WitnessError(Exception):
    """Root of all errors of ours. ``exit_code`` is what the command line ends with."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with the built text, which is not what most of them take.
        return _restored, (type(self), self.args, dict(self.__dict__))


def _restored(kind: type[WitnessError], args: tuple[Any, ...], fields: dict[str, Any]) -> WitnessError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


class UsageError(WitnessError):
    """The caller asked for something that cannot be meant; nothing was started."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault in a declaration.

    Args:
        message: what is wrong and what form would be right, without file or line.
        file: the file it stands in, or the flag it came by (``--sidecars``).
        line: one-based line, 0 when the source has no lines.
        key: dotted key within the file, empty when the whole file is meant.
    """

    message: str
    file: str = ""
    line: int = 0
    key: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return ": ".join(part for part in (where, self.key, self.message) if part)


class DeclarationError(UsageError):
    """A molecule, a sidecar type, a settings file or a spec string is wrong. Holds all its problems at once."""

    def __init__(self, problems: list[Problem] | tuple[Problem, ...]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``did you mean x?`` for the nearest of the known names; empty when none is near."""
    import difflib

    by_fold = {each.lower(): each for each in sorted(known, reverse=True)}
    near = difflib.get_close_matches(name.lower(), by_fold, n=1, cutoff=0.6)
    near = near or [each for each in by_fold if len(name) > 2 and each.startswith(name.lower())][:1]
    return f"did you mean {by_fold[near[0]]}?" if near else ""


class NotFoundError(UsageError):
    """Nothing of that name is known here.

    Args:
        what: the kind of thing.
        name: as it was given.
        hint: what to do, or what there is.
        known: the names that there are; a near one comes before the hint.
    """

    def __init__(self, what: str, name: str, hint: str = "", known: Iterable[str] = ()) -> None:
        hint = " ".join(filter(None, (did_you_mean(name, known), hint)))
        self.what, self.name, self.hint = what, name, hint
        super().__init__(f"no {what} named {name!r}" + (f": {hint}" if hint else ""))


class TownNotFoundError(UsageError):
    """No town stands at or above the working directory, nor in the environment."""

    def __init__(self, start: str) -> None:
        self.start = start
        super().__init__(f"no town at or above {start}: run 'gt init' to make one, or set GT_TOWN_ROOT")


class TmuxError(WitnessError):
    """tmux answered with an error."""

    def __init__(self, subcommand: str, message: str) -> None:
        self.subcommand, self.message = subcommand, message
        super().__init__(f"tmux {subcommand}: {message}")


class TmuxTimeoutError(TmuxError):
    """tmux did not answer in time: nothing is known, so nothing may be concluded."""


class TmuxUnusableError(UsageError):
    """tmux is missing or older than 3.2."""


class SpawnError(WitnessError):
    """A spawn failed half-way; what it had started was ended again."""

    def __init__(self, polecat: str, reason: str, survivors: tuple[int, ...] = ()) -> None:
        self.polecat, self.reason, self.survivors = polecat, reason, survivors
        text = f"could not spawn {polecat}: {reason}"
        if survivors:
            text += f"; still alive: {', '.join(map(str, survivors))}"
        super().__init__(text)


class JournalError(WitnessError):
    """The journal cannot be read or written; nothing was done."""


class JournalCorruptError(JournalError):
    """The journal's file is damaged. The polecats live on; ``gt doctor --fix`` sets it aside and adopts them anew."""


class JournalMovedError(JournalError):
    """Another file stands where the journal was: somebody set it aside, and what is written to the old one is lost."""


class TownLockedError(WitnessError):
    """Another Witness holds this town."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        super().__init__(f"another Witness (pid {pid or 'unknown'}) supervises this town")


class QueueFullError(WitnessError):
    """The nudge queue is at its depth limit and the new nudge is not urgent."""


class RunEndedError(WitnessError):
    """The run that this was meant for has ended; it must not reach a later polecat of the same name."""
