"""The journal's groups, with their members and the definitions that their sidecars were given."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any, Unpack

from witness.errors import JournalError, NotFoundError, UsageError
from witness.journal.records import (
    Group,
    GroupState,
    Intent,
    Member,
    MemberKind,
    MemberState,
    RunState,
    RunStateChanges,
)
from witness.names import GroupId, split_address
from witness.process import ProcessId

if TYPE_CHECKING:
    from witness.journal.database import Journal
if TYPE_CHECKING:
    from witness.journal.database import Journal

if TYPE_CHECKING:
    from witness.journal.database import Journal

_COLUMNS = (
    "run, rig, polecat, session, state, boot, spawned_at, created, workdir, agent, molecule, intent, intent_at, "
    "intent_note, zombie, task, bead, variables, overrides, followed, cgroup, worker_pid, worker_started, orphans, "
    "session_missing, activity, activity_at, channel, channel_reason, client_version, pane, "
    "limits, limit_cgroups, limits_met, by_person, paused_at"
)


class GroupTable:
    """Reads and writes groups. A name has at most one living run; the database itself sees to it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def add(self, group: Group) -> None:
        """Record a new run.

        Raises:
            UsageError: a polecat of that name lives already.
        """
        try:
            self._journal.run(
                f"INSERT INTO groups ({_COLUMNS}) VALUES ({', '.join('?' * len(_COLUMNS.split(', ')))})",  # noqa: S608
                group.id.run, group.id.rig, group.id.polecat, group.session, group.state, group.boot,
                group.spawned_at, group.created, group.workdir, json.dumps(group.agent), group.molecule,
                group.intent, group.intent_at, group.intent_note, group.zombie, *_state_values(group.run_state),
            )  # fmt: skip
        except JournalError as error:
            if isinstance(error.__cause__, sqlite3.IntegrityError):
                raise UsageError(
                    f"polecat {group.id.address} is already running: nuke it first, or choose another name"
                ) from error
            raise

    def living(self, rig: str = "") -> list[Group]:
        """All runs that are not NUKED, by age; of one rig, or of all."""
        return self._select("state != 'NUKED' AND ? IN ('', rig)", rig)

    def ended(self, since: float = 0.0, rig: str = "") -> list[Group]:
        """Runs that are NUKED, by age: those that ended after a wall-clock second; of one rig, or of all."""
        return self._select(
            "state = 'NUKED' AND ? IN ('', rig) AND run IN"
            " (SELECT run FROM events WHERE kind = 'group-nuked' AND time >= ?)",
            rig, since,
        )  # fmt: skip

    def ended_with_cgroups(self) -> list[Group]:
        """Runs that are NUKED and whose cgroups could not be taken away yet."""
        return self._select("state = 'NUKED' AND (cgroup != '' OR limit_cgroups != '{}')")

    def get(self, run: str) -> Group | None:
        """The run, living or ended."""
        return next(iter(self._select("run = ?", run)), None)

    def named(self, polecat: str, rig: str = "") -> list[Group]:
        """Living runs of that polecat name or session; of one rig, or of all."""
        return self._select("state != 'NUKED' AND ? IN (polecat, session) AND ? IN ('', rig)", polecat, rig)

    def find(self, target: str, *, ended: bool = False) -> Group:
        """The polecat that a person means.

        Args:
            target: ``name``, ``rig/name``, ``rig/polecats/name`` or a session.
            ended: accept the last run of that name when none lives.

        Raises:
            NotFoundError: no such polecat.
            UsageError: the name lives in several rigs.
        """
        rig, name = split_address(target)
        found = self.named(name, rig)
        if len(found) > 1:
            raise UsageError(f"{target!r} is in several rigs: write {' or '.join(each.id.address for each in found)}")
        if found:
            return found[0]
        if ended and (last := self.last(name, rig)):
            return last
        known = {each for group in self.living() for each in (group.id.polecat, group.id.address)}
        if ended:
            known |= {each.id.polecat for each in self.last_of_each()}
        raise NotFoundError("polecat", target, "'gt polecat list' shows those that run", known)

    def last(self, polecat: str, rig: str = "") -> Group | None:
        """The newest run of that name, living or ended."""
        found = self._select("? IN (polecat, session) AND ? IN ('', rig)", polecat, rig)
        return found[-1] if found else None

    def last_of_each(self) -> list[Group]:
        """The newest run of every polecat, living or ended."""
        return self._select("rowid IN (SELECT max(rowid) FROM groups GROUP BY rig, polecat)")

    def move(self, run: str, old: GroupState, new: GroupState) -> bool:
        """Change the state if it still is ``old``; False when somebody was quicker."""
        return self._journal.run("UPDATE groups SET state = ? WHERE run = ? AND state = ?", new, run, old).rowcount == 1

    def set_intent(self, run: str, intent: Intent, at: float, note: str = "") -> bool:
        """Record what is wanted of a living run. A wish to nuke is never weakened to done.

        Returns:
            False when the run has ended, or more is wanted of it already.
        """
        cursor = self._journal.run(
            "UPDATE groups SET intent = ?, intent_at = ?, intent_note = ? WHERE run = ? AND state != 'NUKED'"
            " AND intent != 'nuke' AND intent != ?",
            intent, at, note, run, intent,
        )  # fmt: skip
        return cursor.rowcount == 1

    def mark_zombie(self, run: str, zombie: str) -> bool:
        """Remember the class that a group was found in; False when that was known, so that it is reported once."""
        return self._journal.run("UPDATE groups SET zombie = ? WHERE run = ? AND zombie != ?", zombie, run, zombie).rowcount == 1  # noqa: E501 # fmt: skip

    def change(self, run: str, **changes: Unpack[RunStateChanges]) -> None:
        """Write parts of a run's state; what is not named stays."""
        columns = _state_columns(changes)
        if columns:
            assignments = ", ".join(f"{column} = ?" for column in columns)
            self._journal.run(f"UPDATE groups SET {assignments} WHERE run = ?", *columns.values(), run)  # noqa: S608

    # -- every descendant ever seen --------------------------------------------------------------------------------

    def record_descendants(self, run: str, processes: set[ProcessId]) -> None:
        """Remember processes that belong to the run, however they may hide later."""
        for process in processes:
            self._journal.run("INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", run, process.pid, process.started)

    def seen(self, run: str) -> set[ProcessId]:
        """All that ``saw`` was told."""
        rows = self._journal.run("SELECT pid, started FROM seen WHERE run = ?", run).fetchall()
        return {ProcessId(pid, started) for pid, started in rows}

    def seen_of_living(self) -> dict[str, set[ProcessId]]:
        """The same of every living run, by run: one query for the whole town."""
        rows = self._journal.run(
            "SELECT s.run, s.pid, s.started FROM seen s JOIN groups g ON g.run = s.run WHERE g.state != 'NUKED'"
        ).fetchall()
        found: dict[str, set[ProcessId]] = {}
        for run, pid, started in rows:
            found.setdefault(run, set()).add(ProcessId(pid, started))
        return found

    def drop_descendants(self, run: str, gone: set[ProcessId]) -> None:
        """Drop processes that are proven dead, so that the list does not grow through the night."""
        for process in gone:
            self._journal.run("DELETE FROM seen WHERE run = ? AND pid = ? AND started = ?", run, process.pid, process.started)  # noqa: E501 # fmt: skip

    def _select(self, where: str, *values: Any) -> list[Group]:
        rows = self._journal.run(
            f"SELECT {_COLUMNS} FROM groups WHERE {where} ORDER BY created, run",  # noqa: S608 - our own text
            *values,
        ).fetchall()
        return [_group(row) for row in rows]


