"""Scratch towns, with real tmux: ended by their own records, and proven empty."""

from __future__ import annotations

import shutil
import tempfile
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
    """Make a standalone town with the sample repository under ``repo``.

    Args:
        place: its root; made if it is not there.
    """
    town = Town.init(place)
    shutil.copytree(molecules_dir() / "demo-repo", place / "repo", dirs_exist_ok=True)
    return town


def living_of(witness: Witness, group: Group) -> set[ProcessId]:
    """Every living process that belongs to a group by record, by marker or by descent.

    Args:
        witness: of its town.
        group: which; it may have ended.
    """
    table = read_table()
    recorded = {member.process for member in witness.journal.members.of(group.id.run) if member.process}
    recorded |= witness.journal.groups.seen(group.id.run)
    found = GroupMembership(table, Markers().marks(table)).group(group.id.marker, recorded)
    return found | {process for process in recorded if is_alive(process, table)}


@contextmanager
def supervised(town: Town) -> Iterator[Witness]:
    """A ``Witness`` of a town for the length of a test.

    At the end all polecats, the Witness and the sidecars of the town are ended.

    Args:
        town: which.

    Raises:
        AssertionError: a group or the town's tmux server did not end.
    """
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
        stays = wait_gone({rows[pid].process for pid in servers if pid in rows}, 5.0)
    if left or stays:
        raise AssertionError(f"groups that did not end: {left}; tmux servers that stay: {stays}")


@contextmanager
def scratch_town() -> Iterator[Witness]:
    """A ``Witness`` of a new town in a temporary folder (``witness.town``); both are gone afterwards.

    Raises:
        AssertionError: as ``supervised``.
    """
    with tempfile.TemporaryDirectory(prefix="gt-town-") as folder, supervised(make_town(Path(folder))) as witness:
        yield witness
