"""The Witness as a daemon: it sleeps until something happens, looks, decides, does.

What happens are exits (told by the fork server, or by the kernel where it cannot tell), requests on the socket, and
timers. A death is answered by a look at its group alone; the whole town is looked at once an interval, which finds
what no event told.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import selectors
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

from witness.clock import Clock, SystemClock
from witness.config.keys import key_origin
from witness.config.town import Town
from witness.daemon.notifier import NotifierProcess
from witness.daemon.request_server import AskedPatrol, Caller
from witness.errors import JournalError, JournalMovedError, UsageError, WitnessError
from witness.files import clear_place
from witness.ipc.background import ServiceManager
from witness.ipc.jsonlines import RequestServer
from witness.journal import GroupState, Intent, Journal, MemberKind, MemberState
from witness.launch.town_witness import SOCKET, record_process
from witness.nuke import Target, TerminationResult, end_groups, unfinished
from witness.process import ProcessId
from witness.process.exits import open_exit_handle
from witness.process.table import identify, look_up
from witness.state.history import event_line
from witness.supervise.delivery_round import TICK
from witness.supervise.executor import PatrolResult
from witness.supervise.rebuild import rebuild
from witness.supervise.reconcile import Reconciler, report, worktree_keeper
from witness.supervise.retention import is_due, sweep
from witness.version import __version__

# A turn that comes this many intervals later than planned was held up by a sleeping machine or a stopped Witness. Every
# limit on somebody's silence is longer, so nobody who slept with us is taken for dead.
_LATE_INTERVALS = 1.0
# In place of a run: the launcher of the fork server.
_NOBODY = ""
# Pause after a turn that failed, so that a lasting fault does not keep a core busy.
_PAUSE_SECONDS = 0.5
# How soon a start is planned again that waits for Gas Town's issue tracker.
_ASK_AGAIN = 0.1


class Daemon:
    """The running Witness of one town. The caller holds the town's lock.

    Args:
        town: the town.
        linger: end by itself after ``settings.linger`` seconds without groups.
        told: hears what happens, one line a happening; nobody when None.
        clock: time.
    """

    def __init__(
        self,
        town: Town,
        *,
        linger: bool = False,
        told: Callable[[str], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._town, self._linger, self._clock = town, linger, clock or SystemClock()
        self._journal = Journal(town.journal_path)
        self._told, self._told_until = told, self._journal.last_event
        self._reconciler = Reconciler(town, self._journal, self._clock, waits=False)
        self._selector = selectors.DefaultSelector()
        self._manager = ServiceManager()
        self._notifier = NotifierProcess(town, self._clock)
        self._callers = RequestServer(self._selector, SOCKET, Caller)
        self._watched: dict[ProcessId, int] = {}
        self._nukes: set[str] = set()
        self._ended: deque[TerminationResult] = deque()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._pool_handle = self._pool_generation = -1
        self._stopping = False
        self._due: dict[str, float] = {}
        self._settling: threading.Thread | None = None
        self._sweeping: threading.Thread | None = None
        self._next_look = self._next_tick = self._woke = self._clock.monotonic()
        self._trust_ages_from = 0.0
        self._empty_since: float | None = None

    # -- life -------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Bind the socket and record who we are; from now on requests are taken."""
        self._runtime = str(self._town.runtime)
        os.chdir(self._runtime)  # a relative path is short enough for the kernel
        self._callers.listen()
        self._selector.register(self._wake_read, selectors.EVENT_READ, "wake")
        me = identify(os.getpid())
        if me:
            record_process(self._town.runtime / "witness.json", me)
        _raise_handle_limit()
        self._journal.note(self._clock.wall(), "witness-started", pid=os.getpid(), version=__version__)
        self._manager.tell("READY=1")

    def run(self) -> None:
        """Supervise until told to stop."""
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            while not self._stopping:
                try:
                    if self._runtime_dir_replaced():
                        say(f"{self._town.root} was moved or deleted: this Witness leaves; its polecats live on")
                        return
                    self.turn()
                except JournalError as error:
                    self._without_journal(error)
                except (WitnessError, OSError) as error:
                    say(str(error))
                    select.select([], [], [], _PAUSE_SECONDS)
                except Exception:  # noqa: BLE001 - a fault of ours must not leave every polecat unsupervised
                    say(f"a fault of our own; the supervision goes on\n{traceback.format_exc()}")
                    select.select([], [], [], _PAUSE_SECONDS)
        finally:
            self._close()

    def _runtime_dir_replaced(self) -> bool:
        """Whether our working directory is not the town's runtime any more: a caller there needs a new Witness."""
        try:
            here = os.stat(".")  # noqa: PTH116 - at each turn
            there = os.stat(self._runtime)  # noqa: PTH116
        except FileNotFoundError:
            return True
        return (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino)

    def stop(self, *_: object) -> None:
        """End with the present turn; a signal's handler too."""
        self._stopping = True

    def _close(self) -> None:
        for thread in threading.enumerate():
            if thread.name in ("nuke", "worktrees", "sweep"):
                thread.join()
        try:
            self._take_results(PatrolResult())
            self._journal.note(self._clock.wall(), "witness-stopped", pid=os.getpid())
            self._tell_history()
        except JournalError as error:
            say(str(error))
        for name in (SOCKET, "witness.json"):
            with contextlib.suppress(OSError):
                clear_place(name)  # in our own folder, also when another town stands in its old place
        self._notifier.close()
        self._reconciler.close()
        self._journal.close()
        self._selector.close()
        self._callers.close()

    def _without_journal(self, error: JournalError) -> None:
        """Nothing may be done that cannot be recorded: say so, and try again at the next interval."""
        say(str(error))
        self._next_look = self._clock.monotonic() + self._reconciler.observer.settings("").patrol_interval
        select.select([], [], [], _PAUSE_SECONDS)
        try:
            fresh = Journal(self._town.journal_path)
        except JournalError:
            return
        self._journal.close()
        key = self._reconciler.pool.key
        self._reconciler.close()
        self._forget_pool()
        self._journal = fresh
        self._told_until = min(self._told_until, fresh.last_event)  # a new file counts anew
        self._reconciler = Reconciler(self._town, fresh, self._clock, waits=False)
        self._reconciler.pool.key = key
        if isinstance(error, JournalMovedError):
            adopted = rebuild(self._town)
            say(f"the journal was taken away; recorded anew from what lives: {', '.join(adopted) or 'no polecat'}")

    # -- one turn ---------------------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Wait for news or for the next thing that is due, and do it."""
        self._manager.tell("WATCHDOG=1")
        now = self._clock.monotonic()
        first = min([self._next_look, self._next_tick, *self._due.values()])
        touched: set[str] = set()
        events = self._selector.select(min(max(first - now, 0.0), self._manager.beat))
        late = self._is_late(max(first, now), now)
        for key, _ in events:
            touched |= self._handle(key)
        for news in self._reconciler.pool.poll_events():
            touched.add(news.run)
            if news.kind == "answered":
                self._next_look = self._clock.monotonic()  # only a full look finds what was forked meanwhile
        self._watch_pool()
        now = self._clock.monotonic()
        touched |= {run for run, at in self._due.items() if at <= now}
        outcome = PatrolResult()
        self._take_results(outcome)
        if touched:
            self._begin(self._reconciler.quick_snapshot(touched, self._nukes, outcome, late=late), outcome)
            self._schedule(touched)
        if now >= self._next_look:
            self._full_look(outcome)
        if now >= self._next_tick:
            self._tick(outcome)
        for error in (*outcome.errors, *self._reconciler.observer.complaints):
            say(error)
        self._reconciler.observer.complaints.clear()
        self._tell_history()
        self._answer_waiting()

    def _tell_history(self) -> None:
        """Say what has happened since the last turn, by any process."""
        if self._told is None:
            return
        for number, event in self._journal.events_after(self._told_until):
            self._told_until = number
            group = self._journal.groups.get(event.run) if event.run else None
            self._told(event_line(event, group.id.address if group else ""))

    def _is_late(self, planned: float, began: float) -> bool:
        """Whether ages mean nothing now, because we (and maybe everybody) stood still until a moment ago.

        Args:
            planned: when this turn's sleep was to end at the latest.
            began: when the turn began.
        """
        woke = self._clock.monotonic()
        settings = self._reconciler.observer.settings("")
        interval = settings.patrol_interval
        if max(woke - planned, began - self._woke) > interval * _LATE_INTERVALS:
            # Those who stood still with us have their whole time again to show that they live.
            self._trust_ages_from = woke + max(interval, settings.sidecar_silence)
        self._woke = woke
        return woke < self._trust_ages_from

    def _tick(self, outcome: PatrolResult) -> None:
        """Idle agents are looked at oftener than the whole town; without groups there is nothing to look at."""
        groups = self._journal.groups.living()
        self._next_tick = self._clock.monotonic() + TICK if groups else self._next_look + TICK
        outcome.errors.extend(self._reconciler.deliveries.tick(groups))

    def _full_look(self, outcome: PatrolResult) -> int:
        self._journal.check_place()
        settings = self._reconciler.observer.settings("")
        interval = settings.patrol_interval
        try:
            self._notifier.keep(wanted=bool(settings.on))
        except OSError as error:
            outcome.errors.append(f"nobody can be told: {error}")
        self._reconciler.pool.join()
        late = self._clock.monotonic() < self._trust_ages_from
        checked, nukes = self._reconciler.look(self._nukes, outcome, late=late)
        # Gas Town's issue tracker has been asked about somebody new: its answer is wanted soon.
        self._next_look = self._clock.monotonic() + (
            min(interval, 1.0) if self._reconciler.follower.pending else interval
        )
        self._begin(nukes, outcome)
        self._settle_worktrees()
        self._sweep(settings.retention)
        living = {group.id.run for group in self._journal.groups.living()}
        self._schedule(living)
        for run in set(self._due) - living:
            del self._due[run]
        self._maybe_leave(bool(living))
        return checked

    def _maybe_leave(self, needed: bool) -> None:
        linger = self._reconciler.observer.settings("").linger
        now = self._clock.monotonic()
        if needed:
            self._empty_since = None
        elif self._empty_since is None:
            self._empty_since = now
        elif self._linger and 0 < linger < now - self._empty_since:
            self._stopping = True

    def _schedule(self, runs: set[str]) -> None:
        """Note when each of these groups is due again, and watch the processes whose end nobody would tell us."""
        self._watch_pool()  # first: what was closed since may lend its number to a new handle
        for run in runs:
            group = self._journal.groups.get(run)
            if group is None or group.state is GroupState.NUKED:
                self._due.pop(run, None)
                continue
            due = []
            for member in self._journal.members.of(run):
                waits = member.state in (MemberState.BACKOFF, MemberState.FAILED) and member.retry_at > 0
                if waits and not self._town.stopped(group.id.rig):
                    due.append(member.retry_at)
                if member.process and member.state in (MemberState.RUNNING, MemberState.SPAWNING):
                    self._watch(run, member.process, member.kind)
            if group.intent is Intent.DONE and run not in self._nukes:
                due.append(group.intent_at + self._reconciler.observer.settings(group.id.rig).done_settle)
            if due:
                soonest = min(due)
                if self._reconciler.follower.is_checking(run):
                    soonest = max(soonest, self._clock.monotonic() + _ASK_AGAIN)
                self._due[run] = soonest
            else:
                self._due.pop(run, None)

    # -- watching ---------------------------------------------------------------------------------------------------

    def _watch(self, run: str, process: ProcessId, kind: MemberKind) -> None:
        if process in self._watched:
            return
        if kind is MemberKind.SIDECAR and self._reconciler.pool.fileno() is not None:
            # The fork server tells of its own children's end, and only it knows their exit code.
            row = look_up(process.pid)
            fork_server = self._reconciler.pool.process()
            if row and fork_server and row.parent == fork_server.pid:
                return
        handle = open_exit_handle(process)
        if handle is not None:
            self._watched[process] = handle
            self._selector.register(handle, selectors.EVENT_READ, (run, process))

    def _watch_pool(self) -> None:
        pool = self._reconciler.pool
        handle = pool.fileno()
        current = -1 if handle is None else handle
        if launcher := pool.starting():
            self._watch(_NOBODY, launcher, MemberKind.REAPER)
        if (current, pool.generation) == (self._pool_handle, self._pool_generation):
            return
        if self._pool_handle >= 0:
            self._forget_pool()
            # It is gone; its children are not, and from now on the kernel tells of their end.
            self._next_look = self._clock.monotonic()
        self._pool_handle, self._pool_generation = current, pool.generation
        if current >= 0:
            self._selector.register(current, selectors.EVENT_READ, "pool")

    def _forget_pool(self) -> None:
        if self._pool_handle >= 0:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(self._pool_handle)
        self._pool_handle = self._pool_generation = -1

    def _handle(self, key: selectors.SelectorKey) -> set[str]:
        """Take in one event; returns the runs that are to be looked at."""
        if key.data == "listener":
            self._callers.accept()
        elif key.data == "wake":
            os.read(self._wake_read, 4096)
        elif isinstance(key.fileobj, Caller):
            caller = key.fileobj
            return {run for request in self._callers.read_requests(caller) for run in self._serve(caller, request)}
        elif isinstance(key.data, tuple):
            run, process = key.data
            self._selector.unregister(key.fd)
            os.close(self._watched.pop(process))
            if run != _NOBODY:
                return {run}
            # A fork server is up, or has failed: the look asks it for the sidecars that wait.
            self._next_look = self._clock.monotonic()
        return set()

    # -- requests ---------------------------------------------------------------------------------------------------

    def _serve(self, caller: Caller, request: dict[str, Any]) -> set[str]:
        """Do what somebody asks; returns the runs that are to be looked at for it."""
        run = str(request.get("run", ""))
        match request.get("op"):
            case "look":
                self._callers.tell(caller, {"ok": True})
                return {run}
            case "key":
                self._take_key(request)
                self._callers.tell(caller, {"ok": True})
            case "await":
                self._take_key(request)
                caller.waits_for.add(run)
                return {run}
            case "patrol":
                outcome = PatrolResult()
                checked = self._full_look(outcome)
                outcome.errors.extend(self._reconciler.observer.troubles)
                caller.patrols.append(AskedPatrol(checked, outcome, set(self._nukes)))
            case "status":
                groups = self._journal.groups.living()
                answer = {
                    "pid": os.getpid(),
                    "groups": len(groups),
                    "watched": len(self._watched),
                    "version": __version__,
                    "foreground": self._told is not None,
                    "key": self._key_origin(),
                }
                self._callers.tell(caller, answer)
            case "stop":
                self._callers.tell(caller, {"ok": True})
                self._stopping = True
            case other:
                self._callers.tell(caller, {"error": f"unknown request {other!r}"})
        return set()

    def _take_key(self, request: dict[str, Any]) -> None:
        """A key that the caller has exported: kept in memory, for the sidecars that are started from now on."""
        self._reconciler.pool.key = str(request.get("key") or "") or self._reconciler.pool.key

    def _key_origin(self) -> str:
        try:
            return key_origin(self._reconciler.observer.settings(""), self._reconciler.pool.key)
        except UsageError as error:
            return f"none: {error}"

    def _answer_waiting(self) -> None:
        for caller in self._callers:
            for run in list(caller.waits_for):
                group = self._journal.groups.get(run)
                if group is None or group.state is not GroupState.SPAWNING:
                    caller.waits_for.discard(run)
                    self._callers.tell(caller, {"state": group.state if group else ""})
            for patrol in [each for each in caller.patrols if not each.ending]:
                caller.patrols.remove(patrol)
                self._callers.tell(caller, report(patrol.checked, patrol.outcome).as_json())

    # -- ending groups ----------------------------------------------------------------------------------------------

    def _begin(self, nukes: list[tuple[str, str]], outcome: PatrolResult) -> None:
        """End groups in a thread of their own, so that a stubborn one keeps nobody's respawn waiting."""
        fresh = [(run, reason) for run, reason in nukes if run not in self._nukes]
        targets = [goal for run, reason in fresh if (goal := self._reconciler.actor.begin_nuke(run, reason))]
        if not targets:
            return
        runs = [goal.run for goal in targets]
        self._nukes.update(runs)
        foreign, grace = self._reconciler.actor.foreign(runs), self._reconciler.grace(runs)

        self._reconciler.actor.keep_screens(runs)

        def work(goals: list[Target]) -> None:
            results: list[TerminationResult] = []
            try:
                results = end_groups(goals, foreign, grace, clock=self._clock)
            finally:
                # Whatever befell it, nobody may wait for these for ever; what still lives is found by the next look.
                known = {ended.run: ended for ended in results}
                self._ended.extend(known.get(goal.run) or unfinished(goal) for goal in goals)
                os.write(self._wake_write, b"n")

        threading.Thread(target=work, args=(targets,), name="nuke").start()

    def _take_results(self, outcome: PatrolResult) -> None:
        if not self._ended:
            return
        while self._ended:
            ended = self._ended.popleft()
            self._nukes.discard(ended.run)
            waiting = [p for each in self._callers for p in each.patrols if ended.run in p.ending]
            for patrol in waiting:
                patrol.ending.discard(ended.run)
            mine = PatrolResult()
            self._reconciler.actor.finish_nuke(ended, mine)
            for told in (outcome, *(patrol.outcome for patrol in waiting)):
                told.nuked += mine.nuked
                told.errors += mine.errors
            self._schedule({ended.run})
        self._settle_worktrees()

    def _settle_worktrees(self) -> None:
        """Judge the worktrees of runs that are over, in a thread of its own: git may take its time."""
        if (self._settling and self._settling.is_alive()) or not self._reconciler.worktrees.pending():
            return

        def work() -> None:
            try:
                with Journal(self._town.journal_path) as journal:
                    worktree_keeper(self._town, journal, self._clock).settle()
            except (WitnessError, OSError) as error:
                say(str(error))
            finally:
                with contextlib.suppress(OSError):
                    os.write(self._wake_write, b"w")  # the history has something to tell

        self._settling = threading.Thread(target=work, args=(), name="worktrees")
        self._settling.start()

    def _sweep(self, retention: float) -> None:
        """Remove what is old, once an hour and in a thread of its own: a large folder takes its time."""
        if (self._sweeping and self._sweeping.is_alive()) or not is_due(self._town, self._clock.wall()):
            return

        def work() -> None:
            try:
                with Journal(self._town.journal_path) as journal:
                    swept = sweep(self._town, journal, retention, self._clock.wall(), lambda: self._stopping)
                for error in swept.errors:
                    say(error)
            except (WitnessError, OSError) as error:
                say(str(error))

        self._sweeping = threading.Thread(target=work, args=(), name="sweep")
        self._sweeping.start()


def _raise_handle_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
    if soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:
            say(f"could not raise the limit of open files above {soft}: {error}")


def say(text: str) -> None:
    """One line for the log; the daemon's standard error is its log."""
    with contextlib.suppress(OSError):  # the log's disk may be full, and that is no reason to leave
        os.write(2, f"gt-witness: {text}\n".encode(errors="replace"))
