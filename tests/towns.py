"""Scratch towns for tests with real tmux: ended by their own records, and proven empty."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from witness.api import Witness
from witness.config.resources import molecules_dir
from witness.config.town import Town
from witness.journal import Group
from witness.process import ProcessId
from witness.process.exits import wait_gone
from witness.process.table import GroupMembership, Markers, is_alive, read_table
from witness.tmux import Tmux


def make_town(place: Path) -> Town:
    """A standalone town with the sample repository in it."""
    town = Town.init(place)
    shutil.copytree(molecules_dir() / "demo-repo", place / "repo", dirs_exist_ok=True)
    return town


def living_of(witness: Witness, group: Group) -> set[ProcessId]:
    """Every process that belongs to a group by record, by marker or by descent, and is alive."""
    table = read_table()
    recorded = {member.process for member in witness.journal.members.of(group.id.run) if member.process}
    recorded |= witness.journal.groups.seen(group.id.run)
    found = GroupMembership(table, Markers().marks(table)).group(group.id.marker, recorded)
    return found | {process for process in recorded if is_alive(process, table)}


@contextmanager
def supervised(town: Town) -> Iterator[Witness]:
    """A Witness for the test; afterwards nothing of the town runs, or the test fails."""
    witness = Witness(town, environ={})
    tmux = Tmux(town.socket)
    try:
        yield witness
    finally:
        servers = {pane.server for pane in tmux.panes()}
        witness.end([group for group, _ in witness.polecats()])
        witness.stop()
        left = [group for group, _ in witness.polecats()]
        witness.close()
        rows = read_table()
        gone = wait_gone({rows[pid].process for pid in servers if pid in rows}, 5.0)
    assert not left, f"groups that did not end: {left}"
    assert not gone, f"a tmux server stays: {gone}"
