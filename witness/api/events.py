"""What happens in a town, as it happens: a snapshot first, then every change in the order of the journal.

A change is found by SQLite's own count of commits of other connections, which costs microseconds to read; so nothing
has to tell the reader, and a reader that dies disturbs nobody.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from witness.config.town import Town
from witness.errors import NotFoundError
from witness.journal import Decision, Group, GroupState, Journal, Member
from witness.journal.records import Event

#: Seconds between two looks at the count of commits.
LOOK = 0.05


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What lived when the stream began.

    Args:
        time: when, UTC.
        polecats: the living groups with their members.
    """

    time: datetime
    polecats: tuple[tuple[Group, tuple[Member, ...]], ...]


@dataclass(frozen=True, slots=True)
class TownEvent:
    """One line of the town's history.

    Args:
        sequence: its place in the journal, rising.
        event: what happened, to which run and member.
    """

    sequence: int
    event: Event


@dataclass(frozen=True, slots=True)
class SidecarDecision:
    """A sidecar has decided.

    Args:
        sequence: its place among the decisions, rising.
        decision: what, and why.
    """

    sequence: int
    decision: Decision


WitnessEvent = Snapshot | TownEvent | SidecarDecision
"""What ``Witness.events`` gives."""


def stream(town: Town, *, seconds: float | None = None) -> Iterator[WitnessEvent]:
    """Follow a town.

    Args:
        town: which.
        seconds: end after so many seconds without a change; never when None.

    Yields:
        A ``Snapshot``, then ``TownEvent`` and ``SidecarDecision`` as they come.
    """
    with Journal(town.journal_path) as journal:
        with journal.transaction():
            happened, decided = journal.last_event, journal.decisions.last_sequence
            members = journal.members.of_living()
            polecats = tuple((group, tuple(members.get(group.id.run, ()))) for group in journal.groups.living())
        yield Snapshot(datetime.now(UTC), polecats)
        for _ in changes(journal, seconds):
            for sequence, event in journal.events_after(happened):
                happened = sequence
                yield TownEvent(sequence, event)
            for sequence, decision in journal.decisions.after(decided):
                decided = sequence
                yield SidecarDecision(sequence, decision)


def changes(journal: Journal, seconds: float | None = None) -> Iterator[None]:
    """Return once at the beginning and after each commit of somebody else.

    Args:
        journal: which.
        seconds: end when nothing has changed for so long; never when None.
    """
    known, last = -1, time.monotonic()
    while seconds is None or time.monotonic() - last < seconds:
        version = journal.data_version
        if version != known:
            known, last = version, time.monotonic()
            yield
        else:
            time.sleep(LOOK)


def wait(town: Town, run: str, until: Collection[GroupState], seconds: float | None = None) -> Group:
    """Wait until a run has one of these states.

    Args:
        town: whose run.
        run: which.
        until: the states.
        seconds: how long at most; for ever when None.

    Raises:
        NotFoundError: there is no such run.
        TimeoutError: it did not come to that.
    """
    with Journal(town.journal_path) as journal:
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            group = journal.groups.get(run)
            if group is None:
                raise NotFoundError("run", run)
            if group.state in until:
                return group
            if deadline is not None and time.monotonic() >= deadline:
                wanted = " or ".join(sorted(until))
                raise TimeoutError(f"{group.id.address} is {group.state} after {seconds:g} s, not {wanted}")
            version = journal.data_version
            while journal.data_version == version and (deadline is None or time.monotonic() < deadline):
                time.sleep(LOOK)
