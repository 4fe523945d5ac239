"""The follower: looks at Gas Town's polecats in each full round, and gives and takes their sidecars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from witness.clock import Clock
from witness.config.town import Town
from witness.errors import DeclarationError, TmuxError, WitnessError
from witness.gastown.adoption import adopt, declared_for
from witness.gastown.bead_lookup import HookedBead, read_hooked_bead
from witness.gastown.follow_plan import LastRun, ObservedPolecat, decide
from witness.gastown.polecats import see
from witness.gastown.town_events import TownEvent, TownEventKind, begin, read_events
from witness.journal import Candidate, Group, GroupState, Journal, MemberKind
from witness.process.table import read_table
from witness.tmux import Tmux

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# A polecat whose work declares no sidecars is asked about again, seldom: an event that tells of new work may be missed.
_FIRST_WAIT, _LONGEST_WAIT = 20.0, 600.0
# Where Gas Town's beads listen, as it tells its own sessions.
_DATABASE = ("BEADS_DOLT_PORT", "GT_DOLT_PORT", "BEADS_DOLT_AUTO_START", "BEADS_DIR")


class Follower:
    """Follows one Gas Town; does nothing in a standalone town.

    Args:
        town, journal, tmux, clock: what it works with.
    """

    def __init__(self, town: Town, journal: Journal, tmux: Tmux, clock: Clock) -> None:
        self._town, self._journal, self._tmux, self._clock = town, journal, tmux, clock
        self._asking: dict[tuple[str, str], tuple[ObservedPolecat, Future[HookedBead]]] = {}
        # Runs of which it is asked whether their bead still hangs on the hook.
        self._checking: dict[str, Future[HookedBead]] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._rigs_stamp: tuple[int, ...] = ()

    @property
    def pending(self) -> bool:
        """Whether answers are awaited, so that the next look should come soon."""
        return bool(self._asking or self._checking)

    def is_checking(self, run: str) -> bool:
        """Whether ``still_assigned`` of that run has no answer yet."""
        return run in self._checking

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def look(self, errors: list[str], *, wait: bool) -> list[tuple[str, str]]:
        """One look: adopt the polecats that Gas Town has started, and name those whose observation is over.

        Args:
            errors: where faults are told; they concern one polecat each.
            wait: await the issue tracker's answers; a daemon does not, and takes them in its next look.

        Returns:
            (run, reason) of the followed groups that are to be ended.
        """
        if not self._town.gastown:
            return []
        self._read_rigs(errors)
        before = self._journal.town.events_position
        events, position = read_events(self._town, before or begin(self._town))
        steps = decide(self._sightings(), events, self._pasts(), self._stopped())
        self._renew(events)
        for name, renewed in steps.renewed.items():
            self._set_renewed(*name, renewed)
        for sighting in steps.adopt:
            self._ask(sighting)
        wanted = {(each.rig, each.polecat): steps.if_new_bead.get((each.rig, each.polecat)) for each in steps.adopt}
        self._take_answers(wanted, errors, wait=wait)
        if position != before:
            self._journal.town.events_position = position
        return list(steps.end)

    def _read_rigs(self, errors: list[str]) -> None:
        """Rigs come and go while a Witness runs."""
        stamp = tuple(_modified(self._town.root / name) for name in ("mayor/rigs.json", "rigs.json"))
        if stamp == self._rigs_stamp:
            return
        try:
            self._town = Town.at(self._town.root)
        except DeclarationError as error:
            errors.append(str(error))  # the rigs that were known before are followed on
        self._rigs_stamp = stamp

    # -- looking ----------------------------------------------------------------------------------------------------

    def _sightings(self) -> list[ObservedPolecat] | None:
        try:
            panes = self._tmux.panes()
        except TmuxError:
            return None
        return list(see(self._town, panes, read_table))

    def _stopped(self) -> list[str]:
        return [rig for rig in self._town.rigs if self._town.stopped(rig)]

    def _pasts(self) -> list[LastRun]:
        latest = {(group.id.rig, group.id.polecat): group for group in self._journal.groups.last_of_each()}
        latest |= {(group.id.rig, group.id.polecat): group for group in self._journal.groups.living()}
        # What a person has had followed ends with that session, whatever Gas Town tells.
        return [self._past(group) for group in latest.values() if not group.run_state.by_person]

    def _past(self, group: Group) -> LastRun:
        agent = next((m.process for m in self._journal.members.of(group.id.run) if m.kind is MemberKind.AGENT), None)
        ended = None
        if group.state is GroupState.NUKED:
            # Intents are stamped on the monotonic clock, events and heartbeats on the wall clock.
            since = self._clock.monotonic() - group.intent_at if group.boot == self._clock.boot else 0.0
            ended = self._clock.wall() - since if group.boot == self._clock.boot else group.created
        followed, rig, polecat = group.run_state.followed, group.id.rig, group.id.polecat
        return LastRun(
            rig, polecat, group.id.run, followed, agent, group.created, ended, group.intent_note,
            renewed=self._journal.town.candidate(rig, polecat).renewed, bead=group.run_state.bead,
        )  # fmt: skip

    # -- asking which sidecars --------------------------------------------------------------------------------------

    def _renew(self, events: Sequence[TownEvent]) -> None:
        """New work is asked about at once, however often there was nothing before."""
        for event in events:
            if event.told is TownEventKind.STARTED:
                known = self._journal.town.candidate(event.rig, event.polecat)
                self._journal.town.set_candidate(event.rig, event.polecat, Candidate(renewed=known.renewed))

    def _due(self, sighting: ObservedPolecat) -> bool:
        known = self._journal.town.candidate(sighting.rig, sighting.polecat)
        return known.agent != sighting.agent or known.ask_at <= self._clock.wall()

    def _wait_longer(self, sighting: ObservedPolecat) -> None:
        known = self._journal.town.candidate(sighting.rig, sighting.polecat)
        wait = min(known.wait * 2, _LONGEST_WAIT) if known.agent == sighting.agent else 0.0
        wait = wait or _FIRST_WAIT
        known = replace(known, agent=sighting.agent, ask_at=self._clock.wall() + wait, wait=wait)
        self._journal.town.set_candidate(sighting.rig, sighting.polecat, known)

    def _set_renewed(self, rig: str, polecat: str, renewed: bool) -> None:
        known = self._journal.town.candidate(rig, polecat)
        if known.renewed != renewed:
            self._journal.town.set_candidate(rig, polecat, replace(known, renewed=renewed))

    def _ask(self, sighting: ObservedPolecat) -> None:
        name = (sighting.rig, sighting.polecat)
        if name in self._asking or not self._due(sighting):
            return
        self._asking[name] = (sighting, self._look_up(*name, sighting.session, sighting.workdir))

    def still_assigned(self, group: Group, *, wait: bool) -> bool | None:
        """Whether the bead that a followed polecat's run is about still hangs on its hook.

        Args:
            group: the run. What has no bead, or is a person's own session, stays as it is.
            wait: await the issue tracker's answer.

        Returns:
            None while it has not answered: ask again. True where it cannot be asked.
        """
        state = group.run_state
        if not state.followed or state.by_person or not state.bead:
            return True
        run = group.id.run
        if run not in self._checking:
            self._checking[run] = self._look_up(group.id.rig, group.id.polecat, group.session, group.workdir)
        if not wait and not self._checking[run].done():
            return None
        try:
            return self._checking.pop(run).result().id == state.bead
        except WitnessError:
            return True

    def _look_up(self, rig: str, polecat: str, session: str, workdir: str) -> Future[HookedBead]:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(2, thread_name_prefix="bd")
        database = {key: value for key in _DATABASE if (value := self._tmux.variable(session, key))}
        return self._pool.submit(read_hooked_bead, rig, polecat, Path(workdir), database)

    def _take_answers(self, wanted: dict[tuple[str, str], str | None], errors: list[str], *, wait: bool) -> None:
        for name, (sighting, future) in list(self._asking.items()):
            if not wait and not future.done():
                continue
            del self._asking[name]
            try:
                bead = future.result()
            except WitnessError as error:
                errors.append(f"{sighting.rig}/{sighting.polecat}: {error}")
                bead = HookedBead()  # the rig's own default may still give it sidecars
            if name not in wanted:
                continue
            over = wanted[name]
            if over is not None and bead.id in ("", over):
                self._wait_longer(sighting)
            else:
                self._adopt(sighting, bead, errors)

    def _adopt(self, sighting: ObservedPolecat, bead: HookedBead, errors: list[str]) -> None:
        address = f"{sighting.rig}/{sighting.polecat}"
        try:
            declared = declared_for(self._town, sighting, bead)
            if declared.sidecars.specs:
                adopt(self._town, self._journal, self._clock, sighting, bead, declared)
                self._set_renewed(sighting.rig, sighting.polecat, False)
                return
        except DeclarationError as error:
            errors.append(f"{address}: works without sidecars: {'; '.join(str(error).splitlines())}")
        except (WitnessError, OSError) as error:
            errors.append(f"{address}: {error}")
        self._wait_longer(sighting)


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
