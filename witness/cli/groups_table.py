"""Polecats and their sidecars as rows for programs and as a tree for people."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from witness.agents.channels import recorded_state
from witness.api import Witness
from witness.journal import Group, Member, MemberKind, MemberState

_COLOUR = {
    "RUNNING": "green",
    "SPAWNING": "yellow",
    "BACKOFF": "yellow",
    "DEGRADED": "yellow",
    "FAILED": "red",
    "ZOMBIE": "red",
    "LOST": "red",
}


def group_rows(witness: Witness, groups: Sequence[tuple[Group, list[Member]]]) -> list[dict[str, Any]]:
    """The rows that ``gt polecat list --json`` promises."""
    return [_row(witness, group, members) for group, members in groups]


def _row(witness: Witness, group: Group, members: list[Member]) -> dict[str, Any]:
    agent = next((member for member in members if member.kind is MemberKind.AGENT), None)
    run_dir = witness.town.run_dir(group.id.run)
    channel = recorded_state(
        group.run_state.channel, group.run_state.channel_reason, run_dir / "spool", time.time() - group.created
    )
    said: dict[str, int] = {}
    for decision in witness.journal.decisions.injected(group.id.run):
        said[decision.sidecar] = said.get(decision.sidecar, 0) + 1
    return {
        "polecat": group.id.polecat,
        "rig": group.id.rig,
        "session": group.session,
        "run": group.id.run,
        "state": str(group.state),
        "zombie": group.zombie,
        "pid": agent.process.pid if agent and agent.process else None,
        "molecule": group.molecule,
        "channel": str(channel.channel),
        "channel_seen": channel.seen,
        "channel_note": channel.reason,
        "sidecars": [
            {
                "name": member.name,
                "type": member.type,
                "state": str(member.state),
                "pid": member.process.pid if member.process and member.state in _LIVE else None,
                "restarts": member.restarts,
                "injections": said.get(member.name, 0),
                "last_observed": _last_observed(run_dir / "beats" / member.name),
                "note": member.note,
            }
            for member in members
            if member.kind is MemberKind.SIDECAR
        ],
    }


_NO_TERMINAL = 10_000
_LIVE = (MemberState.SPAWNING, MemberState.RUNNING, MemberState.STOPPING)


def _last_observed(beat: Path) -> float | None:
    """Wall-clock second of the sidecar's last sign of life."""
    try:
        return round(beat.stat().st_mtime, 3)
    except OSError:
        return None


def tree(rows: Sequence[dict[str, Any]]) -> Any:
    """The rows as a rich tree."""
    from rich.text import Text
    from rich.tree import Tree

    root = Tree(Text("town", style="bold"))
    for row in rows:
        line = Text.assemble(
            (f"{row['rig']}/{row['polecat']}", "bold"),
            "  ",
            (row["state"], _COLOUR.get(row["state"], "")),
            f"  {row['session']}  pid {row['pid'] or '-'}",
            (f"  {row['zombie']}" if row["zombie"] else "", "red"),
            (f"  {row['channel']}", "dim" if row["channel_seen"] else "yellow"),
            (f": {row['channel_note']}" if row["channel_note"] else "", "dim"),
        )
        branch = root.add(line)
        for sidecar in row["sidecars"]:
            branch.add(
                Text.assemble(
                    f"{sidecar['name']:<14}",
                    (f"{sidecar['state']:<9}", _COLOUR.get(sidecar["state"], "")),
                    f" pid {sidecar['pid'] or '-':<8} restarts {sidecar['restarts']}",
                    f"  injections {sidecar['injections']}",
                    (f"  {sidecar['note']}" if sidecar["note"] else "", "dim"),
                )
            )
    return root


def show_groups(rows: Sequence[dict[str, Any]]) -> None:
    """Print the tree."""
    from rich.console import Console

    if not rows:
        print("no polecats")  # noqa: T201
        return
    # For a program or a file nothing is cut off where some terminal would end.
    Console(soft_wrap=True, width=None if sys.stdout.isatty() else _NO_TERMINAL).print(tree(rows))
