"""A sidecar type: what it looks at, who judges, when it may speak, and its words.

A type is data. Its folder holds ``sidecar.yaml``, ``prompt.md`` and ``snippets.yaml``; a nearer folder or setting
overrides single fields of a farther one (``sidecars.type_reader.type_loader`` finds them).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from fnmatch import translate
from pathlib import Path

from witness.errors import DeclarationError, Problem
from witness.expressions import Expression, foreign

JUDGES = ("rules", "model", "command", "python", "rules+model", "client")
ARGUMENTS = ("files", "text", "none")
PANE_USES = ("auto", "never", "only")


class Confidence(IntEnum):
    """How sure a judge is; a type's threshold is one of these."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3

    @classmethod
    def named(cls, text: str) -> Confidence:
        """Read ``low``, ``medium`` or ``high``.

        Raises:
            ValueError: it is none of them.
        """
        try:
            return cls[text.strip().upper()]
        except KeyError:
            raise ValueError(f"one of low, medium, high, not {text!r}") from None

    def __str__(self) -> str:
        return self.name.lower()


#: What may be alike in actions that repeat.
ALIKE = ("tool", "command", "failure", "path", "call", "output", "edit")


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often something has to happen.

    Args:
        times: at the so-manieth time the rule holds.
        within: seconds between the first and the last of them.
        same: what they have in common, of ``ALIKE``.
    """

    times: int
    within: float = 3600.0
    same: tuple[str, ...] = ("call",)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: every condition that it names must hold. Paths are globs as in ``.gitignore``, or ``@set``.

    Args:
        name: how it is named in the ledger.
        tools: globs of tool names; none means any tool.
        failed: only failed calls, or only those that did not fail; None means both.
        opens, writes, touches: a file that the action opened, wrote, or either, matches one of these.
        writes_outside, touches_outside: such a file matches none of these.
        but_not: files that never count for this rule.
        runs: patterns (``sidecars.syntax.command_pattern``) one of which a program matches that surely ran.
        changes: a file that stood there before, and was changed or removed, matches one of these.
        within: only files count that match one of these, too.
        creates: a file that did not stand there before matches one of these globs.
        named: an expression found in the name of a newly defined function.
        adds_dependency: the new text of a manifest names a package that the replaced text did not.
        block_has: an expression that the block which is lacked has in its text.
        command, text, output: expressions found in the shell command, in the new text, in the tool's answer.
        code, comments: expressions found in the code, in the comments of the new text; files whose language is not
            known, documents among them, have neither.
        unless: an expression; found anywhere in the action, it silences the rule.
        lines_over: more non-blank lines were written than this, with ``defines`` by what it found; -1: any number.
        function_over: a function of more lines than this is in the new text; 0 means any.
        lacks_block: the polecat's prompt holds no block of this type, and the sidecar has one to give.
        defines: a name is defined in the new text that the project has already (``@apis``).
        undoes: the edit puts back what an earlier edit of the run has replaced.
        repeats: the action is the so-manieth of its kind for which the other conditions hold.
        since_last: only what came after the last action that this rule's conditions match counts, for ``repeats`` and
            ``after``.
        after: an action that this rule's conditions match came before.
        given: an expression; found nowhere in the sidecar's documents, the rule does not hold.
        confidence: how sure the rule is.
        once: it speaks once in a run.
        final: no model is asked whether it is right.
        snippet: name of what is said.
        say: what is said, in place of a snippet.
        source: ``file:line`` where ``say`` stands, empty for a snippet.
        cites: ``file:line`` of the project that it says is its source; it counts where there is such a line.
        shipped: it rides along with this program, so that its expressions are our own and need no RE2.
    """

    name: str
    tools: tuple[str, ...] = ()
    failed: bool | None = None
    opens: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    touches: tuple[str, ...] = ()
    writes_outside: tuple[str, ...] = ()
    touches_outside: tuple[str, ...] = ()
    but_not: tuple[str, ...] = ()
    creates: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    named: str = ""
    adds_dependency: bool = False
    block_has: str = ""
    command: str = ""
    text: str = ""
    output: str = ""
    code: str = ""
    comments: str = ""
    unless: str = ""
    lines_over: int = -1
    function_over: int = 0
    lacks_block: str = ""
    defines: str = ""
    undoes: bool = False
    repeats: Repeats | None = None
    since_last: Rule | None = None
    after: Rule | None = None
    given: str = ""
    confidence: Confidence = Confidence.HIGH
    once: bool = False
    final: bool = False
    snippet: str = ""
    say: str = ""
    source: str = ""
    cites: str = ""
    shipped: bool = False

    def expression(self, name: str, *, multiline: bool = True) -> Expression:
        """One of its expressions, ready to be searched for.

        Args:
            name: its field, as ``command``.
            multiline: ``^`` and ``$`` match at every line.

        Raises:
            ValueError: it is none, or a foreign one where RE2 is not installed.
        """
        pattern = str(getattr(self, name))
        if not self.shipped:
            return foreign(pattern, multiline=multiline)
        return re.compile(pattern, re.MULTILINE if multiline else 0)


