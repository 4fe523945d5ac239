"""A sidecar's watch over one agent: what it holds open while it lives, and one look."""

from __future__ import annotations

import json
import os
import selectors
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from sidecars.observer.context.files import read_now
from sidecars.observer.factory import Components
from sidecars.observer.heeded import HeededReview
from sidecars.observer.observe.event_source import EventWatch, passed_over
from sidecars.observer.observe.pane import PaneWatch
from sidecars.type_reader.type_loader import changed_since
from witness.assignment import Assignment
from witness.clock import Clock, SystemClock
from witness.events.spool_reader import WakeSocket
from witness.files import make_folder, open_regular, replace_file
from witness.journal import Journal
from witness.judging.hosts import HostLink
from witness.process import ProcessId
from witness.tmux import Tmux

# Longest silence of one that only waits.
_BEAT_SECONDS = 10.0

# So many starts at one event, and none has judged it: fewer than make the Witness give a sidecar up.
_STARTS = 3
# Of a run's history; what a sidecar lacks is told when it starts.
_HISTORY = 5_000


class SidecarRunner:
    """Looks when it is woken, and at every poll; a context manager.

    Args:
        parts: the sidecar.
        assignment: which agent it observes.
        clock: where the time comes from.
    """

    def __init__(self, parts: Components, assignment: Assignment, clock: Clock | None = None) -> None:
        self._parts, self._assignment = parts, assignment
        self._clock = clock or SystemClock()
        self._stack = ExitStack()
        self._watched: tuple[HostLink | None, int] = (None, -1)

    def __enter__(self) -> Self:
        kind, assignment, enter = self._parts.kind, self._assignment, self._stack.enter_context
        try:
            self._journal = enter(Journal(Path(assignment.journal)))
            self._agent = enter(AgentLife(assignment.agent))
            self._beat = enter(Heartbeat(assignment.heartbeat, self._clock))
            Path(assignment.run_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
            make_folder(assignment.spool, below=assignment.run_dir)
            if kind.instant:
                passes = assignment.spool / f"{assignment.name}.passes"
                replace_file(passes, json.dumps(passed_over(kind)), durable=False, below=assignment.run_dir)
            self._wakes = enter(WakeSocket(assignment.spool, assignment.name, asked=kind.instant))
        except BaseException:
            self._stack.close()
            raise
        run = assignment.group.run
        judged = [decision.event for decision in self._journal.decisions.of(run, assignment.name)]
        position = self._journal.sidecars.get(run, assignment.name).position
        self._events = EventWatch(kind, assignment, position, judged)
        self._observer = self._parts.observer(assignment, self._journal, self._clock, aside=True)
        self._stack.callback(self._close)
        if self._parts.mute != self._journal.sidecars.get(run, assignment.name).lack:
            self._journal.sidecars.set_lack(run, assignment.name, self._parts.mute)
        if self._parts.lack and not self._was_told(run, assignment.name, self._parts.lack):
            self._observer.note("sidecar-lacks", self._parts.lack)
        if not judged and (found := self._parts.found):
            self._observer.note("sidecar-found", found)
        self._look_at_host()
        self._pane = self._pane_watch()
        self._observer.recover()
        self._pass_over_what_ended_others()
        self._beat.beat()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _was_told(self, run: str, name: str, lack: str) -> bool:
        told = (event for event in self._journal.history(run, _HISTORY) if event.kind == "sidecar-lacks")
        return any(event.member == name and event.data.get("reason") == lack for event in told)

    def _pass_over_what_ended_others(self) -> None:
        """Where several predecessors began at the same event and came no further, that event is not judged again.

        An expression that never ends, or a judge that brings the process down, would else end every successor too.
        """
        run, name = self._assignment.group.run, self._assignment.name
        if self._journal.sidecars.count_start(run, name) > _STARTS and (seen := self._events.look()):
            self._observer.pass_over(seen, self._events.position)

    def tell_changes(self) -> None:
        """Say in a line each that its type, or what its documents say, is not what it was when it first started."""
        if files := self._parts.texts.changed(read_now):
            told = f"{', '.join(files[:5])}: changed since it first started; what stood there then goes on to hold"
            sys.stderr.write(f"sidecar {self._assignment.name}: {told}\n")
            self._observer.note("context-changed", told)
        if changed := changed_since(self._assignment):
            sys.stderr.write(f"sidecar {self._assignment.name}: {changed}\n")
            self._observer.note("definition-changed", changed)

    def _close(self) -> None:
        self._observer.close()  # the one of that moment: a learned prompt gives another

    def sources(self) -> list[int]:
        """Descriptors whose readability is a reason to look."""
        return [file for file in (self._agent.fileno(), self._wakes.fileno()) if file >= 0]

    @property
    def agent_ended(self) -> bool:
        return self._agent.ended

    @property
    def patience(self) -> float:
        """Seconds that may pass before the next look if nothing wakes us."""
        due = self._observer.due
        waits = [self._parts.kind.poll, *([] if due is None else [due]), *([self._pane.due] if self._pane else [])]
        return min(waits)

    def rest(self, selector: selectors.BaseSelector) -> None:
        """Sleep until something wakes us or the next look is due, with a sign of life now and then.

        The Witness takes a sidecar that is silent for three default intervals for hung, however long its own may be.
        """
        slow = self._observer.fileno()
        if slow >= 0 and slow not in selector.get_map():
            selector.register(slow, selectors.EVENT_READ)
        self._watch_host(selector)
        due = self._clock.monotonic() + self.patience
        while not selector.select(max(0.0, min(due - self._clock.monotonic(), _BEAT_SECONDS))):
            if self._clock.monotonic() >= due:
                return
            self._beat.beat()

    def look(self) -> None:
        """Read what is new, consider it, and only then let the hooks go that wait for it."""
        self._beat.beat()
        self._journal.check_place()
        wakes = self._wakes.accept()
        for wake in wakes:
            wake.hold()
        try:
            self._look_at_host()
            self._read()
        finally:
            for wake in wakes:
                wake.answer()

    def _read(self) -> None:
        ended = False
        while (seen := self._events.look()) is not None:
            self._observer.take(seen, self._events.position, self._events.passed)
            ended = self._events.turn_ended
            self._learn_prompt()
        self._look_at_pane()
        self._observer.tick(self._events.position)
        if ended:
            if self._events.may_go_on:
                self._observer.end_turn()
            self._review()

    def finish(self) -> None:
        """The agent has ended: read what it did last, record what stays unsaid, and see what was heeded in the end."""
        self._read()
        self._observer.finish()
        self._review()

    def _review(self) -> None:
        rules = (*self._parts.material.rules, *self._parts.kind.rules)
        HeededReview(rules, self._assignment, self._journal).review()

    def _look_at_host(self) -> None:
        """Keep in the journal whether the process is there that judges, where it is another one."""
        if (host := self._parts.host) is None:
            return
        run, name = self._assignment.group.run, self._assignment.name
        before, lack = self._journal.sidecars.get(run, name).lack, host.lack or self._parts.lack
        if lack != before:
            self._journal.sidecars.set_lack(run, name, lack)
            self._observer.note("sidecar-lacks" if lack else "sidecar-speaks-again", lack or "its host is back")

    def _watch_host(self, selector: selectors.BaseSelector) -> None:
        """Be woken by its end; another connection may have the number of the one before."""
        host = self._parts.host
        watched = (host, host.fileno() if host else -1)
        if watched == self._watched:
            return
        if self._watched[1] >= 0:
            selector.unregister(self._watched[1])
        if watched[1] >= 0:
            selector.register(watched[1], selectors.EVENT_READ)
        self._watched = watched

    def _pane_watch(self) -> PaneWatch | None:
        kind, assignment = self._parts.kind, self._assignment
        if kind.pane == "never" or not assignment.session or not assignment.socket:
            return None
        tmux = Tmux(assignment.socket, assignment.tmux_directory)
        patience = kind.poll if kind.pane == "auto" else 0.0
        return PaneWatch(
            kind,
            lambda lines: tmux.capture(assignment.pane or assignment.session, lines),
            assignment.workdir,
            self._clock,
            patience,
        )

    def _look_at_pane(self) -> None:
        if self._pane is None:
            return
        if self._events.count and self._parts.kind.pane == "auto":
            self._pane = None  # the client has hooks: what they record is better than any screen
        elif self._pane.due == 0.0:
            seen = [each for each in self._pane.look() if not each.tool or self._events.wanted(each.tool)]
            if seen:
                self._observer.take(seen)

    def _learn_prompt(self) -> None:
        """Where nobody has left the polecat's prompt, the first one that is typed is taken for it."""
        if parts := self._parts.with_prompt(self._events.prompt, Path(self._assignment.workdir)):
            self._observer.close()
            self._parts = parts
            self._observer = parts.observer(self._assignment, self._journal, self._clock, aside=True)


# The sign of life that the Witness reads.


class Heartbeat:
    """Rewrites one small file of fixed width in place; a context manager."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._file = -1

    def __enter__(self) -> Self:
        run_dir = self._path.parent.parent
        make_folder(self._path.parent, below=run_dir)
        # Rewritten in place: through a link, or a second name, it would be somebody else's file.
        self._file = open_regular(self._path, below=run_dir, flags=os.O_WRONLY | os.O_CREAT)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def beat(self) -> None:
        """Write the present instant."""
        os.pwrite(self._file, f"{self._clock.monotonic():020.6f}\n".encode(), 0)


# Whether the observed agent is still alive: a sidecar ends with its polecat, told or not.


class AgentLife:
    """Watches one process; a context manager.

    Where the kernel has pidfds (Linux), its end wakes a selector at once; elsewhere ``ended`` is asked at every look.
    """

    def __init__(self, process: ProcessId) -> None:
        self._process = process
        self._pidfd = -1

    def __enter__(self) -> Self:
        if hasattr(os, "pidfd_open"):
            with suppress(OSError):
                self._pidfd = os.pidfd_open(self._process.pid)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def fileno(self) -> int:
        """A descriptor that becomes readable when the agent ends, -1 where there is none."""
        return self._pidfd

    @property
    def ended(self) -> bool:
        """Whether the agent is gone, or its pid belongs to somebody else by now. A defunct process is gone."""
        if Path("/proc/self/stat").exists():
            return _linux_start(self._process.pid) != self._process.started
        return _portable_start(self._process.pid) != self._process.started


def _linux_start(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return 0
    # The second field is the program's name in parentheses and may hold anything, parentheses and blanks too.
    fields = text.rpartition(")")[2].split()
    # One whose first thread alone has ended also shows a Z, and lives on in the others.
    return 0 if fields[0] == "X" or (fields[0] == "Z" and int(fields[17]) <= 1) else int(fields[19])


def _portable_start(pid: int) -> int:
    import psutil

    try:
        process = psutil.Process(pid)
        return 0 if process.status() == psutil.STATUS_ZOMBIE else int(process.create_time() * 1000)
    except psutil.Error:
        return 0
