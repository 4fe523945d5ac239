"""Looking at the world once, into a frozen snapshot."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from witness.clock import Clock
from witness.config.settings import Settings, changes
from witness.config.town import Town
from witness.errors import DeclarationError, WitnessError
from witness.files import read_bytes
from witness.journal import Group, GroupState, Journal, Member, MemberKind
from witness.launch.pane import read_started, reported_processes
from witness.names import GroupId
from witness.process import ProcessId
from witness.process.exits import UNKNOWN_EXIT, Exit, agent_exit, recorded_exit
from witness.process.table import (
    GroupMembership,
    Mark,
    Markers,
    Table,
    command_line,
    is_alive,
    is_proven,
    process_name,
    processor_seconds,
    read_table,
)
from witness.process.title import safe_title
from witness.tmux import Pane, Tmux
from witness.trust import Pins
from witness.trust.settings import trusted_settings

# A reaper's report that could not be read for so long will not be.
_REPORT_SECONDS = 10.0


class Presence(Enum):
    """What is known of a tmux session. Only a positive answer counts as an answer."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class MemberFact:
    """A member as recorded, and as found.

    Args:
        member: the record.
        alive: its recorded process runs.
        exit: how a sidecar or the agent ended, where that is known.
        beat: monotonic seconds of its last sign of life; None when there was none.
    """

    member: Member
    alive: bool = False
    exit: Exit = UNKNOWN_EXIT
    beat: float | None = None


@dataclass(frozen=True, slots=True)
class GroupFact:
    """A group as recorded, and as found.

    Args:
        group: the record.
        members: reaper, keeper and agent first.
        session: whether its tmux session stands.
        started: what the reaper reported, while the journal does not know it yet; empty when it reported a failure.
        busy: another process (its spawner, or one that nukes it) is at work on it.
        activity: a token that changes whenever the agent gives a sign of life.
        used: seconds of processor time that its tree has used; None without a deep look.
        strays: sidecars that run for this group without being on record, by name.
        descendants: everybody who belongs to it now; only from a deep look.
        seen: every descendant ever seen, as recorded.
        stopped: its rig is under an emergency stop: no sidecar may run.
    """

    group: Group
    members: tuple[MemberFact, ...]
    session: Presence = Presence.UNKNOWN
    started: Mapping[str, ProcessId] | None = None
    busy: bool = False
    activity: str = ""
    used: float | None = None
    strays: Mapping[str, ProcessId] = field(default_factory=dict)
    descendants: frozenset[ProcessId] = frozenset()
    seen: frozenset[ProcessId] = frozenset()
    stopped: bool = False

    def member(self, name: str) -> MemberFact | None:
        """The member of that name."""
        return next((fact for fact in self.members if fact.member.name == name), None)

    @property
    def sidecars(self) -> tuple[MemberFact, ...]:
        return tuple(fact for fact in self.members if fact.member.kind is MemberKind.SIDECAR)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The world at one instant.

    Args:
        now: monotonic seconds.
        boot: this boot.
        late: the look comes much later than it should (the machine slept, the Witness was stopped): ages mean nothing.
        groups: the living groups that were looked at.
        settings: by rig.
        orphans: processes that carry the marker of a run that has ended, by run.
        deep: the process table and tmux were read, not only the recorded processes.
    """

    now: float
    boot: str
    late: bool = False
    groups: tuple[GroupFact, ...] = ()
    settings: Mapping[str, Settings] = field(default_factory=dict)
    orphans: Mapping[str, frozenset[ProcessId]] = field(default_factory=dict)
    deep: bool = True


class _Panes:
    """All panes of the town's tmux, to be found by their first process or by their session."""

    def __init__(self, panes: list[Pane]) -> None:
        self.by_pid = {pane.pid: pane for pane in panes}
        # The oldest of a session's panes is the one that it was made with.
        self.by_session = {pane.session: pane for pane in sorted(panes, key=lambda pane: -pane.age)}


@dataclass(frozen=True, slots=True)
class _OfOthers:
    """The recorded processes of every group but one."""

    owners: Mapping[ProcessId | None, str]
    run: str

    def __contains__(self, process: object) -> bool:
        return isinstance(process, ProcessId) and self.owners.get(process, self.run) != self.run


def _recorded(members: Mapping[str, list[Member]]) -> Iterator[tuple[str, Member]]:
    return ((run, member) for run, each in members.items() for member in each if member.process)


