"""May it be said, and when.

Each gate reads its state from the journal, by the polecat's run: a sidecar that crashes and comes back finds its caps
and cooldowns as they were.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sidecars.definition.sidecar_type import SidecarType
from sidecars.observer.judge.verdict import Verdict
from witness.assignment import Assignment
from witness.clock import Clock
from witness.config.settings import Settings
from witness.journal import Journal
from witness.journal.decisions import PriorInjection

# Two messages whose sets of words agree to this share (of 100) say the same in other words.
_SIMILAR = 88.0
_DAY = 86_400.0
# Words that name something: a path, an identifier, a number. Two messages that name different things are different.
_NAMING = re.compile(r"[^\s]*[/_\d.][^\s]*\w|\b[a-z]+[A-Z]\w*")


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the gates say of one signal.

    Args:
        reason: which gate refused and why, empty when it may be said.
        delay: seconds until it may be delivered.
        wait: why it is put off, empty when it is not.
    """

    reason: str = ""
    delay: float = 0.0
    wait: str = ""

    @property
    def passed(self) -> bool:
        return not self.reason

    @property
    def gate(self) -> str:
        """Name of the gate that refused."""
        return self.reason.partition(":")[0]


class Gates:
    """The gates of one sidecar."""

    def __init__(
        self, kind: SidecarType, assignment: Assignment, settings: Settings, journal: Journal, clock: Clock
    ) -> None:
        self._kind, self._assignment, self._settings = kind, assignment, settings
        self._journal, self._clock = journal, clock
        self._run = assignment.group.run

    def rule(self, verdict: Verdict, words: str, decision: str) -> Ruling:
        """Let one signal through, put it off, or refuse it.

        Call it within the transaction that records the decision: the gap between sidecars holds only if no other
        sidecar decides in between.

        Args:
            verdict: a signal.
            words: what would be said.
            decision: the decision's id, by which the holdout draws its lot.
        """
        kind = self._kind
        if verdict.confidence < kind.threshold:
            return Ruling(f"threshold: {verdict.confidence} is below {kind.threshold}")
        said = self._journal.decisions.said(self._run)
        own = [each for each in said if each.sidecar == self._assignment.name]
        now = self._clock.monotonic()
        for refusal in (
            self._duplicate(said, verdict, words, now),
            self._cooldown(own, now),
            self._said_before(own, verdict),
            f"cap: {kind.cap} injections in this run" if len(own) >= kind.cap else "",
        ):
            if refusal:
                return Ruling(refusal)
        delay = self._gap(said, now)
        for refusal in (self.stopped(), self.over_budget(), self._held_out(decision)):
            if refusal:
                return Ruling(refusal)
        if delay > 0:
            return Ruling(delay=delay, wait=f"put off {delay:.1f} s: another sidecar has just spoken")
        return Ruling()

    def _duplicate(self, said: list[PriorInjection], verdict: Verdict, words: str, now: float) -> str:
        recent = [each for each in said if now - each.spoken < self._kind.duplicate_window]
        for each in reversed(recent):
            # What two rules of one sidecar say is two things, however alike the words: "was opened", "was changed".
            rule = each.rule if each.sidecar == self._assignment.name else verdict.rule
            if each.words == words or (rule == verdict.rule and same_thing(each.words, words)):
                return f"duplicate: {each.sidecar} said it {now - each.spoken:.0f} s ago"
        return ""

    def _said_before(self, own: list[PriorInjection], verdict: Verdict) -> str:
        if verdict.once and any(each.rule == verdict.rule for each in own):
            return f"once: rule {verdict.rule} has spoken in this run"
        return ""

    def _cooldown(self, own: list[PriorInjection], now: float) -> str:
        if not own or not self._kind.cooldown:
            return ""
        left = self._kind.cooldown - (now - own[-1].spoken)
        return f"cooldown: {left:.0f} s left" if left > 0 else ""

    def _gap(self, said: list[PriorInjection], now: float) -> float:
        others = [each.spoken for each in said if each.sidecar != self._assignment.name]
        return max(0.0, max(others) + self._kind.gap - now) if others else 0.0

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
