"""May it be said, and when.

Each gate reads its state from the journal, by the polecat's run: a sidecar that crashes and comes back finds its caps
and cooldowns as they were. Cooldown and gap delay, and lose nothing; only the cap drops.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sidecars.observer.judge.verdict import Verdict
from sidecars.type_reader.sidecar_type import SidecarType
from witness.assignment import Assignment
from witness.clock import Clock
from witness.config.settings import Settings
from witness.journal import Decision, Journal, Subject
from witness.journal.decisions import JUDGED_ENOUGH, PriorInjection

# Two messages whose sets of words agree to this share (of 100) say the same in other words.
_SIMILAR = 88.0
_DAY = 86_400.0
# Words that name something: a path, an identifier, a number. Two messages that name different things are different.
_NAMING = re.compile(r"[^\s]*[/_\d.][^\s]*\w|\b[a-z]+[A-Z]\w*")
# Nobody waits longer than this for others that speak all the time.
_LONGEST_GAP = 60.0


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the gates say of one signal.

    Args:
        reason: which gate refused and why, empty when it may be said.
        subjects: what is left to say of it.
    """

    reason: str = ""
    subjects: tuple[Subject, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.reason


@dataclass(frozen=True, slots=True)
class Hold:
    """Why nothing may be said just now.

    Args:
        seconds: how long that lasts.
        reason: the gate and its words.
    """

    seconds: float
    reason: str


def gate_of(reason: str) -> str:
    """The gate that a reason of this module's names."""
    return reason.partition(":")[0]


class Gates:
    """The gates of one sidecar."""

    def __init__(
        self, kind: SidecarType, assignment: Assignment, settings: Settings, journal: Journal, clock: Clock
    ) -> None:
        self._kind, self._assignment, self._settings = kind, assignment, settings
        self._journal, self._clock = journal, clock
        self._run = assignment.group.run

    # -- whether ----------------------------------------------------------------------------------------------------

    def rule(self, verdict: Verdict, words: str, decision: Decision) -> Ruling:
        """Let one signal through, as far as it is new, or refuse it.

        Call it within the transaction that records the decision: no other sidecar may decide in between.

        Args:
            verdict: a signal.
            words: what would be said.
            decision: the decision that is being made; by its id the holdout draws its lot.
        """
        kind = self._kind
        if verdict.confidence < kind.threshold:
            return Ruling(f"threshold: {verdict.confidence} is below {kind.threshold}")
        said = self._journal.decisions.said(self._run)
        own = [each for each in said if each.sidecar == self._assignment.name]
        subjects = tuple(subject for subject, _ in verdict.places)
        if verdict.once and any(each.rule == verdict.rule for each in own):
            return Ruling(f"once: rule {verdict.rule} has spoken in this run")
        fresh = self._fresh(own, verdict.rule, subjects)
        if refusal := self._duplicate(said, verdict, words, fresh if subjects else None):
            return Ruling(refusal)
        for refusal in (
            self._late(verdict, decision),
            self._unheeded(verdict.rule),
            self.stopped(),
            # A rule costs nothing: it speaks whatever the model has spent.
            "" if subjects else self.over_budget(),
            self._held_out(decision.id),
        ):
            if refusal:
                return Ruling(refusal)
        return Ruling(subjects=fresh)

    def _recent(self, said: Sequence[PriorInjection]) -> list[PriorInjection]:
        """What was said within the duplicate window, and what waits to be said."""
        now = self._clock.monotonic()
        return [each for each in said if not each.spoken or now - each.spoken < self._kind.duplicate_window]

    def _fresh(self, own: list[PriorInjection], rule: str, subjects: Sequence[Subject]) -> tuple[Subject, ...]:
        known = {subject for each in self._recent(own) if each.rule == rule for subject in each.subjects}
        return tuple(subject for subject in subjects if subject not in known)

    def _duplicate(
        self, said: list[PriorInjection], verdict: Verdict, words: str, fresh: Sequence[Subject] | None
    ) -> str:
        for each in reversed(self._recent(said)):
            if each.sidecar == self._assignment.name and each.subjects and fresh is not None:
                # What two rules of one sidecar say is two things, however alike the words; so are two files of one.
                same = not fresh and each.rule == verdict.rule
            elif each.sidecar == self._assignment.name and each.rule != verdict.rule:
                same = each.words == words
            else:
                same = each.words == words or same_thing(each.words, words)
            if same:
                ago = f"said it {self._clock.monotonic() - each.spoken:.0f} s ago" if each.spoken else "has it to say"
                return f"duplicate: {each.sidecar} {ago}"
        return ""

    def _late(self, verdict: Verdict, decision: Decision) -> str:
        """What a rule has proven stays true; of what a model thought of an action nobody wants to hear much later."""
        age = self._clock.wall() - decision.acted if decision.acted else 0.0
        if verdict.places or age <= self._kind.max_age:
            return ""
        return f"age: the action was {age:.0f} s ago, and what is said later than {self._kind.max_age:g} s helps nobody"

    def _unheeded(self, rule: str) -> str:
        limit = self._settings.unheeded_limit
        if not rule or limit >= 1.0:
            return ""
        for found in self._journal.decisions.heeding(self._assignment.name, rule):
            if found.judged >= JUDGED_ENOUGH and found.unheeded > limit:
                return f"unheeded: {found.no} of {found.judged} remarks of rule {rule} were not heeded"
        return ""

    def stopped(self) -> str:
        """Why everybody is silent just now, empty when nobody has pulled the emergency stop."""
        town = Path(self._assignment.town)
        for name in ("ESTOP", f"ESTOP.{self._assignment.group.rig}"):
            if self._assignment.town and (town / name).exists():
                return f"estop: {town / name} stands"
        return ""

    def over_budget(self) -> str:
        """Which budget is spent, empty when none; a sidecar that asks no model has none to spend."""
        if not self._kind.asks_model:
            return ""
        settings, decisions = self._settings, self._journal.decisions
        run = decisions.spend(run=self._run)
        day = decisions.spend(since=self._clock.wall() - _DAY)
        for spent, dollars, calls, span in (
            (run, settings.run_budget, settings.run_calls, "this run"),
            (day, settings.day_budget, settings.day_calls, "24 hours"),
        ):
            if spent.dollars >= dollars:
                return f"budget: ${spent.dollars:.4f} of ${dollars:.2f} spent in {span}"
            if spent.calls >= calls:
                return f"budget: {spent.calls} of {calls} calls made in {span}"
        return ""

    def _held_out(self, decision: str) -> str:
        if not self._kind.holdout:
            return ""
        lot = int.from_bytes(hashlib.sha256(decision.encode()).digest()[:4]) / 2**32
        return "holdout: recorded, not said" if lot < self._kind.holdout else ""

    # -- when -------------------------------------------------------------------------------------------------------

    def lines_left(self) -> int:
        """How many more lines the cap of this run allows."""
        own = self._journal.decisions.spoken(self._run).get(self._assignment.name)
        return max(0, self._kind.cap - (own.lines if own else 0))

    @property
    def capped(self) -> str:
        """Why nothing more is said once no line is left."""
        return f"cap: {self._kind.cap} injections in this run"

    def hold(self, since: float) -> Hold | None:
        """Why nothing may be said at this instant, None when it may.

        Args:
            since: monotonic seconds since which the oldest remark waits.
        """
        now = self._clock.monotonic()
        spoken = {name: each.last for name, each in self._journal.decisions.spoken(self._run).items()}
        own = spoken.pop(self._assignment.name, None)
        if own is not None and (left := own + self._kind.cooldown - now) > 0:
            return Hold(left, f"cooldown: {left:.0f} s left")
        others = max(spoken.values(), default=None)
        if others is not None and (left := others + self._kind.gap - now) > 0 and now - since < _LONGEST_GAP:
            return Hold(left, f"gap: {left:.1f} s left, another sidecar has just spoken")
        return None


def same_thing(one: str, other: str) -> bool:
    """Whether two messages say the same: equal but for case and blanks, or nearly so about the same names."""
    first, second = (" ".join(text.split()).casefold() for text in (one, other))
    if first == second:
        return True
    if _names(one) != _names(other):
        return False
    from rapidfuzz.fuzz import token_set_ratio

    return token_set_ratio(first, second) >= _SIMILAR


@lru_cache(maxsize=1024)
def _names(text: str) -> frozenset[str]:
    return frozenset(_NAMING.findall(text))
