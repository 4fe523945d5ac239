"""What earlier runs left: processes, folders, and groups that nobody supervises."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from witness.api import Witness
from witness.config.town import Town
from witness.doctor.finding import Finding, note, ok, warning
from witness.errors import JournalError
from witness.journal import GroupState, Journal
from witness.launch import town_witness
from witness.launch.environment import tmux_around
from witness.names import GroupId
from witness.process import ProcessId
from witness.process.cgroup import cgroup_members
from witness.process.table import Markers, is_proven, process_name, read_table

# A run's logs are read within days, if at all.
_KEPT_SECONDS = 7 * 86400.0


def check_witness(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Living groups have a Witness."""
    running = town_witness.witness_process(town)
    living = _living(town)
    if running:
        yield ok("witness", f"the Witness (pid {running.pid}) supervises {len(living)} groups")
    elif living:
        yield warning(
            "witness",
            f"{len(living)} groups run and no Witness supervises them: {', '.join(living)}",
            "gt witness start, or run 'gt witness patrol' from cron",
            lambda: _start(town),
        )
    else:
        yield ok("witness", "no Witness runs, and nothing needs one")


def _living(town: Town) -> list[str]:
    if not town.journal_path.exists():
        return []
    try:
        with Journal(town.journal_path) as journal:
            return [group.id.address for group in journal.groups.living()]
    except JournalError:
        return []  # the database's own check says what is wrong with it


def _start(town: Town) -> str:
    town_witness.start_witness(town, tmux_around())
    return "started the Witness"


def check_processes(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """No process carries the marker of a run of this town that is over."""
    if not town.journal_path.exists():
        return
    left: list[ProcessId] = []
    with Journal(town.journal_path) as journal:
        for process, mark in Markers().marks(read_table()).items():
            group = GroupId.from_marker(mark.marker)
            known = journal.groups.get(group.run) if group else None
            if known and known.state is GroupState.NUKED and is_proven(mark.sign, known.run_state.pane):
                left.append(process)
    if left:
        names = ", ".join(f"{process.pid} ({process_name(process)})" for process in left[:5])
        yield warning(
            "leftovers",
            f"{len(left)} processes of ended runs live: {names}",
            "gt witness patrol ends them",
            lambda: _patrol(town),
        )


def check_cgroups(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """No cgroup of a run of this town that is over stands empty; what holds a process is told as a leftover."""
    if not town.journal_path.exists():
        return
    with Journal(town.journal_path) as journal:
        over = [(group, folder) for group in journal.groups.ended_with_cgroups() for folder in group.cgroups]
    empty = [folder for group, folder in over if Path(folder).exists() and not cgroup_members(folder, group.id.run)]
    if empty:
        yield warning(
            "cgroups",
            f"{len(empty)} empty cgroups of ended runs stand: {', '.join(empty[:3])}",
            "gt witness patrol takes them away",
            lambda: _patrol(town),
        )


def _patrol(town: Town) -> str:
    with Witness(town, environ={}) as witness:
        report = witness.patrol()
    return "patrolled: " + ("; ".join(report.errors) or "what ended runs had left is gone")


def check_run_folders(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Folders of runs that are over are not kept for ever."""
    if not town.journal_path.exists():
        return
    now = time.time()
    old: list[Path] = []
    with Journal(town.journal_path) as journal:
        for folder in sorted((town.runtime / "runs").glob("*")):
            group = journal.groups.get(folder.name)
            if group is not None and group.state is GroupState.NUKED and now - folder.stat().st_mtime > _KEPT_SECONDS:
                old.append(folder)
            elif group is None:
                yield note("runs", f"{folder} is of no recorded run", "delete it when no polecat of yours uses it")
    if old:
        yield warning("runs", f"{len(old)} folders of runs ended over a week ago", "delete them", lambda: _delete(old))


def _delete(folders: list[Path]) -> str:
    for folder in folders:
        shutil.rmtree(folder)
    return f"deleted {len(folders)} folders"
