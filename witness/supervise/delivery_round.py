"""Deliveries in the patrol's round: receipts of living groups, idle prompts, and the end of a queue with its run."""

from __future__ import annotations

import os
import stat
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from witness.agents.clients import Channel, client_for
from witness.clock import Clock
from witness.config.town import Town
from witness.delivery import queue_files
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.delivery.prompt_typist import WATCH, IdlePoller
from witness.delivery.receipts import settle_deliveries
from witness.errors import TmuxError
from witness.files import replace_file
from witness.journal import Group, GroupState, Journal
from witness.tmux import Tmux

# Between two looks at queues of idle agents; two looks must agree before anything is typed.
TICK = 2.0
# Where the client's own hook watches beside the prompt it is given this long before the prompt is looked at.
_HOOKS_FIRST = 10.0
_WORKING = (GroupState.RUNNING, GroupState.DEGRADED)


class Deliveries:
    """What the Witness does about nudges.

    Args:
        town: the town.
        journal: its journal.
        tmux: the town's tmux.
        clock: time.
    """

    def __init__(self, town: Town, journal: Journal, tmux: Tmux, clock: Clock) -> None:
        self._town, self._journal, self._clock = town, journal, clock
        self._poller = IdlePoller(tmux, clock)
        self._typing: threading.Thread | None = None
        self._complaints: deque[str] = deque()
        # Queues without a living session that held nothing of ours, by the time of their last change.
        self._looked_through: dict[str, int] = {}

    def settle(self, groups: Iterable[Group]) -> list[str]:
        """Fold what became of the nudges of these groups into the journal; returns what could not be done."""
        groups, errors = list(groups), list[str]()
        for group in groups:
            if group.run_state.channel == Channel.MOD:
                tally = self._journal.decisions.tally(group.id.run)
                write_prompt_line(group, tally, self._town.run_dir(group.id.run))
        # One listing tells which sessions ever had a nudge; most groups of a large town had none.
        try:
            queues = set(os.listdir(self._town.queue_dir("any").parent))  # noqa: PTH208
        except FileNotFoundError:
            return []
        self._bury_late(queues - {self._town.queue_dir(group.session).name for group in groups}, errors)
        for group in groups:
            folder = self._town.queue_dir(group.session)
            if folder.name not in queues:
                continue
            try:
                settle_deliveries(self._journal, folder, self._clock)
            except OSError as error:
                errors.append(f"{group.id.address}: its deliveries cannot be read: {error}")
        return errors

    def _bury_late(self, queues: set[str], errors: list[str]) -> None:
        """What waits for a run that is over, in the queues of sessions that do not live.

        It was written at the very moment of the end, or the process that ended the run was killed before it closed the
        queue.
        """
        for name in sorted(queues):
            folder = self._town.queue_dir("any").with_name(name)
            changed = _changed(folder)
            if changed and self._looked_through.get(name) != changed:
                try:
                    if NudgeQueue(folder, self._clock).close("its run has ended", self._is_over):
                        settle_deliveries(self._journal, folder, self._clock, last=True)
                except OSError as error:
                    errors.append(f"{name}: its queue cannot be closed: {error}")
                self._looked_through[name] = _changed(folder)

    def _is_over(self, nudge: Nudge) -> bool:
        group = self._journal.groups.get(nudge.run)
        return group is not None and group.state is GroupState.NUKED

    def tick(self, groups: Iterable[Group]) -> list[str]:
        """Type what waits into prompts that are proven idle; returns what could not be done since the last tick.

        In a thread of its own, so that a client that is slow to draw keeps no respawn waiting.
        """
        if self._typing is None or not self._typing.is_alive():
            due = [group for group in groups if self._is_due(group)]
            if due:
                self._typing = threading.Thread(target=self._type, args=(due,), name="typing", daemon=True)
                self._typing.start()
        errors = list(self._complaints)
        self._complaints.clear()
        return errors

    def _type(self, groups: list[Group]) -> None:
        for group in groups:
            folder = self._town.queue_dir(group.session)
            try:
                self._poller.tick(group.pane, client_for(group.agent), folder, group.id.run)
            except (TmuxError, OSError) as error:
                self._complaints.append(f"{group.id.address}: what waits for it could not be typed in: {error}")

    def _is_due(self, group: Group) -> bool:
        if group.run_state.paused_at is not None:
            return False  # nobody would read it
        # A person's terminal is theirs: nothing is typed there.
        if group.state in _WORKING and not group.run_state.by_person and self._due(group):
            return True
        self._poller.forget(group.pane)
        return False

    def _due(self, group: Group) -> bool:
        client = client_for(group.agent)
        names = queue_files.waiting(str(self._town.queue_dir(group.session))) if client.prompt else []
        if not names:
            return False
        stamp = queue_files.stamp_of(names[0])
        age = self._clock.wall() - stamp / 1e9 if stamp else _HOOKS_FIRST
        watched = client.wakes and (self._town.run_dir(group.id.run) / "spool" / WATCH).exists()
        return age >= (_HOOKS_FIRST if watched else 0)

    def close(self, group: Group) -> list[str]:
        """Its run has ended: what it never got goes to the dead-letter folder, with that as the reason.

        A followed agent lives on, and what others have written to it (Gas Town's reminders among them) waits on.
        """
        folder = self._town.queue_dir(group.session)
        self._poller.forget(group.pane)
        try:
            which = partial(Nudge.is_ours, run=group.id.run) if group.run_state.followed else None
            NudgeQueue(folder, self._clock).close(f"the run {group.id.run} has ended", which)
            settle_deliveries(self._journal, folder, self._clock, last=True)
        except OSError as error:
            return [f"{group.id.address}: its queue cannot be closed: {error}"]
        return []


def _changed(folder: Path) -> int:
    """When something came into a folder or left it, in nanoseconds; 0 where it is no folder."""
    try:
        status = folder.lstat()
    except OSError:
        return 0
    return status.st_mtime_ns if stat.S_ISDIR(status.st_mode) else 0


# The one line about a polecat that a client with our mod shows above its prompt.

#: In the run's folder; hooks/gt_mod.py reads it.
FILE = "prompt-line"


def prompt_line(group: Group, tally: Sequence[tuple[str, int, int, int]]) -> str:
    """``gt main/toast RUNNING · scope 3→3→2``: for each sidecar what it reported, what was said of it, what was seen.

    Args:
        group: the polecat.
        tally: as the journal's ``decisions.tally`` gives it.
    """
    parts = [f"{name} {reported}→{said}→{seen}" for name, reported, said, seen in tally]
    return " · ".join([f"gt {group.id.address} {group.state}", *parts])


def write_prompt_line(group: Group, tally: Sequence[tuple[str, int, int, int]], run_dir: Path) -> None:
    """Leave the line where the mod's server finds it; a run that is just ending has no place for it any more."""
    with suppress(OSError):
        replace_file(run_dir / FILE, prompt_line(group, tally), durable=False, below=run_dir)