class SnapshotReader:
    """Takes snapshots of a town.

    Args:
        town: the town.
        journal: its journal.
        tmux: its tmux.
        clock: time.

    Attributes:
        markers: who carries which marker.
        complaints: what is new and to be told to people, in lines.
        troubles: what was wrong at the last full look, in lines.
        spawning: the runs that this very process is spawning.
    """

    def __init__(self, town: Town, journal: Journal, tmux: Tmux, clock: Clock) -> None:
        self._town, self._journal, self._tmux, self._clock = town, journal, tmux, clock
        # Plain strings here and below: a round looks at hundreds of groups, and a Path costs more than a stat.
        self._runs = str(town.run_dir("any").parent)
        self.markers = Markers()
        self.complaints: list[str] = []
        self.troubles: list[str] = []
        self.spawning: set[str] = set()
        self._told: set[tuple[int | str, str]] = set()
        self._settings: dict[str, tuple[tuple[int, ...], Settings, str]] = {}

    def settings(self, rig: str) -> Settings:
        """The rig's settings, read again when a file has changed."""
        files = (self._town.root / "settings", self._town.root / rig / "settings")
        stamp = (*(_modified(folder / "witness.yaml", follow=True) for folder in files), _modified(Pins().path))
        known = self._settings.get(rig)
        if known is None or known[0] != stamp:
            try:
                fresh = trusted_settings(self._town.root, rig)
                if known and (changed := changes(known[1], fresh)):
                    self._journal.note(self._clock.wall(), "settings-read", rig=rig, changed=", ".join(changed))
                known = (stamp, fresh, "")
            except DeclarationError as error:
                # A slip while editing must not stop the supervision, nor keep anybody from ending a polecat.
                kept = "the settings of before are kept" if known else "the defaults hold"
                line = f"{kept}: {'; '.join(str(error).splitlines())}"
                known = (stamp, known[1] if known else Settings(), line)
            self._settings[rig] = known
        if known[2]:
            self._complain(stamp[0], known[2])
        return known[1]

    def _complain(self, about: int | str, line: str) -> None:
        """Tell people one line, once for each file's state or each run."""
        if line not in self.troubles:
            self.troubles.append(line)
        if (about, line) not in self._told:
            self._told.add((about, line))
            self.complaints.append(line)

    def quick_snapshot(self, runs: Collection[str], nukes: Collection[str] = (), *, late: bool = False) -> Snapshot:
        """Look at the recorded processes of some groups only: what a death asks for, in a millisecond."""
        facts = []
        for run in runs:
            group = self._journal.groups.get(run)
            if group and group.state is not GroupState.NUKED:
                stopped = self._town.stopped(group.id.rig)
                facts.append(self._fact(group, self._journal.members.of(run), None, nukes, stopped))
        return self._snapshot(facts, late=late, deep=False)

    def look(self, nukes: Collection[str] = (), *, late: bool = False) -> Snapshot:
        """Look at everything: every living group, tmux, the process table, the markers.

        Args:
            nukes: runs that this process itself is ending at this moment.
            late: see Snapshot.
        """
        self.troubles.clear()
        members = self._journal.members.of_living()
        table = read_table()
        carried = self.markers.marks(table)
        kinship = GroupMembership(table, carried)
        panes = self._panes()
        seen = self._journal.groups.seen_of_living()
        facts = []
        owners = {each.process: run for run, each in _recorded(members)}
        living = self._journal.groups.living()
        stopped = {rig: self._town.stopped(rig) for rig in {group.id.rig for group in living}}
        for group in living:
            fact = self._fact(group, members.get(group.id.run, []), table, nukes, stopped[group.id.rig])
            # Pids of an earlier boot mean nothing now.
            known = seen.get(group.id.run, set()) if group.boot == self._clock.boot else set()
            facts.append(self._deepened(fact, kinship, panes, known, owners))
        orphans = self._orphans(carried, {group.id.run for group in living})
        return self._snapshot(facts, late=late, orphans=orphans)

    def _snapshot(
        self,
        facts: list[GroupFact],
        *,
        late: bool = False,
        orphans: Mapping[str, frozenset[ProcessId]] | None = None,
        deep: bool = True,
    ) -> Snapshot:
        settings = {rig: self.settings(rig) for rig in {fact.group.id.rig for fact in facts}}
        return Snapshot(self._clock.monotonic(), self._clock.boot, late, tuple(facts), settings, orphans or {}, deep)

    def _panes(self) -> _Panes | None:
        try:
            return _Panes(self._tmux.panes())
        except WitnessError:  # tmux did not answer, or is not there any more
            return None

    def _fact(
        self, group: Group, members: list[Member], table: Table | None, nukes: Collection[str], stopped: bool
    ) -> GroupFact:
        run_dir = f"{self._runs}/{group.id.run}"
        this_boot = group.boot == self._clock.boot

        def told(line: str) -> None:
            self._complain(group.id.run, f"{group.id.address}: {line}")

        facts = []
        for member in members:
            alive = bool(member.process and this_boot and is_alive(member.process, table))
            sidecar = member.kind is MemberKind.SIDECAR
            facts.append(
                MemberFact(
                    member,
                    alive,
                    _exit(Path(run_dir), member, told) if not alive else UNKNOWN_EXIT,
                    self._beat(f"{run_dir}/beats/{member.name}", told) if sidecar else None,
                )
            )
        return GroupFact(
            group,
            tuple(facts),
            started=_started(Path(run_dir), group.id.marker, told, self._clock.monotonic() - group.spawned_at)
            if group.state is GroupState.SPAWNING and this_boot
            else None,
            busy=group.id.run in nukes or group.id.run in self.spawning or (this_boot and _worker_alive(group, table)),
            stopped=stopped,
        )

    def _deepened(
        self,
        fact: GroupFact,
        kinship: GroupMembership,
        panes: _Panes | None,
        seen: set[ProcessId],
        owners: Mapping[ProcessId | None, str],
    ) -> GroupFact:
        group = fact.group
        pane, presence = _find_pane(fact, panes, kinship)
        recorded = {each.member.process for each in fact.members if each.member.process and each.alive}
        others = _OfOthers(owners, group.id.run)
        descendants = kinship.group(group.id.marker, recorded | seen, others, group.run_state.pane)
        return GroupFact(
            group,
            fact.members,
            presence,
            fact.started,
            fact.busy,
            self._activity(group, pane),
            processor_seconds(descendants),
            _strays(group.id, set(kinship.roots(descendants)) - recorded),
            frozenset(descendants),
            frozenset(seen),
            fact.stopped,
        )

    def _activity(self, group: Group, pane: Pane | None) -> str:
        spool = f"{self._runs}/{group.id.run}/spool"
        signs = (spool, f"{spool}/events.jsonl", f"{self._town.root}/.runtime/heartbeats/{group.session}.json")
        return "/".join(str(_modified(sign)) for sign in signs) + f"/{pane.activity if pane else 0}"

    def _beat(self, path: str, told: Callable[[str], None]) -> float | None:
        try:
            text = read_bytes(path, 64, below=self._runs)
            beat = float(text) if text else math.nan  # empty: it is just about the first one
        except FileNotFoundError:
            return None
        except OSError as error:
            told(str(error))
            return None
        except ValueError:
            told(f"{path}: no sign of life, but other text")
            return None
        return beat if math.isfinite(beat) else None

    def _orphans(self, carried: Mapping[ProcessId, Mark], living: set[str]) -> dict[str, frozenset[ProcessId]]:
        """Marked processes of runs that the journal itself knows to be over; a strange marker is another town's."""
        found: dict[str, dict[ProcessId, str]] = {}
        for process, mark in carried.items():
            # Nearly all of them: a marker's last part is the run.
            if mark.marker.rpartition("/")[2] in living:
                continue
            if group := GroupId.from_marker(mark.marker):
                found.setdefault(group.run, {})[process] = mark.sign
        orphans = {}
        for run, signs in found.items():
            over = self._journal.groups.get(run)
            if over and (proven := {one for one, sign in signs.items() if is_proven(sign, over.run_state.pane)}):
                orphans[run] = frozenset(proven)
        return orphans


