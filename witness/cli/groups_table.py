"""Polecats and their sidecars as rows for programs and as a tree for people."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from witness.agents.channels import recorded_state
from witness.api import Witness
from witness.cli.polecat_lines import state_lines, write_lines
from witness.journal import Group, GroupState, Member
from witness.state.reader import StateReader
from witness.state.records import PolecatState

_COLOUR = {
    "RUNNING": "green",
    "SPAWNING": "yellow",
    "BACKOFF": "yellow",
    "DEGRADED": "yellow",
    "FAILED": "red",
    "ZOMBIE": "red",
    "LOST": "red",
}


def group_rows(
    witness: Witness, groups: Sequence[tuple[Group, list[Member]]], reader: StateReader | None = None
) -> list[dict[str, Any]]:
    """The rows that ``gt polecat list --json`` promises: of old its own keys, and all of each polecat's state.

    Args:
        witness: of the town.
        groups: living or ended ones, with their members.
        reader: one that is kept between two calls; a fresh one when None.
    """
    reader = reader or StateReader(witness.town, witness.journal)
    living = [pair for pair in groups if pair[0].state is not GroupState.NUKED]
    states = {each.run: each for each in reader.polecats(living)}
    return [_row(witness, group, members, states.get(group.id.run) or reader.ended(group)) for group, members in groups]


def _row(witness: Witness, group: Group, members: list[Member], state: PolecatState) -> dict[str, Any]:
    run_dir = witness.town.run_dir(group.id.run)
    channel = recorded_state(
        group.run_state.channel, group.run_state.channel_reason, run_dir / "spool", time.time() - group.created
    )
    notes = {member.name: member.note for member in members}
    found = state.as_json()
    sidecars = [
        {
            **each,
            "last_observed": _last_observed(run_dir / "beats" / each["name"]),
            "note": notes.get(each["name"], ""),
        }
        for each in found["sidecars"]
    ]
    return {
        **found,
        "state": state.lifecycle,
        "channel": str(channel.channel),
        "channel_seen": channel.seen,
        "channel_note": channel.reason,
        "sidecars": sidecars,
    }


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
    """Print them for people."""
    if not rows:
        print("no polecats")  # noqa: T201
        return
    write_lines(line for row in rows for line in _lines(row))


def _lines(row: dict[str, Any]) -> list[str]:
    lines = state_lines(row)
    if row["channel_note"] and not row["ended"]:
        lines.append(f"  channel {row['channel']}: {row['channel_note']}")
    return lines + [
        f"  {each['name']}: {each['note']}"
        for each in row["sidecars"]
        if each["note"] and not each["mute"] and not row["ended"]
    ]