def _state_values(state: RunState) -> tuple[Any, ...]:
    return (
        state.task,
        state.bead,
        json.dumps(dict(state.variables)),
        json.dumps({name: dict(fields) for name, fields in state.overrides.items()}, default=str),
        state.followed,
        state.cgroup,
        state.worker.pid if state.worker else None,
        state.worker.started if state.worker else None,
        json.dumps(state.orphans),
        state.session_missing,
        state.activity,
        state.activity_at,
        state.channel,
        state.channel_reason,
        state.client_version,
        state.pane,
        json.dumps(dict(state.limits)),
        json.dumps(dict(state.limit_cgroups)),
        state.limits_met,
        state.by_person,
        state.paused_at,
    )


def _state_columns(changes: RunStateChanges) -> dict[str, Any]:
    columns: dict[str, Any] = dict(changes)
    if "worker" in changes:
        worker = columns.pop("worker")
        columns |= {"worker_pid": worker.pid if worker else None, "worker_started": worker.started if worker else None}
    for name in ("orphans", "limits", "limit_cgroups"):
        if name in changes:
            columns[name] = json.dumps(columns[name])
    return columns


def _group(row: tuple[Any, ...]) -> Group:
    (run, rig, polecat, session, state, boot, spawned_at, created, workdir, agent, molecule, intent, intent_at,
     note, zombie, task, bead, variables, overrides, followed, cgroup, worker_pid, worker_started, orphans,
     session_missing, activity, activity_at, channel, channel_reason, client_version, pane,
     limits, limit_cgroups, limits_met, by_person, paused_at) = row  # fmt: skip
    return Group(
        id=GroupId(rig, polecat, run),
        session=session,
        state=GroupState(state),
        boot=boot,
        spawned_at=spawned_at,
        created=created,
        workdir=workdir,
        agent=tuple(json.loads(agent)),
        molecule=molecule,
        intent=Intent(intent),
        intent_at=intent_at,
        intent_note=note,
        zombie=zombie,
        run_state=RunState(
            task=task,
            bead=bead,
            variables=json.loads(variables),
            overrides=json.loads(overrides),
            followed=bool(followed),
            by_person=bool(by_person),
            cgroup=cgroup,
            worker=ProcessId(worker_pid, worker_started) if worker_pid else None,
            orphans=tuple(json.loads(orphans)),
            session_missing=session_missing,
            activity=activity,
            activity_at=activity_at,
            channel=channel,
            channel_reason=channel_reason,
            client_version=client_version,
            pane=pane,
            limits=json.loads(limits),
            limit_cgroups=json.loads(limit_cgroups),
            limits_met=limits_met,
            paused_at=paused_at,
        ),
    )


