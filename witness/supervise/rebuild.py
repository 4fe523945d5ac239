"""A new journal from what runs: the run folders say who was started, the processes' markers say who lives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from witness.assignment import Assignment
from witness.clock import SystemClock
from witness.config.town import Town
from witness.errors import WitnessError
from witness.files import read_text
from witness.journal import Group, GroupState, Intent, Journal, Member, MemberKind, MemberState, RunState
from witness.launch.pane import read_started, reported_processes
from witness.names import GroupId
from witness.process import ProcessId
from witness.process.cgroup import cgroups_of
from witness.process.table import Markers, command_line, is_alive, read_table
from witness.tmux import Tmux
from witness.trust import resolve

_LEADERS = (("reaper", MemberKind.REAPER), ("keeper", MemberKind.REAPER), ("agent", MemberKind.AGENT))


def rebuild(town: Town) -> list[str]:
    """Record every polecat of this town that lives and is not on record. The caller holds the town's lock.

    Returns:
        The addresses of those that were recorded.
    """
    table = read_table()
    markers = Markers().read(table)
    adopted = []
    with Journal(town.journal_path) as journal:
        for run_dir in sorted((town.runtime / "runs").glob("*")):
            if journal.groups.get(run_dir.name) is not None:
                continue
            numbers = (read_started(run_dir) or {}).get("agent")
            if not numbers:
                _end_followed(journal, run_dir, markers)
                continue
            agent = ProcessId(*numbers)
            group = GroupId.from_marker(markers.get(agent, ""))
            # The pid of an earlier boot may be anybody's now; the marker is proof that it is this run's.
            if group is None or group.run != run_dir.name or not is_alive(agent, table):
                continue
            leaders = reported_processes(run_dir, group.marker)
            sidecars = _living_sidecars(group, markers)
            _record(town, journal, group, run_dir, leaders, sidecars)
            adopted.append(group.address)
    return adopted


def _end_followed(journal: Journal, run_dir: Path, markers: Mapping[ProcessId, str]) -> None:
    """Sidecars of a polecat that Gas Town has started: the patrol ends them, and gives it new ones."""
    assignments = _assignments(run_dir)
    if not assignments:
        return
    group = assignments[0].group
    living = _living_sidecars(group, markers)
    clock = SystemClock()
    if not living or journal.groups.named(group.polecat, group.rig):
        return
    now = clock.monotonic()
    with journal.transaction():
        journal.groups.add(
            Group(
                id=group, session=assignments[0].session, state=GroupState.RUNNING, boot=clock.boot, spawned_at=now,
                created=run_dir.stat().st_mtime, workdir=assignments[0].workdir, intent=Intent.NUKE, intent_at=now,
                intent_note="recorded anew", run_state=RunState(followed=True),
            )
        )  # fmt: skip
        for name, process in living.items():
            journal.members.add(Member(group.run, name, MemberKind.SIDECAR, MemberState.RUNNING, process, since=now))
        journal.note(clock.wall(), "recorded-anew", group.run, polecat=group.address)


def _living_sidecars(group: GroupId, markers: Mapping[ProcessId, str]) -> dict[str, ProcessId]:
    """The group's sidecars by name: they call themselves ``gt-sidecar MARKER NAME``."""
    found = {}
    for process, marker in markers.items():
        words = command_line(process).split() if marker == group.marker else []
        if len(words) == 3 and words[0] == "gt-sidecar":
            found[words[2]] = process
    return found


def _record(
    town: Town,
    journal: Journal,
    group: GroupId,
    run_dir: Path,
    leaders: dict[str, ProcessId],
    sidecars: dict[str, ProcessId],
) -> None:
    clock = SystemClock()
    now = clock.monotonic()
    assignments = _assignments(run_dir)
    known = next(iter(assignments), None)
    cgroups = cgroups_of(leaders["agent"].pid, group.run) if "agent" in leaders else {}
    with journal.transaction():
        journal.groups.add(
            Group(
                id=group,
                session=known.session if known else town.session(group.rig, group.polecat),
                state=GroupState.RUNNING,
                boot=clock.boot,
                spawned_at=now,
                created=run_dir.stat().st_mtime,
                workdir=known.workdir if known else str(town.root),
                run_state=RunState(
                    cgroup=cgroups.pop("", ""),
                    limit_cgroups=cgroups,
                    pane=_pane_of(town, leaders.get("reaper")),
                    task=known.task if known else "",
                    variables=known.variables if known else {},
                ),
            )
        )
        for name, kind in _LEADERS:
            if name in leaders:
                journal.members.add(Member(group.run, name, kind, MemberState.RUNNING, leaders[name], since=now))
        for each in assignments:
            process = sidecars.get(each.name)
            state = MemberState.RUNNING if process else MemberState.DECLARED
            journal.members.add(
                Member(group.run, each.name, MemberKind.SIDECAR, state, process, each.type, each.argument, since=now)
            )
        _fix_types(town, journal, group, assignments)
        journal.note(clock.wall(), "recorded-anew", group.run, polecat=group.address)


def _pane_of(town: Town, reaper: ProcessId | None) -> str:
    """The id of the pane whose first process is this; empty when tmux does not say."""
    try:
        panes = Tmux(*town.tmux_place).panes()
    except WitnessError:
        return ""
    return next((pane.id for pane in panes if reaper and pane.pid == reaper.pid), "")


def _fix_types(town: Town, journal: Journal, group: GroupId, assignments: list[Assignment]) -> None:
    """What the types were at the spawn is lost: the copy in the run's folder is one that the agent can write."""
    for each in assignments:
        try:
            definition = resolve(each.type, town.root, group.rig, Path(each.workdir))
        except WitnessError:
            continue  # its sidecar says why, when it is started
        journal.definitions.fix(group.run, each.type, definition.digest, definition.to_json())


def _assignments(run_dir: Path) -> list[Assignment]:
    found = []
    for path in sorted((run_dir / "sidecars").glob("*.json")):
        try:
            found.append(Assignment.from_json(read_text(path, below=run_dir.parent)))
        except (OSError, ValueError):
            continue
    return found
