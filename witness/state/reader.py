"""Reading the state of a town: the journal, the processes, the screens and what the clients reported last."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from witness.agents.channels import recorded_state
from witness.agents.clients import ANY, client_for
from witness.agents.screen import read_prompt, read_trouble
from witness.agents.usage import UsageReader
from witness.clock import Clock, SystemClock
from witness.config.town import Town
from witness.errors import WitnessError
from witness.events.session_transcript import session_transcript
from witness.events.spool_writer import CURRENT
from witness.files import read_project
from witness.journal import Group, GroupState, Intent, Journal, Member, MemberKind, MemberState
from witness.journal.decisions import Lines
from witness.launch.town_witness import witness_process
from witness.prices import Prices
from witness.process import ProcessId
from witness.process.limits import Limits, read_use
from witness.process.table import LINUX, GroupMembership, Markers, Table, is_alive, read_table, usage_of
from witness.state.activity import Activity, LastEvents, Screen, action_text, activity_of, last_events
from witness.state.ended import ended_state
from witness.state.records import (
    SCHEMA,
    Action,
    ActivityKind,
    LimitState,
    LineState,
    PolecatState,
    SidecarState,
    TownState,
    UsageState,
    rfc3339,
)
from witness.tmux import Pane, Tmux

_LIVE = (MemberState.SPAWNING, MemberState.RUNNING, MemberState.STOPPING)
_TASK = 200
# The type of sidecar whose word tells that an agent goes in a circle.
_CIRCLES = "loop"


@dataclass
class _Look:
    """What is the same for all polecats of one reading."""

    table: Table = field(default_factory=dict)
    trees: Mapping[str, Collection[ProcessId]] = field(default_factory=dict)
    screens: Mapping[str, Screen] = field(default_factory=dict)
    lines: Mapping[tuple[str, str], Lines] = field(default_factory=dict)
    supervised: bool = False


class StateReader:
    """Reads the state of one town, again and again.

    Args:
        town: which.
        journal: its journal; only read.
        clock: time.
    """

    def __init__(self, town: Town, journal: Journal, clock: Clock | None = None) -> None:
        self._town, self._journal, self._clock = town, journal, clock or SystemClock()
        self._tmux = Tmux(*town.tmux_place)
        self._markers = Markers()
        self._used: dict[str, tuple[float, float]] = {}
        self._events: dict[str, tuple[tuple[int, int], LastEvents]] = {}
        self._transcripts: dict[str, tuple[tuple[int, int], str]] = {}
        self._own_use: dict[str, UsageReader] = {}

    def read(self, rig: str = "", ended: Iterable[Group] = ()) -> TownState:
        """The town now.

        Args:
            rig: only its polecats; all when empty.
            ended: runs that are shown beside the living ones.
        """
        living = self._journal.groups.living(rig)
        members = self._journal.members.of_living()
        states = self.polecats([(group, members.get(group.id.run, [])) for group in living])
        states += [self.ended(group) for group in ended]
        return TownState(rfc3339(self._clock.wall()), self._town_facts(), self.witness(), _machine(), tuple(states))

    def witness(self) -> dict[str, object]:
        """Whether a Witness runs."""
        process = witness_process(self._town)
        return {"running": process is not None, "pid": process.pid if process else None}

    def _town_facts(self) -> dict[str, object]:
        socket, directory = self._town.tmux_place
        return {
            "root": str(self._town.root),
            "socket": socket,
            "directory": directory or None,
            "gas_town": self._town.gastown,
        }

    def polecats(self, groups: list[tuple[Group, list[Member]]]) -> list[PolecatState]:
        """The states of living groups."""
        if not groups:
            return []
        table = read_table()
        kinship = GroupMembership(table, self._markers.marks(table))
        trees = {
            group.id.run: kinship.group(
                group.id.marker, {each.process for each in members if each.process}, pane=group.run_state.pane
            )
            for group, members in groups
            if group.boot == self._clock.boot
        }
        look = _Look(
            table,
            trees,
            self._screens(groups),
            self._journal.decisions.lines_of_living(),
            witness_process(self._town) is not None,
        )
        return [self._polecat(group, members, look) for group, members in groups]

    def ended(self, group: Group) -> PolecatState:
        """The state of a run that is over."""
        members = self._journal.members.of(group.id.run)
        try:
            return self._polecat(group, members, _Look(lines=self._journal.decisions.lines(group.id.run)))
        finally:
            self._forget(group.id.run)

    def _forget(self, run: str) -> None:
        for known in (self._used, self._events, self._transcripts, self._own_use):
            known.pop(run, None)

    # -- one polecat ------------------------------------------------------------------------------------------------

    def _polecat(self, group: Group, members: list[Member], look: _Look) -> PolecatState:
        run, over = group.id.run, group.state is GroupState.NUKED
        agent = next((each for each in members if each.kind is MemberKind.AGENT), None)
        living = bool(agent and not over and self._lives(group, agent, look))
        events = self._last_events(run)
        tree = look.trees.get(run, ())
        memory, used, percent = (None, None, None) if over or not tree else self._usage(run, tree)
        ended = ended_state(self._town, self._journal, group) if over or (agent and agent.process and not living) else None  # noqa: E501 # fmt: skip
        lost = bool(agent and agent.process and not living and not over)
        activity = self._activity(group, living, lost or over, events, look.screens.get(run))
        if activity.kind is ActivityKind.WORKING:
            activity = self._in_a_circle(run, members, events) or activity
        last = events.actions[-1] if events.actions else None
        now = self._clock.wall()
        channel = recorded_state(
            group.run_state.channel, group.run_state.channel_reason, self._run_dir(run) / "spool", now - group.created
        )
        ending = group.state in (GroupState.NUKING, GroupState.NUKED)
        return PolecatState(
            address=group.id.address,
            polecat=group.id.polecat,
            rig=group.id.rig,
            run=run,
            session=group.session,
            paused=rfc3339(group.run_state.paused_at) if group.run_state.paused_at and not over else None,
            lifecycle=str(GroupState.ZOMBIE if lost and not ending else group.state),
            zombie=group.zombie or ("agent-dead" if lost and not ending else ""),
            activity=str(activity.kind),
            since=rfc3339(activity.since) if activity.since else None,
            why=activity.why,
            waiting=activity.waiting,
            last_action=Action(rfc3339(last.time), round(max(now - last.time, 0.0), 1), action_text(last.payload)) if last else None,  # noqa: E501
            task=_first_line(group.run_state.task),
            workdir=group.workdir,
            branch=_branch(group.workdir),
            molecule=group.molecule,
            started=rfc3339(group.created),
            uptime=round(max(now - group.created, 0.0), 1) if living else None,
            pid=agent.process.pid if living and agent and agent.process else None,
            agent=group.agent,
            client=client_for(group.agent).name,
            channel=str(channel.channel),
            memory=memory,
            cpu_seconds=used,
            cpu_percent=percent,
            limits=_limits(group),
            usage=self._usage_of_agent(group),
            sidecars=tuple(
                self._sidecar(group, each, look) for each in members if each.kind is MemberKind.SIDECAR
            ),
            ended=ended,
        )  # fmt: skip

    def _lives(self, group: Group, member: Member, look: _Look) -> bool:
        return bool(member.process and group.boot == self._clock.boot and is_alive(member.process, look.table))

    def _activity(self, group: Group, living: bool, gone: bool, events: LastEvents, screen: Screen | None) -> Activity:
        if gone:
            done = group.intent is Intent.DONE or (group.intent is Intent.NUKE and group.intent_note == "done")
            return Activity(ActivityKind.DONE if done else ActivityKind.DEAD, None, "its agent has ended")
        if not living:
            return Activity(ActivityKind.UNKNOWN, None, "it is being started")
        if group.run_state.paused_at is not None:
            return Activity(ActivityKind.IDLE, group.run_state.paused_at, "it is paused: gt polecat resume")
        return activity_of(events, screen)

    def _in_a_circle(self, run: str, members: list[Member], events: LastEvents) -> Activity | None:
        """That a working agent goes in a circle, as its `loop` sidecar has found at one of its last actions."""
        for member in members:
            if member.kind is MemberKind.SIDECAR and member.type == _CIRCLES:
                found = self._journal.decisions.last_signal(run, member.name)
                if found and events.actions and events.actions[0].time <= found.acted:
                    return Activity(ActivityKind.STUCK, found.acted, found.words)
        return None

    def _sidecar(self, group: Group, member: Member, look: _Look) -> SidecarState:
        alive = self._lives(group, member, look)
        lines = look.lines.get((member.run, member.name), Lines())
        state, mute = str(member.state), ""
        over = group.state is GroupState.NUKED
        if member.state is MemberState.RUNNING and not alive and not over:
            state = str(MemberState.LOST)
            mute = "its process is gone" + (
                "" if look.supervised else "; no Witness runs to replace it: gt witness start"
            )
        elif over:
            state = str(MemberState.STOPPED if member.state is MemberState.RUNNING else member.state)
        elif self._town.stopped(group.id.rig):
            mute = "an emergency stop stands"
        elif member.state is not MemberState.RUNNING:
            mute = member.note or f"it is {state}"
        else:
            mute = self._journal.sidecars.get(member.run, member.name).lack
        return SidecarState(
            name=member.name,
            type=member.type,
            state=state,
            pid=member.process.pid if alive and member.process and member.state in _LIVE else None,
            mute=mute,
            restarts=member.restarts,
            injections=lines.said,
            lines=LineState(*lines),
        )

    def _usage_of_agent(self, group: Group) -> UsageState | None:
        run = group.id.run
        run_dir = self._run_dir(run)
        stamp = _stamp(run_dir / "spool" / CURRENT)
        known = self._transcripts.get(run)
        if known is None or known[0] != stamp:
            known = self._transcripts[run] = (stamp, session_transcript(run_dir / "spool"))
        reader = self._own_use.get(run)
        if reader is None:
            reader = self._own_use[run] = UsageReader(run_dir, group.created)
        used = reader.read(known[1], self._prices) if known[1] or reader.has_counted else None
        return UsageState(used.tokens, **asdict(used)) if used else None

    # -- the world --------------------------------------------------------------------------------------------------

    @cached_property
    def _prices(self) -> Prices:
        from witness.trust.settings import trusted_settings  # only where an agent has used something

        try:
            return trusted_settings(self._town.root).prices
        except WitnessError:
            return {}  # a slip in the settings keeps nobody from looking

    def _run_dir(self, run: str) -> Path:
        return self._town.run_dir(run)

    def _screens(self, groups: list[tuple[Group, list[Member]]]) -> dict[str, Screen]:
        try:
            panes = self._tmux.panes()
            mine: dict[str, Pane] = {}
            by_pid = {pane.pid: pane for pane in panes}
            # The oldest pane of a session is the one that it was made with.
            by_session = {pane.session: pane for pane in sorted(panes, key=lambda each: -each.age)}
            for group, members in groups:
                reaper = next((each.process for each in members if each.name == "reaper" and each.process), None)
                pane = by_pid.get(reaper.pid) if reaper else None
                if pane or (pane := by_session.get(group.session)):
                    mine[group.id.run] = pane
            shown = self._tmux.screens([pane.id for pane in mine.values()])
        except WitnessError:
            return {}  # tmux does not answer: nothing is known of any screen
        found = {}
        for group, _ in groups:
            pane = mine.get(group.id.run)
            if pane and (text := shown.get(pane.id)) is not None:
                client = client_for(group.agent)
                trouble = read_trouble(text) if client is not ANY else None
                found[group.id.run] = Screen(read_prompt(text, client), trouble, float(pane.activity))
        return found

    def _last_events(self, run: str) -> LastEvents:
        spool = self._run_dir(run) / "spool"
        stamp = _stamp(spool / CURRENT)
        known = self._events.get(run)
        if known is None or known[0] != stamp:
            known = self._events[run] = (stamp, last_events(spool))
        return known[1]

    def signs(self, runs: Iterable[str]) -> tuple[tuple[int, int], ...]:
        """What changes whenever a client of these runs reports something; microseconds a run."""
        return tuple(_stamp(self._run_dir(run) / "spool" / CURRENT) for run in runs)

    def _usage(self, run: str, tree: Collection[ProcessId]) -> tuple[int, float, float | None]:
        usages = [usage for usage in map(usage_of, tree) if usage]
        used, now = sum(each.processor for each in usages), self._clock.monotonic()
        before = self._used.get(run)
        self._used[run] = (now, used)
        percent = None
        if before and now > before[0]:
            percent = round(max(used - before[1], 0.0) / (now - before[0]) * 100, 1)
        return sum(each.memory for each in usages), round(used, 2), percent


def _limits(group: Group) -> LimitState | None:
    limits, use = Limits(**group.run_state.limits), read_use(group.run_state.limit_cgroups)
    if not limits:
        return None
    return LimitState(*limits.values(), use.memory, use.pids, use.words or group.run_state.limits_met)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = os.lstat(path)
    except OSError:
        return (0, 0)
    return (status.st_ino, status.st_size)


def _first_line(task: str) -> str:
    line = next((line.strip() for line in task.splitlines() if line.strip()), "")
    line = "".join(each if each.isprintable() else " " for each in line)
    return line if len(line) <= _TASK else f"{line[: _TASK - 1]}…"


def _branch(workdir: str) -> str:
    """The branch that is checked out there, read without git: a program for each polecat would cost too much."""
    folder = Path(workdir)
    for place in (folder, *folder.parents):
        dot = place / ".git"
        try:
            if dot.is_file():  # a worktree: the file says where its own folder is
                dot = place / read_project(dot, 4096).decode().removeprefix("gitdir:").strip()
            head = read_project(dot / "HEAD", 1024).decode().strip()
        except (OSError, ValueError):
            continue
        if head.startswith("ref: refs/heads/") and head.isprintable():
            return head.removeprefix("ref: refs/heads/")
        return head[:12] if re.fullmatch("[0-9a-f]{40,64}", head) else ""
    return ""


def _machine() -> dict[str, object]:
    total, available = _memory()
    return {
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "memory_total": total,
        "memory_available": available,
    }


def _memory() -> tuple[int, int]:
    """Bytes of memory that the machine has, and that it could still give."""
    if LINUX:
        with suppress(OSError, ValueError, KeyError):
            lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
            sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
            return sizes["MemTotal"], sizes["MemAvailable"]
    import psutil

    memory = psutil.virtual_memory()
    return memory.total, memory.available


# The state of a town as it changes: all of it first, then one record a change.

#: Seconds between two looks at what costs microseconds: the journal's count of commits and the spools' sizes.
LOOK = 0.1
#: Seconds between two looks at the processes and screens, of which nobody tells.
ROUND = 1.0


def follow(
    reader: StateReader, journal: Journal, seconds: float | None = None
) -> Generator[dict[str, Any], None, None]:
    """Follow a town.

    Args:
        reader: of its state.
        journal: its journal, the same that the reader has.
        seconds: end after so long without a change; never when None.

    Yields:
        ``{"kind": "snapshot", …}`` with the keys of a state; then ``{"kind": "change", "polecat": …}`` for a polecat
        that is new, does something else or has ended (it is then done or dead), and ``{"kind": "witness", …}``.
    """
    version = journal.data_version
    first = reader.read()
    yield {"kind": "snapshot", **first.as_json()}
    known = {each.run: each.lasting() for each in first.polecats}
    witness, signs = first.witness, reader.signs(known)
    rounded = changed = time.monotonic()
    while seconds is None or time.monotonic() - changed < seconds:
        time.sleep(LOOK)
        now = time.monotonic()
        fresh_version, fresh_signs = journal.data_version, reader.signs(known)
        if fresh_version == version and fresh_signs == signs and now - rounded < ROUND:
            continue
        version, signs, rounded = fresh_version, fresh_signs, now
        state = reader.read()
        news: list[PolecatState] = [each for each in state.polecats if known.get(each.run) != each.lasting()]
        gone = set(known) - {each.run for each in state.polecats}
        news += [reader.ended(group) for run in sorted(gone) if (group := journal.groups.get(run))]
        known = {each.run: each.lasting() for each in state.polecats}
        for each in news:
            yield {"kind": "change", "schema": SCHEMA, "time": state.time, "polecat": each.as_json()}
        if state.witness != witness:
            witness = state.witness
            yield {"kind": "witness", "schema": SCHEMA, "time": state.time, "witness": witness}
        elif not news:
            continue
        changed = now