# The journal's definitions: what each sidecar type of a run was when it was spawned.


class DefinitionTable:
    """Keeps each definition once, by its digest, however many runs have it. Their text is ``witness.trust``'s."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def fix(self, run: str, type: str, digest: str, body: str) -> None:
        """Record what a type is for a run, for good: a second definition of the same type changes nothing."""
        with self._journal.transaction():
            self._journal.run("INSERT OR IGNORE INTO definitions VALUES (?, ?)", digest, body)
            self._journal.run("INSERT OR IGNORE INTO types_of_run VALUES (?, ?, ?)", run, type, digest)

    def of(self, run: str, type: str) -> str:
        """The body of a type's definition for a run; empty when none was fixed."""
        row = self._journal.run(
            "SELECT body FROM definitions JOIN types_of_run USING (digest) WHERE run = ? AND type = ?", run, type
        ).fetchone()
        return str(row[0]) if row else ""

    def digests(self, run: str) -> dict[str, str]:
        """The digest of each type of a run."""
        return dict(self._journal.run("SELECT type, digest FROM types_of_run WHERE run = ?", run).fetchall())


# The journal's members.

_MEMBER_COLUMNS = "run, name, kind, state, pid, started, type, argument, since, retry_at, crashes, restarts, note"


class MemberTable:
    """Reads and writes members. State changes go through ``witness.supervise.lifecycle`` first."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def add(self, member: Member) -> None:
        """Record a member."""
        self._journal.run(
            f"INSERT INTO members ({_MEMBER_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            member.run, member.name, member.kind, *_mutable(member)[:3], member.type, member.argument,
            *_mutable(member)[3:],
        )  # fmt: skip

    def update(self, member: Member, expected: MemberState) -> bool:
        """Write a member's new state if it still is in the ``expected`` one; False when somebody was quicker."""
        cursor = self._journal.run(
            "UPDATE members SET state = ?, pid = ?, started = ?, since = ?, retry_at = ?, crashes = ?, restarts = ?,"
            " note = ? WHERE run = ? AND name = ? AND state = ?",
            *_mutable(member), member.run, member.name, expected,
        )  # fmt: skip
        return cursor.rowcount == 1

    def of(self, run: str) -> list[Member]:
        """The members of a run: reaper and agent first, then the sidecars as declared."""
        rows = self._journal.run(f"SELECT {_MEMBER_COLUMNS} FROM members WHERE run = ? ORDER BY rowid", run).fetchall()  # noqa: S608
        return [_member(row) for row in rows]

    def of_living(self) -> dict[str, list[Member]]:
        """The members of every living run, by run: one query for the whole town."""
        columns = ", ".join(f"m.{name}" for name in _MEMBER_COLUMNS.split(", "))
        rows = self._journal.run(
            f"SELECT {columns} FROM members m JOIN groups g ON g.run = m.run WHERE g.state != 'NUKED' ORDER BY m.rowid"  # noqa: S608
        ).fetchall()
        found: dict[str, list[Member]] = {}
        for row in rows:
            member = _member(row)
            found.setdefault(member.run, []).append(member)
        return found


def _mutable(member: Member) -> tuple[Any, ...]:
    process = member.process
    return (
        member.state,
        process.pid if process else None,
        process.started if process else None,
        member.since,
        member.retry_at,
        json.dumps(member.crashes),
        member.restarts,
        member.note,
    )


def _member(row: tuple[Any, ...]) -> Member:
    run, name, kind, state, pid, started, type_, argument, since, retry_at, crashes, restarts, note = row
    return Member(
        run=run,
        name=name,
        kind=MemberKind(kind),
        state=MemberState(state),
        process=ProcessId(pid, started) if pid else None,
        type=type_,
        argument=argument,
        since=since,
        retry_at=retry_at,
        crashes=() if crashes == "[]" else tuple(json.loads(crashes)),
        restarts=restarts,
        note=note,
    )
