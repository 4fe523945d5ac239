"""Deliveries in the patrol's round: receipts of living groups, and the end of a queue with its run."""

from __future__ import annotations

import os
from collections.abc import Iterable

from witness.clock import Clock
from witness.journal import Group, Journal
from witness.town import Town
from witness.transport.nudge_queue import NudgeQueue
from witness.transport.receipts import settle_deliveries


class Deliveries:
    """What the Witness does about nudges.

    Args:
        town: the town.
        journal: its journal.
        clock: time.
    """

    def __init__(self, town: Town, journal: Journal, clock: Clock) -> None:
        self._town, self._journal, self._clock = town, journal, clock

    def settle(self, groups: Iterable[Group]) -> list[str]:
        """Fold what became of the nudges of these groups into the journal; returns what could not be done."""
        errors = []
        # One listing tells which sessions ever had a nudge; most groups of a large town had none.
        try:
            queues = set(os.listdir(self._town.queue_dir("any").parent))  # noqa: PTH208
        except FileNotFoundError:
            return []
        for group in groups:
            folder = self._town.queue_dir(group.session)
            if folder.name not in queues:
                continue
            try:
                settle_deliveries(self._journal, folder, self._clock)
            except OSError as error:
                errors.append(f"{group.id.address}: its deliveries cannot be read: {error}")
        return errors

    def close(self, group: Group) -> list[str]:
        """Its agent has ended: what it never got goes to the dead-letter folder, with that as the reason."""
        folder = self._town.queue_dir(group.session)
        try:
            NudgeQueue(folder, self._clock).close(f"the run {group.id.run} has ended")
            settle_deliveries(self._journal, folder, self._clock, last=True)
        except OSError as error:
            return [f"{group.id.address}: its queue cannot be closed: {error}"]
        return []
