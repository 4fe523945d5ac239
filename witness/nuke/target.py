"""Who must go, and who must not."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from witness.journal import Group, Member, MemberKind
from witness.process.identity import ProcessId
from witness.process.table import Table, ancestors


@dataclass(frozen=True, slots=True)
class Target:
    """A group that is to be ended.

    Args:
        run: its run.
        marker: the marker that its processes carry.
        recorded: identities on record: its members, and every descendant ever seen.
        keepers: of these, the reapers. They hold the orphans, so they are the last to be killed; when everything else
            is gone they end by themselves.
        cgroup: folder of the group's own cgroup, empty when it has none.
        pane: the group's pane, empty when it is not known.
    """

    run: str
    marker: str
    recorded: frozenset[ProcessId]
    keepers: frozenset[ProcessId] = field(default_factory=frozenset)
    cgroup: str = ""
    pane: str = ""


def target(group: Group, members: Iterable[Member], seen: Iterable[ProcessId]) -> Target:
    """What the journal knows of a group's processes; of a polecat that Gas Town has started, only the sidecars."""
    followed = group.run_state.followed
    processes = {
        member.process: member.kind
        for member in members
        if member.process and not (followed and member.kind is not MemberKind.SIDECAR)
    }
    return Target(
        run=group.id.run,
        marker=group.id.marker,
        recorded=frozenset(processes) | (frozenset() if followed else frozenset(seen)),
        keepers=frozenset(process for process, kind in processes.items() if kind is MemberKind.REAPER),
        cgroup=group.run_state.cgroup,
        pane=group.run_state.pane,
    )


def foreign_to(table: Table, infrastructure: Iterable[ProcessId], others: Iterable[ProcessId]) -> set[ProcessId]:
    """Everybody whom no nuke may touch, however they descend.

    Args:
        table: the process table.
        infrastructure: the Witness, the nursery, the tmux server.
        others: recorded members of groups that are not to be ended.

    Returns:
        These, init, and the calling process with all its ancestors.
    """
    kept = set(infrastructure) | set(others)
    kept.update(table[pid].process for pid in {1, *ancestors(os.getpid(), table)} if pid in table)
    return kept


def is_inside(targets: Iterable[Target], table: Table) -> bool:
    """Whether the calling process itself runs inside one of the targets, so that somebody else must end it."""
    line = {table[pid].process for pid in ancestors(os.getpid(), table) if pid in table}
    return any(line & goal.recorded for goal in targets)
