"""Starting sidecars, through the fork server: one preloaded process per town that forks them and reaps them.

A Python that imports what a sidecar needs takes hundreds of milliseconds and tens of megabytes; a fork of one that has
done so takes milliseconds and shares its memory. The fork server is nobody's child: it outlives the Witness and the
command that started it. If it dies, its sidecars live on, and the next start makes a new one.
"""

from __future__ import annotations

import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from witness.assignment import Assignment
from witness.errors import SpawnError, WitnessError
from witness.files import read_bytes, replace_file
from witness.ipc.background import Starting, start_outside
from witness.ipc.jsonlines import Connection
from witness.ipc.serving import serving_process
from witness.launch.environment import MARKER_ROOM, daemon_environ
from witness.names import HELPER_VARIABLE, MARKER_VARIABLE
from witness.process import ProcessId
from witness.process.exits import wait_gone
from witness.process.table import identify, is_alive, send
from witness.tmux import Tmux

ANSWER_SECONDS = 10.0
# A fork takes milliseconds: a daemon waits this long for the answer, and sees later what became of it.
_AT_ONCE_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class SidecarEvent:
    """Something that the fork server has told.

    Args:
        kind: ``ready`` or ``exited``; ``answered`` where a start that was not waited for has come to something.
        run, name: which sidecar.
        process: its identity.
        code: its exit code, for ``exited``.
    """

    kind: str
    run: str
    name: str
    process: ProcessId
    code: int | None = None


def _holds(path: Path, text: str, below: Path) -> bool:
    try:
        return read_bytes(path, below=below) == text.encode(errors="surrogateescape")
    except OSError:
        return False


class PoolStartingError(SpawnError):
    """The fork server is coming up: nothing was started, and nothing is wrong. Try again when it is up."""


@dataclass(frozen=True, slots=True)
class _Unanswered:
    """A request that the fork server has not answered yet: for which sidecar, and until when that is no fault."""

    run: str
    name: str
    until: float


