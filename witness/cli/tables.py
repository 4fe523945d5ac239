"""What people read: polecats in a few lines each, tables, all of it whole at any width.

Nothing is cut: what does not fit folds between words, and where the output is no terminal a line stays one line.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from witness.agents.channels import recorded_state
from witness.api import Witness
from witness.journal import Group, GroupState, Member, WorktreeState
from witness.process.limits import shown_size
from witness.state.reader import StateReader
from witness.state.records import PolecatState
from witness.state.words import activity_words, length
from witness.worktrees.place import read_laid
from witness.worktrees.shown import facts_of, words_of

_COLOUR = {
    "working": "green",
    "waiting": "yellow",
    "stuck": "red",
    "dead": "red",
    "RUNNING": "green",
    "SPAWNING": "yellow",
    "BACKOFF": "yellow",
    "DEGRADED": "yellow",
    "FAILED": "red",
    "ZOMBIE": "red",
    "LOST": "red",
}


def state_lines(state: Mapping[str, Any]) -> list[str]:
    """A polecat of a state (its JSON form): itself first, then what belongs to it, indented."""
    colour = _COLOUR.get(state["activity"])
    name = click.style(state["address"], bold=True)
    if state["ended"]:
        told = "  ".join([name, click.style(state["activity"], fg=colour), state["ended"]["sentence"]])
        lines = [told, f"  run {state['run']}  {state['workdir']}"]
        if state["usage"]:
            lines += [f"  {_usage_words(state['usage'])}", f"  transcript {state['usage']['transcript']}"]
        return lines
    lifecycle = click.style(state["lifecycle"], fg=_COLOUR.get(state["lifecycle"]))
    head = [name, lifecycle, click.style(activity_words(state), fg=colour), f"pid {state['pid'] or '-'}"]
    lines = ["  ".join(head + ([click.style(state["zombie"], fg="red")] if state["zombie"] else []))]
    about = [f"up {length(state['uptime'])}"] if state["uptime"] is not None else []
    about += [f"branch {state['branch']}"] if state["branch"] else []
    about += [f"{state['memory'] / 2**20:.0f} MB"] if state["memory"] is not None else []
    about += [f"channel {state['channel']}", f"session {state['session']}"]
    lines.append("  " + "  ".join(about))
    if state["usage"]:
        lines.append(f"  {_usage_words(state['usage'])}")
    if state["limits"]:
        lines.append(f"  limits: {_limits_words(state['limits'])}")
    if state["task"]:
        lines.append(f"  task: {state['task']}")
    if state["last_action"]:
        lines.append(f"  last: {state['last_action']['what']} ({length(state['last_action']['age'])} ago)")
    for each in state["sidecars"]:
        shown = click.style(each["state"], fg=_COLOUR.get(each["state"]))
        text = f"  {each['name']}  {shown}  pid {each['pid'] or '-'}  restarts {each['restarts']}  injections {each['injections']}"  # noqa: E501
        if each["injections"]:
            text += f" ({_lines_words(each['lines'])})"
        lines.append(text + (f"  mute: {each['mute']}" if each["mute"] else ""))
    return lines


def _usage_words(usage: Mapping[str, Any]) -> str:
    """What an agent has used: tokens, dollars where they are known, and how full its window is."""
    dollars = f"${usage['dollars']:.2f}" if usage["dollars"] is not None else "cost unknown"
    words = [f"used {count(usage['tokens'])} tokens", dollars]
    if usage["context_tokens"] is not None:
        share = f" ({usage['context_share']:.0%} of its window)" if usage["context_share"] is not None else ""
        words.append(f"context {count(usage['context_tokens'])}{share}")
    return "  ".join([*words, " ".join(usage["models"])])


def _lines_words(lines: Mapping[str, int]) -> str:
    words = [f"{lines['delivered']} delivered", f"{lines['seen']} seen", f"{lines['heeded']} heeded"]
    return ", ".join(words + ([f"{lines['unheeded']} not heeded"] if lines["unheeded"] else []))


def count(number: int) -> str:
    """A large number in three digits or so: 950, 12.3 k, 4.56 M."""
    for size, unit in ((10**9, " G"), (10**6, " M"), (10**3, " k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return str(number)


def _limits_words(limits: Mapping[str, Any]) -> str:
    words = []
    for name, used in (("memory_high", None), ("memory_max", "memory")):
        if limits[name] is not None:
            spent = f"{shown_size(limits[used])} of " if used and limits[used] is not None else ""
            words.append(f"{name} {spent}{shown_size(limits[name])}")
    if limits["pids_max"] is not None:
        words.append(
            "pids_max " + (f"{limits['pids']} of " if limits["pids"] is not None else "") + str(limits["pids_max"])
        )
    words += [f"cpu_weight {limits['cpu_weight']}"] if limits["cpu_weight"] is not None else []
    return "  ".join(words + ([limits["met"]] if limits["met"] else []))


def write_lines(lines: Iterable[str]) -> None:
    """Print lines; on a terminal they fold between words, elsewhere each stays whole."""
    wide = terminal_width()
    for line in lines:
        click.echo("\n".join(_folded(line, wide)) if wide else line)


def terminal_width() -> int:
    """Columns of the terminal that is printed to, 0 where it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def write_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table whole: in columns where they fit or the output is no terminal, else row by row by name."""
    cells = [[" ".join(cell.split()) for cell in row] for row in rows]
    from rich.cells import cell_len  # the width of a text on the screen, in columns

    widths = [max(map(cell_len, column)) for column in zip(heads, *cells, strict=True)]
    wide = terminal_width()
    if not wide or sum(widths) + 2 * (len(widths) - 1) <= wide:
        for row in ([*heads], *cells):
            padded = (text + " " * (width - cell_len(text)) for text, width in zip(row, widths, strict=True))
            click.echo("  ".join(padded).rstrip())
        return
    for row in cells:
        write_lines([row[0], *(f"  {head}: {text}" for head, text in zip(heads[1:], row[1:], strict=True) if text)])


def _folded(line: str, wide: int) -> list[str]:
    if len(click.unstyle(line)) <= wide:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    # Colours would be counted as text; what folds is shown without them. A word longer than a line stays whole, and the
    # terminal itself goes on with it.
    return textwrap.wrap(
        click.unstyle(line), max(wide, 20), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False,
        drop_whitespace=True,
    )  # fmt: skip


# Polecats and their sidecars as rows for programs and as a tree for people.


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
    trees = witness.journal.worktrees.of_runs([group.id.run for group, _ in groups])
    standing = [each for each in trees.values() if each.state is not WorktreeState.REMOVED]
    facts = facts_of(standing, {each.run: read_laid(witness.town, each.run) for each in standing}) if standing else {}
    return [
        {
            **_row(witness, group, members, states.get(group.id.run) or reader.ended(group)),
            "worktree": facts.get(group.id.run),
        }
        for group, members in groups
    ]


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
    if row["worktree"]:
        lines.insert(1, f"  {words_of(row['worktree'])}")
    if row["channel_note"] and not row["ended"]:
        lines.append(f"  channel {row['channel']}: {row['channel_note']}")
    return lines + [
        f"  {each['name']}: {each['note']}"
        for each in row["sidecars"]
        if each["note"] and not each["mute"] and not row["ended"]
    ]