def _modified(path: Path | str, *, follow: bool = False) -> int:
    try:
        return os.stat(path, follow_symlinks=follow).st_mtime_ns  # noqa: PTH116
    except OSError:
        return 0


def _exit(run_dir: Path, member: Member, told: Callable[[str], None]) -> Exit:
    if member.kind is MemberKind.AGENT:
        return agent_exit(run_dir, told)
    if member.kind is MemberKind.SIDECAR and member.process:
        return recorded_exit(run_dir, member.name, member.process, told)
    return UNKNOWN_EXIT


def _find_pane(fact: GroupFact, panes: _Panes | None, kinship: GroupMembership) -> tuple[Pane | None, Presence]:
    """The polecat's pane, and whether its session stands. Somebody may have renamed the session, or moved the pane."""
    if panes is None:
        return None, Presence.UNKNOWN
    reaper = fact.member("reaper")
    pid = reaper.member.process.pid if reaper and reaper.alive and reaper.member.process else 0
    pane = panes.by_pid.get(pid) or panes.by_session.get(fact.group.session)
    if pane:
        return pane, Presence.PRESENT
    # Where a clean-up of /tmp took the socket away, tmux and its panes live on though nobody can reach them.
    if not panes.by_pid and pid and process_name(kinship.parent(pid)).startswith("tmux"):
        return None, Presence.UNKNOWN
    return None, Presence.ABSENT


def _started(run_dir: Path, marker: str, told: Callable[[str], None], age: float) -> dict[str, ProcessId] | None:
    wrong: list[str] = []
    report = read_started(run_dir, wrong.append)
    found = reported_processes(run_dir, marker, wrong.append)
    for line in dict.fromkeys(wrong):
        told(line)
    # What the agent has put into the report's place does not become one; a disk may fail for a moment.
    if (report and "error" in report) or (wrong and age > _REPORT_SECONDS):
        return {}
    return found or None


def _worker_alive(group: Group, table: Table | None) -> bool:
    """Whether the process that said it is spawning or ending this group still lives."""
    worker = group.run_state.worker
    if worker is None or worker.pid == os.getpid():
        return False  # what we ourselves are at, we know better than the journal
    return is_alive(worker, table)


def _strays(group: GroupId, unrecorded: Collection[ProcessId]) -> dict[str, ProcessId]:
    strays = {}
    for process in unrecorded:
        words = command_line(process).split()
        if words[:2] == ["gt-sidecar", safe_title(group.marker)] and len(words) == 3:
            strays[words[2]] = process
    return strays
