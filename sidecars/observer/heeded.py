"""Was it heeded? Each remark of a rule is judged anew on the last state of what it was about.

New text is looked for in the file as it stands now; a file that should not have been changed is asked of git; what an
action was (a command, a file that was opened) is heeded when the next ones of its kind are otherwise. What none of
these can tell is undecided.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from sidecars.observer.context.files import read_text
from sidecars.observer.context.project_names import new_definitions
from sidecars.type_reader.sidecar_type import Rule
from witness.assignment import Assignment
from witness.errors import DeclarationError
from witness.events.tree_files import committed_at, top_level, unsettled
from witness.journal import Decision, Journal, Subject

YES, NO, UNDECIDED = "yes", "no", "undecided"
# So many further actions without the same again are a change of ways.
_ENOUGH = 3
_CHANGES = ("writes", "writes_outside", "touches", "touches_outside")


class HeededReview:
    """Judges the remarks of one sidecar in one run.

    Args:
        rules: the sidecar's.
        assignment: which agent it observes.
        journal: where its remarks are, and where the judgement goes.
    """

    def __init__(self, rules: Iterable[Rule], assignment: Assignment, journal: Journal) -> None:
        self._rules = {rule.name: rule for rule in rules}
        self._workdir = Path(assignment.workdir)
        self._run, self._name = assignment.group.run, assignment.name
        self._journal = journal

    def review(self) -> None:
        """Judge every remark that has reached the agent, or may have; call it when a turn or the run has ended."""
        remarks = [
            each for each in self._journal.decisions.remarks(self._run, self._name) if each.stage != "undelivered"
        ]
        if not remarks:
            return
        state = _State(self._workdir)
        later = self._journal.decisions.of(self._run, self._name, last=10_000)
        for remark in remarks:
            heeded = self._heeded(remark, later, state)
            if heeded != remark.heeded:
                self._journal.decisions.judge_heeded(remark.id, heeded)

    def _heeded(self, remark: Decision, later: Sequence[Decision], state: _State) -> str:
        rule = self._rules.get(remark.rule)
        if rule is None or not remark.subjects:
            return UNDECIDED
        told = remark.time if remark.age is None else remark.acted + remark.age
        after = [each for each in later if each.event != remark.event and (each.acted or each.time) > told]
        named = remark.subjects[: max(1, remark.named)]
        answers = {self._of(rule, subject, remark.acted, after, state) for subject in named}
        return NO if NO in answers else YES if answers == {YES} else UNDECIDED

    def _of(self, rule: Rule, subject: Subject, acted: float, after: Sequence[Decision], state: _State) -> str:
        again = any(each.rule == rule.name and each.outcome != "silent" for each in after)
        if subject.path and (rule.defines or rule.function_over):
            return state.defines(subject, rule.function_over)
        if subject.path and (rule.text or rule.code or rule.comments):
            return state.holds(subject)
        if subject.path and any(getattr(rule, name) for name in _CHANGES) and not rule.opens:
            return state.changed(subject.path, acted)
        if again:
            return NO
        return YES if len({each.event for each in after}) >= _ENOUGH else UNDECIDED


class _State:
    """The work tree as it stands, each thing asked once."""

    def __init__(self, workdir: Path) -> None:
        self._workdir = workdir
        self._root = ""
        self._dirty: frozenset[str] | None = None

    def holds(self, subject: Subject) -> str:
        """Whether what was found in a file is still there."""
        text = self._text(subject.path)
        if text is None:
            return UNDECIDED
        return NO if subject.detail and subject.detail in " ".join(text.split()) else YES

    def defines(self, subject: Subject, over: int) -> str:
        """Whether a file still defines a name, in more than ``over`` lines."""
        text = self._text(subject.path)
        if text is None:
            return UNDECIDED
        found = new_definitions((subject.path,), text)
        return NO if any(each.name == subject.detail and each.lines > over for each in found) else YES

    def _text(self, name: str) -> str | None:
        """A file as it stands; empty when it is gone, None when it cannot be read."""
        path = self._workdir / name
        if not path.exists():
            return ""
        try:
            return read_text(path)
        except DeclarationError:
            return None

    def changed(self, name: str, acted: float) -> str:
        """Whether a file's change still stands: in the work tree, or in a commit that came after it."""
        path = Path(os.path.normpath(self._workdir / name))
        if not self._root:
            self._root = top_level(str(self._workdir))
            found = unsettled(self._root)
            self._dirty = None if found is None else frozenset(found)
        if self._dirty is None or not path.is_relative_to(self._root):
            return UNDECIDED if path.exists() else YES
        inside = path.relative_to(self._root).as_posix()
        if inside in self._dirty:
            return NO
        if not acted:
            return UNDECIDED
        return NO if committed_at(self._root, inside) >= int(acted) else YES
