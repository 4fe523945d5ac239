"""How it gets there: the words are made safe and put into the session's nudge queue."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sidecars.observer.judge.verdict import Verdict, fill, placeholders
from sidecars.style import trim
from witness.assignment import Assignment
from witness.clock import Clock
from witness.journal import Decision, Subject

# The contract's upper end, the ``[sidecar:…] `` in front included.
LONGEST = 600
_SENTENCES = 2
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'`(\[]?[A-Z0-9])")
_TAG = re.compile(r"<(?=[/!?A-Za-z])")
_OWN_PREFIX = re.compile(r"\[\s*sidecar\s*:[^\]]*\]?", re.IGNORECASE)


def sanitise(text: str) -> str:
    """One line of plain text: no control or invisible characters, no tag opened or closed, no second prefix."""
    kept = "".join(
        " " if unicodedata.category(sign) in ("Cc", "Zl", "Zp") else sign
        for sign in unicodedata.normalize("NFC", text)
        if unicodedata.category(sign) not in ("Cf", "Cs", "Co", "Cn")
    )
    # A look-alike keeps List<int> readable and is a tag to nobody.
    kept = _TAG.sub("‹", _OWN_PREFIX.sub("", kept))
    return " ".join(kept.split())


def as_mark(text: str) -> str:
    """A name that stands within the brackets of a prefix, or beside others: it can close none."""
    return sanitise(text).replace("[", "(").replace("]", ")")


def compose(verdict: Verdict, snippets: Mapping[str, str]) -> str:
    """The words of a verdict: its snippet, filled in, where there is one, else its own message.

    Returns:
        One or two sentences, without the prefix and without filler; empty when the judge gave no words but that.
    """
    template = snippets.get(verdict.snippet, "")
    values = dict(verdict.values)
    if verdict.say:
        return " ".join(_SENTENCE_END.split(trim(fill(verdict.say, values)))[:_SENTENCES])
    if template and not verdict.message:
        # A place that nothing is known for would be said as it is spelled.
        return trim(fill(template, values)) if all(name in values for name in placeholders(template)) else ""
    # Filler goes first: a polite opening is not one of the two sentences.
    return " ".join(_SENTENCE_END.split(trim(verdict.message))[:_SENTENCES])


def address(name: str, words: str, source: str = "") -> str:
    """The injected text: ``[sidecar:<name>] ``, or ``[sidecar:<name>, <file>:<line>] ``, and the words.

    Args:
        name: the sidecar's.
        words: made safe and short enough here.
        source: where the words stand, if they are a file's.
    """
    prefix = f"[sidecar:{name}{f', {as_mark(source)}' if source else ''}] "
    return prefix + trim(sanitise(words), LONGEST - len(prefix))


class Deliverer:
    """Puts injections into the queue of one session."""

    def __init__(self, assignment: Assignment, clock: Clock) -> None:
        from witness.delivery.nudge_queue import NudgeQueue

        self._name, self._clock = assignment.name, clock
        self._queue = NudgeQueue(Path(assignment.queue), clock)

    def thread(self, decision: str) -> str:
        """The thread id by which a nudge is known again."""
        return f"{self._name}/{decision}"

    def enqueue(self, decision: Decision) -> str:
        """Let the decision's message wait for the agent's next step.

        Args:
            decision: an injected one.

        Returns:
            The nudge's file name.

        Raises:
            QueueFullError: no room.
            OSError: it could not be written.
        """
        from witness.delivery.nudge_queue import Nudge

        return self._queue.enqueue(
            Nudge(
                sender=f"sidecar:{self._name}",
                message=decision.message,
                kind="sidecar",
                thread_id=self.thread(decision.id),
                run=decision.run,
            ),
            durable=False,
        )

    def waits(self, decision: str) -> bool:
        """Whether the decision's nudge waits, is on its way, or has been dealt with."""
        return self._queue.knows(self.thread(decision))