@dataclass
class SidecarPool:
    """A connection to the town's fork server; use it from one thread.

    Args:
        runtime: the town's runtime folder.
        key_env: name of the variable with the sidecars' API key.
        outer: the tmux that holds the polecat that the caller runs in, if any (see ``start_outside``).
        key: the sidecars' API key where somebody has handed it over; it goes to them through the socket alone.
        waits: whether ``start`` waits for a fork server that has to come up first, or hangs; a daemon must not: it has
            others to look after for the seconds that takes.
        generation: counts the connections; a descriptor's number alone may come back.
    """

    runtime: Path
    key_env: str
    outer: Tmux | None = None
    key: str = field(default="", repr=False)
    waits: bool = True
    generation: int = 0
    _starting: Starting | None = None
    _connection: Connection | None = None
    _unanswered: _Unanswered | None = None
    _server: ProcessId | None = None
    _events: list[SidecarEvent] = field(default_factory=list)

    def fileno(self) -> int | None:
        """Descriptor that turns readable when there are events; None while not connected."""
        return self._connection.fileno() if self._connection else None

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = self._unanswered = None

    def process(self) -> ProcessId | None:
        """The fork server that runs, as the kernel knows it; None when none does."""
        if self._connection is None or self._server is None or not is_alive(self._server):
            self._server = serving_process(self.runtime, "forkserver.sock", "forkserver.lock")
        return self._server

    def start(self, assignment: Assignment) -> ProcessId:
        """Start one sidecar.

        Raises:
            PoolStartingError: the fork server is only just coming up, or has not answered yet, and we do not wait.
            SpawnError: it could not be started.
        """
        run_dir = Path(assignment.run_dir)
        path = run_dir / "sidecars" / f"{assignment.name}.json"
        try:
            text = assignment.to_json()
            # A respawn asks for the same thing again; making the file anew would cost more than the fork.
            if not _holds(path, text, run_dir.parent):
                replace_file(path, text, durable=False, below=run_dir.parent)
        except OSError as error:
            raise SpawnError(assignment.name, f"its assignment cannot be written: {error}") from error
        request = {
            "assignment": str(path),
            "text": text,
            "run": assignment.group.run,
            "name": assignment.name,
            "marker": assignment.group.marker,
            "run_dir": str(run_dir),
        }
        self._end_hung()
        for attempt in (1, 2):
            try:
                self.connect()
                # Only now: before the first sidecar there is no fork server. A stranger behind its socket gets no key.
                request["key"] = self.key if self.key and self.process() else ""
                answer = self.ask(request)
                break
            except TimeoutError as error:
                if not self.waits:
                    until = time.monotonic() + ANSWER_SECONDS
                    self._unanswered = _Unanswered(assignment.group.run, assignment.name, until)
                    raise PoolStartingError(assignment.name, "the fork server has not answered yet") from error
                self.close()
                raise SpawnError(assignment.name, "the fork server does not answer") from error
            except (OSError, ValueError) as error:
                # It may have ended between two requests; a second failure is a real one.
                self.close()
                if attempt == 2:
                    raise SpawnError(assignment.name, f"the fork server does not answer: {error}") from error
            except SpawnError:
                raise
            except WitnessError as error:
                raise SpawnError(assignment.name, str(error)) from error
        if "error" in answer:
            raise SpawnError(assignment.name, str(answer["error"]))
        return ProcessId(int(answer["pid"]), int(answer["started"]))

    def _end_hung(self) -> None:
        """While a request is not answered none is sent; a fork server that hangs is ended, and the next one forks.

        Raises:
            PoolStartingError: the answer may still come.
        """
        self._take_in()
        if self._unanswered is None:
            return
        if time.monotonic() < self._unanswered.until:
            raise PoolStartingError(self._unanswered.name, "the fork server has not answered yet")
        hung = self.process()
        self.close()
        if hung:  # what it has forked lives on
            send(hung, signal.SIGKILL)
            wait_gone({hung}, _AT_ONCE_SECONDS)

    def shutdown(self) -> ProcessId | None:
        """Ask the fork server to end, which it does when it has no children; returns it when it goes."""
        process = self.process()
        try:
            if not self.join() or not self.ask({"leave": True}).get("leaving"):
                return None
        except (OSError, ValueError):
            self.close()
            return None
        self.close()
        return process

    def poll_events(self) -> list[SidecarEvent]:
        """What has happened since the last call, without waiting."""
        self._take_in()
        events, self._events = self._events, []
        return events

    def _take_in(self) -> None:
        if self._connection:
            messages, there = self._connection.pending()
            for message in messages:
                self._keep(message)
            if not there:
                self.close()

    def connect(self) -> None:
        """Connect, starting the fork server when none answers."""
        if self.join():
            return
        argv = [sys.executable, "-P", "-m", "sidecars", "--forkserver", str(self.runtime)]
        argv += ["--model"] if self.key else []
        environment = daemon_environ(self.key_env) | {MARKER_VARIABLE: " " * MARKER_ROOM, HELPER_VARIABLE: "1"}
        log = self.runtime / "forkserver.log"
        if self.waits:
            start_outside(argv, environment, log, self.outer)
        else:
            starting, self._starting = self._starting or Starting(argv, environment, log), None
            if not starting.is_up():
                self._starting = starting
                raise PoolStartingError("", "the fork server is coming up")
        self._connection = Connection.dial(self.runtime, "forkserver.sock")
        self.generation += 1

    def starting(self) -> ProcessId | None:
        """The launcher of a fork server that was begun: when it has ended, the server is up or has failed."""
        return identify(self._starting.pid) if self._starting else None

    def give_up(self) -> None:
        """Forget a fork server that was begun; where it comes up all the same, the next caller finds it."""
        if self._starting:
            self._starting.abandon()
        self._starting = None

    def join(self) -> bool:
        """Connect to the fork server if one runs; False when none does."""
        if not self._connection:
            try:
                self._connection = Connection.dial(self.runtime, "forkserver.sock")
            except (FileNotFoundError, ConnectionRefusedError):
                return False
            self.generation += 1
            self.give_up()  # its launcher has nothing more to tell
        return True

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """One request over the connection that stands, and its answer; events that come between are kept."""
        assert self._connection  # noqa: S101
        seconds = ANSWER_SECONDS if self.waits else _AT_ONCE_SECONDS
        self._connection.send(request, seconds)
        while "kind" in (message := self._connection.receive(seconds)):
            self._keep(message)
        return message

    def _keep(self, message: dict[str, Any]) -> None:
        if "kind" not in message:
            if late := self._unanswered:
                self._unanswered = None
                process = ProcessId(int(message.get("pid", 0)), int(message.get("started", 0)))
                self._events.append(SidecarEvent("answered", late.run, late.name, process))
            return
        process = ProcessId(message["pid"], message["started"])
        self._events.append(
            SidecarEvent(message["kind"], message["run"], message["name"], process, message.get("code"))
        )
