"""What must hold once chaos pauses. Each function returns lines; an empty list is as it has to be."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.faults import Faults
from tests.chaos.probe import Answer, Probe
from tests.chaos.town import ChaosTown, nudge_numbers
from tests.programs import alive
from witness.journal import Group, GroupState, Member, MemberKind, MemberState
from witness.process.table import process_name, read_table

INVARIANTS = (
    "survivors",
    "foreign_kills",
    "doubled_sidecars",
    "lost_nudges",
    "doubled_nudges",
    "stuck",
    "unsupervised",
)
# How long a living Witness may leave a question open.
SUPERVISED_WITHIN = 1.0
_SETTLE_SECONDS = 45.0
# After this a nudge that nobody heard and nothing accounts for is lost: receipts are waited for 15 s, then it is
# handed over once more.
_NUDGE_SECONDS = 60.0


@dataclass
class Invariants:
    """Looks at a town that has come to rest.

    Args:
        town, faults, probe: what is looked at.
        longest: the longest time that a living Witness left a question open, in seconds; the machine's share taken off.
        answers, crowded: how many questions it answered, and how many came late and are not judged, because
            the machine was too crowded to tell why.
    """

    town: ChaosTown
    faults: Faults
    probe: Probe
    longest: float = 0.0
    answers: int = 0
    crowded: int = 0
    _accounted: set[int] = field(default_factory=set)
    _event: int = 0
    _first_seen: dict[int, float] = field(default_factory=dict)

    def settle(self) -> list[str]:
        """Let everything come to rest; returns what does not."""
        faults, town = self.faults, self.town
        faults.let_go(everybody=True)
        faults.free_disk()
        faults.mend_shared()
        stuck = [f"does not end: gt {words}" for words in town.finish_commands()]
        if town.witness() is None and not faults.witness_down:
            stuck.append("the Witness has ended by itself")
        faults.witness_down = False
        town.call("witness", "start", wait=True)
        until = time.monotonic() + _SETTLE_SECONDS
        while True:
            town.call("witness", "patrol", wait=True)
            open_ones = list(self._unsettled())
            if not open_ones or time.monotonic() > until:
                return stuck + [f"stuck: {line}" for line in open_ones]
            town.attend(0.2)

    def _unsettled(self) -> Iterator[str]:
        """Groups that are between two states, or have a member that is not what the journal says of it."""
        for group, members in self.town.living():
            if group.state not in (GroupState.RUNNING, GroupState.DEGRADED, GroupState.NUKED):
                yield f"{group.id.marker} is {group.state}"
                continue
            for member in members:
                yield from self._unsettled_member(group, member)

    def _unsettled_member(self, group: Group, member: Member) -> Iterator[str]:
        lives = member.process is not None and alive((member.process.pid, member.process.started))
        if member.name == "agent" and not lives:
            yield f"the agent of {group.id.marker} is dead, and the group {group.state}"
        down = member.state is not MemberState.RUNNING or not lives
        if member.kind is MemberKind.SIDECAR and down and group.id.run not in self.faults.poisoned:
            yield f"{member.name} of {group.id.marker} is {member.state} {member.note} (alive: {lives})"

    def broken(self, *, over: bool = False) -> dict[str, list[str]]:
        """Every invariant that does not hold, with what shows it.

        Args:
            over: the town has ended: nothing of it may live, and no nudge may be on its way.
        """
        found = {
            "survivors": self._survivors(),
            "foreign_kills": [what for what, who in self.town.decoys.items() if not alive(who)],
            "doubled_sidecars": [
                f"{run}/{name}: {count}" for (run, name), count in self.town.sidecars(read_table()).items() if count > 1
            ],
            "doubled_nudges": [
                f"{number} was heard {count} times by {run}"
                for (run, number), count in self.town.heard().items()
                if count > 1
            ],
            "lost_nudges": self._lost(over=over),
            "stuck": [str(path) for path in self.town.facts.glob("*.trouble")],
            "unsupervised": self._unsupervised(),
        }
        return {name: lines for name, lines in found.items() if lines}

    def _survivors(self) -> list[str]:
        living = {group.id.run for group, _ in self.town.living()}
        table = read_table()
        found = {who: run for run in self.town.runs() - living for who in self.town.recorded(run) if alive(who)}
        found |= {who: run for who, run in self.town.marked(table).items() if run not in living and alive(who)}
        return [
            f"{who[0]} {process_name(table[who[0]].process) if who[0] in table else ''} of {run}"
            for who, run in found.items()
        ]

    # -- nudges -------------------------------------------------------------------------------------------------------

    def _lost(self, *, over: bool) -> list[str]:
        """Nudges that were accepted, and neither heard nor accounted for."""
        self._read_accounts()
        heard = {number for _, number in self.town.heard()}
        wrong = {number for run, number in self.town.heard() if self.faults.sent.get(number) != run}
        living = {group.id.run for group, _ in self.town.living()}
        queues = self._waiting()
        lost = [f"{number} was heard by another run than {self.faults.sent.get(number)}" for number in wrong]
        for command in self.town.commands:
            number = command.number
            # One that was killed or refused promised nothing; it is held to being heard once at most.
            if not number or command.code != 0 or number in heard | self._accounted | self.faults.spoilt:
                continue
            first = self._first_seen.setdefault(number, time.monotonic())
            run = self.faults.sent[number]
            if run in living and not over and time.monotonic() - first < _NUDGE_SECONDS:
                continue
            where = queues.get(number, "nowhere")
            lost.append(f"{number} to {run} ({'living' if run in living else 'ended'}): accepted, not heard, {where}")
        return lost

    def _read_accounts(self) -> None:
        """What the journal and the dead-letter folders say of nudges that nobody heard."""
        with self.town.journal() as journal:
            while events := journal.events_after(self._event):
                for at, event in events:
                    self._event = at
                    untold = event.kind == "nudge-undelivered" or (
                        event.kind == "nudge-drained" and event.data.get("reason")
                    )
                    if untold:
                        self._accounted |= nudge_numbers(str(event.data.get("message", "")))
        for folder in ("dead-letter", "malformed"):
            for path in (self.town.town.root / ".runtime" / "nudge_queue").glob(f"*/{folder}/*"):
                self._accounted |= _numbers_in(path)

    def _waiting(self) -> dict[int, str]:
        """The file of each nudge that waits, is claimed, or has been handed over."""
        root = self.town.town.root / ".runtime" / "nudge_queue"
        return {
            number: str(path.relative_to(root))
            for path in root.rglob("*")
            if path.is_file()
            for number in _numbers_in(path)
        }

    # -- supervision --------------------------------------------------------------------------------------------------

    def _unsupervised(self) -> list[str]:
        """Questions that a living Witness left open too long, unless it was we who had stopped it."""
        late = []
        for answer in self.probe.answers():
            if any(began <= answer.ended and answer.began <= ended for began, ended in self.faults.still):
                continue
            self.answers += 1
            if answer.seconds > SUPERVISED_WITHIN and answer.crowded:
                self.crowded += 1
                continue
            self.longest = max(self.longest, answer.seconds)
            if answer.seconds > SUPERVISED_WITHIN:
                late.append(_told(answer))
        return late


def _told(answer: Answer) -> str:
    return f"{answer.seconds:.2f} s from {answer.began:.2f} on ({answer.queued:.2f} s more without a processor)"


def _numbers_in(path: Path) -> set[int]:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > 1 << 22:
            return set()
        return nudge_numbers(path.read_text(errors="replace"))
    except OSError:
        return set()