@dataclass(frozen=True, slots=True)
class NearMiss:
    """What looks like a signal and is none.

    Args:
        case: the silent case of ``cases.yaml`` that it is; its name says why.
        seen: as much of the action as shows it.
    """

    case: str
    seen: str


@dataclass(frozen=True, slots=True)
class SidecarType:
    """Everything that makes a sidecar what it is. Durations are in seconds.

    Args:
        name: the type's name.
        summary: one line for people.
        argument: what the spec's argument is, one of ``ARGUMENTS``; files are checked before anything is started.
        tools: globs of the tools whose calls it looks at; none means all.
        pane: ``auto`` reads the pane where no events come, ``never`` and ``only`` say what they do.
        pane_lines: how much of the pane is looked at.
        change: share of the pane's content that must have changed before anybody judges it.
        judge: who judges, one of ``JUDGES``.
        poll: the look-round when nothing wakes it.
        cooldown: silence after an injection; what comes meanwhile is said together when it is over.
        gap: silence after another sidecar's injection.
        threshold: a verdict below it is not said.
        cap: injections in one run of the polecat.
        max_age: what a model says of an action that is older than this is not said; what a rule has proven is.
        duplicate_window: the same thing is not said twice within it.
        holdout: share of signals that are recorded and not said, to measure what saying them is worth.
        timeout: the judge's whole time, retries included.
        model: the model's id; empty means the town's setting.
        max_tokens: upper end of the model's answer.
        batch: wait this long for more actions before a model is asked.
        calls_per_hour: how often a model may be asked; actions wait for their turn, none is dropped.
        command: the judge program's argument list.
        function: name of the Python function that judges; the type's own name when empty.
        context: where the judge's context comes from, as ``sidecars.observer.context`` reads it.
        rules: the rules.
        prompt: the instructions to the model.
        near_misses: what the model is shown that is no signal.
        snippets: pre-written texts by name.
        folders: where its files stand, the nearest first.
        origins: where each field was set, as ``file:line``.
        files: files of its own folders that its context names, by name.
        programs: the project's files that its command names, and the SHA-256 of each as it was trusted.
        withheld: one line for each layer of the project that does not count.
        sources: where the snippets stand that a file of the project holds, as ``file:line`` by name.
    """

    name: str
    summary: str = ""
    argument: str = "text"
    tools: tuple[str, ...] = ()
    pane: str = "auto"
    pane_lines: int = 50
    change: float = 0.10
    judge: str = "rules+model"
    poll: float = 10.0
    cooldown: float = 30.0
    gap: float = 5.0
    threshold: Confidence = Confidence.MEDIUM
    cap: int = 10
    max_age: float = 600.0
    duplicate_window: float = 300.0
    holdout: float = 0.0
    timeout: float = 5.0
    model: str = ""
    max_tokens: int = 1024
    batch: float = 2.0
    calls_per_hour: int = 30
    command: tuple[str, ...] = ()
    function: str = ""
    context: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    prompt: str = ""
    near_misses: tuple[NearMiss, ...] = ()
    snippets: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, str] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def asks_model(self) -> bool:
        """Whether a model takes part in its judgement."""
        return "model" in self.judge or self.judge == "client"

    @property
    def instant(self) -> bool:
        """Whether its verdict comes within microseconds, so that a hook may wait for it."""
        return self.judge == "rules"


def tool_filter(globs: Sequence[str]) -> Callable[[str], bool]:
    """A test of tool names against globs; none means any."""
    if not globs:
        return lambda tool: True
    pattern = re.compile("|".join(translate(glob) for glob in globs))
    return lambda tool: pattern.match(tool) is not None


def variant(kind: SidecarType, text: str) -> SidecarType:
    """A type with another judge, model or prompt.

    Args:
        kind: the type.
        text: a judge (one of ``JUDGES``), ``model:ID``, or a prompt's file.

    Raises:
        DeclarationError: it is none of these.
    """
    if text in JUDGES:
        return replace(kind, judge=text)
    if text.startswith("model:"):
        return replace(kind, judge="model", model=text.removeprefix("model:"))
    path = Path(text)
    if path.is_file():
        return replace(kind, prompt=path.read_text(encoding="utf-8"))
    raise DeclarationError(
        [Problem(f"{text!r} is no judge ({', '.join(JUDGES)}, model:ID) and no prompt's file", "--judge")]
    )
