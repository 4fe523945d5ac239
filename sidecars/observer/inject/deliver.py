"""How it gets there: the words are made safe and put into the session's nudge queue."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from sidecars.observer.judge.template import fill, placeholders
from sidecars.observer.judge.verdict import Verdict
from sidecars.style import trim
from witness.assignment import Assignment
from witness.clock import Clock
from witness.journal import Decision

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
            )
        )

    def waits(self, decision: str) -> bool:
        """Whether the decision's nudge waits, is on its way, or has been dealt with."""
        return self._queue.knows(self.thread(decision))
