"""``gt du``: what the town takes on the disk, and how long it stays."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import click

from witness.cli.context import open_journal, print_json
from witness.cli.tables import write_lines, write_table
from witness.config.settings import written
from witness.config.town import Town
from witness.errors import WitnessError
from witness.journal import Journal
from witness.process.limits import shown_size
from witness.state.records import rfc3339
from witness.supervise.retention import KEPT_LONGER, folder_size
from witness.trust.settings import trusted_settings

_LARGEST = 10


@click.command(epilog="Examples:\n\n  gt du\n\n  gt du --json")
@click.option("--last", "-n", "most", type=click.IntRange(0), default=_LARGEST, show_default=True, help="So many runs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; docs/json.md has its keys.")
def du(most: int, as_json: bool) -> None:
    """What this town takes on the disk: its journal, its largest runs, the rest, and how long it stays.

    Agents' worktrees and what they work on are not counted.
    """
    town = Town.find()
    try:
        retention: float | None = trusted_settings(town.root).retention
    except WitnessError:
        retention = None  # a slip in the settings keeps nobody from looking
    with open_journal(town) as journal:
        runs = _runs(town, journal)
    parts = {
        "journal": sum(_size(each) for each in town.runtime.glob(f"{town.journal_path.name}*")),
        "runs": sum(each.bytes for each in runs),
        "queues": folder_size(town.root / ".runtime" / "nudge_queue"),
    }
    parts["other"] = max(folder_size(town.runtime) - parts["journal"] - parts["runs"], 0)
    found = {
        "schema": 1,
        "bytes": sum(parts.values()),
        "parts": parts,
        "retention": retention,
        "retention_kept": retention * KEPT_LONGER if retention is not None else None,
        "runs": [asdict(each) for each in runs[:most]],
        "run_count": len(runs),
    }
    if as_json:
        print_json(found)
        return
    write_lines([f"{town.runtime}: {shown_size(sum(parts.values()))}"])
    write_table(["what", "size"], [[name, shown_size(size)] for name, size in parts.items()])
    write_lines([_stays(retention)])
    if runs:
        write_table(
            ["run", "polecat", "ended", "size"],
            [[each.run, each.address or "-", each.ended or "-", shown_size(each.bytes)] for each in runs[:most]],
        )  # fmt: skip


def _stays(retention: float | None) -> str:
    if retention is None:
        return "the settings have a fault, so nothing is swept: gt config show"
    if not retention:
        return "nothing is ever swept (retention: 0)"
    longer = written("retention", retention * KEPT_LONGER)
    return (
        f"spools and logs go {written('retention', retention)} after a run's end, its last screen and its history after"
        f" {longer} (setting retention)"
    )


@dataclass(frozen=True, slots=True)
class _RunSize:
    run: str
    address: str | None
    ended: str | None
    bytes: int


def _runs(town: Town, journal: Journal) -> list[_RunSize]:
    found = []
    for folder in (town.runtime / "runs").glob("*"):
        group = journal.groups.get(folder.name)
        over = journal.run("SELECT MAX(time) FROM events WHERE run = ? AND kind = 'nuked'", folder.name).fetchone()[0]
        ended = rfc3339(over) if over else None
        found.append(_RunSize(folder.name, group.id.address if group else None, ended, folder_size(folder)))
    return sorted(found, key=lambda each: -each.bytes)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_blocks * 512
    except OSError:
        return 0
