"""The state of a town as it changes: all of it first, then one record a change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from witness.journal import Journal
from witness.state.reader import StateReader
from witness.state.records import SCHEMA, PolecatState

#: Seconds between two looks at what costs microseconds: the journal's count of commits and the spools' sizes.
LOOK = 0.1
#: Seconds between two looks at the processes and screens, of which nobody tells.
ROUND = 1.0


def follow(reader: StateReader, journal: Journal, seconds: float | None = None) -> Iterator[dict[str, Any]]:
    """Follow a town.

    Args:
        reader: of its state.
        journal: its journal, the same that the reader has.
        seconds: end after so long without a change; never when None.

    Yields:
        ``{"kind": "snapshot", …}`` with the keys of a state; then ``{"kind": "change", "polecat": …}`` for a polecat
        that is new, does something else or has ended (it is then done or dead), and ``{"kind": "witness", …}``.
    """
    version = journal.data_version
    first = reader.read()
    yield {"kind": "snapshot", **first.as_json()}
    known = {each.run: each.lasting() for each in first.polecats}
    witness, signs = first.witness, reader.signs(known)
    rounded = changed = time.monotonic()
    while seconds is None or time.monotonic() - changed < seconds:
        time.sleep(LOOK)
        now = time.monotonic()
        fresh_version, fresh_signs = journal.data_version, reader.signs(known)
        if fresh_version == version and fresh_signs == signs and now - rounded < ROUND:
            continue
        version, signs, rounded = fresh_version, fresh_signs, now
        state = reader.read()
        news: list[PolecatState] = [each for each in state.polecats if known.get(each.run) != each.lasting()]
        gone = set(known) - {each.run for each in state.polecats}
        news += [reader.ended(group) for run in sorted(gone) if (group := journal.groups.get(run))]
        known = {each.run: each.lasting() for each in state.polecats}
        for each in news:
            yield {"kind": "change", "schema": SCHEMA, "time": state.time, "polecat": each.as_json()}
        if state.witness != witness:
            witness = state.witness
            yield {"kind": "witness", "schema": SCHEMA, "time": state.time, "witness": witness}
        elif not news:
            continue
        changed = now