# One line for all that there is to say just now.

# So many subjects of one remark are named; the others are counted.
NAMED = 5
_LONGEST_NAME = 120
FURTHER = "Further remarks are in `gt sidecar log`."


@dataclass(frozen=True, slots=True)
class Line:
    """What the agent reads.

    Args:
        text: the whole line.
        said: the decisions that it holds, the oldest first, each with the number of its subjects that are named.
        left: those that found no room.
    """

    text: str
    said: tuple[Decision, ...]
    left: tuple[Decision, ...]


def gather(name: str, held: Sequence[Decision], age: Callable[[Decision], str], *, last: bool = False) -> Line:
    """Put into one line what is to be said, the oldest first, as far as there is room.

    Remarks of one rule become one: the words of the first, then the other files.

    Args:
        name: the sidecar's.
        held: what is to be said, at least one decision.
        age: says how long ago a decision's action was, as ``40 s ago``; empty where that goes without saying.
        last: no further line may follow in this run; the line says where the rest is.
    """
    parts = _parts(sorted(held, key=lambda each: each.acted or each.time))
    source = parts[0][0].source
    text = f"[sidecar:{name}{f', {as_mark(source)}' if source else ''}]"
    room = LONGEST - (len(FURTHER) + 1 if last else 0)
    said: list[Decision] = []
    left: list[Decision] = []
    for part in parts:
        mark = "" if part[0].source == source else f"[{as_mark(part[0].source) or name}] "
        found = _remark(part, mark, age(part[0]), room - len(text) - 1, must=not said)
        if found is None:
            left += part
            continue
        remark, named = found
        text, source = f"{text} {remark}", part[0].source
        for decision in part:
            own = min(len(decision.subjects), named)
            said.append(replace(decision, named=own))
            named -= own
    return Line(f"{text} {FURTHER}" if last else text, tuple(said), tuple(left))


def _parts(held: Sequence[Decision]) -> list[list[Decision]]:
    """Decisions by the remark that they make together."""
    parts: dict[tuple[str, ...], list[Decision]] = {}
    for decision in held:
        # Only what a rule has found has subjects; a model's words stand for themselves.
        key = (decision.rule, decision.about, decision.source) if decision.subjects else (decision.id,)
        parts.setdefault(key, []).append(decision)
    return list(parts.values())


def _remark(part: Sequence[Decision], mark: str, age: str, room: int, *, must: bool) -> tuple[str, int] | None:
    """(the remark, how many subjects it names), None where there is no room; one that ``must`` be said is cut."""
    first = part[0]
    subjects = [subject for decision in part for subject in decision.subjects]
    after = f" ({age})" if age else ""
    words = mark + sanitise(first.words)
    for named in range(min(NAMED, len(subjects)), 0, -1) if len(subjects) > 1 else (len(subjects),):
        more = _more(subjects, named)
        if len(words) + len(more) + len(after) <= room:
            return words + more + after, named
    if not must:
        return None
    more = _more(subjects, 1) if len(subjects) > 1 else ""
    return trim(words, room - len(more) - len(after)) + more + after, min(1, len(subjects))


def _more(subjects: Sequence[Subject], named: int) -> str:
    """The subjects after the first, which the words name."""
    if len(subjects) < 2:
        return ""
    first = subjects[0]
    names = ", ".join(_label(subject, first) for subject in subjects[1:named])
    rest = f"… and {len(subjects) - named} more" if len(subjects) > named else ""
    return f" Also: {' '.join(filter(None, (names, rest)))}."


def _label(subject: Subject, first: Subject) -> str:
    """A subject beside the first one: only what differs."""
    if subject.path == first.path:
        shown = subject.detail
    elif subject.detail == first.detail:
        shown = subject.path
    else:
        shown = str(subject)
    shown = as_mark(shown)
    return shown if len(shown) <= _LONGEST_NAME else f"…{shown[-_LONGEST_NAME + 1 :]}"
