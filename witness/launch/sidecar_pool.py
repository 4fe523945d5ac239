"""Starting sidecars, through the nursery: one preloaded process per town that forks them and reaps them.

A Python that imports what a sidecar needs takes hundreds of milliseconds and tens of megabytes; a fork of one that has
done so takes milliseconds and shares its memory. The nursery is nobody's child: it outlives the Witness and the command
that started it. If it dies, its sidecars live on, and the next start makes a new one.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from witness.assignment import Assignment
from witness.errors import SpawnError, WitnessError
from witness.files import open_log, read_bytes, replace_file
from witness.launch.environment import MARKER_ROOM, daemon_environ
from witness.names import HELPER_VARIABLE, MARKER_VARIABLE
from witness.process import ProcessId
from witness.process.serving import serving_process, short_path
from witness.process.table import identify, is_alive
from witness.tmux import Tmux

_START_SECONDS = 30.0
_ANSWER_SECONDS = 10.0
_OUTSIDE = Path(__file__).with_name("exec_with_env.py")


@dataclass(frozen=True, slots=True)
class SidecarLaunch:
    """News from the nursery.

    Args:
        kind: ``ready`` or ``exited``.
        run, name: which sidecar.
        process: its identity.
        code: its exit code, for ``exited``.
    """

    kind: str
    run: str
    name: str
    process: ProcessId
    code: int | None = None


def start_outside(argv: list[str], environment: dict[str, str], log: Path, outer: Tmux | None) -> None:
    """Start a helper that puts itself into the background, and wait until it has.

    Args:
        argv: a program that returns 0 when its background half is ready.
        environment: its whole environment.
        log: where its output goes.
        outer: the tmux that holds the polecat that we run in, if any: a child of ours would fall to that polecat's
            reaper and end with it, so its tmux server starts it instead.

    Raises:
        WitnessError: it did not come up.
    """
    if outer and outer.panes():
        try:
            _start_by_tmux(argv, environment, log, outer)
        except subprocess.TimeoutExpired:
            raise WitnessError(_too_late(argv, log)) from None
        return
    starting = _begin(argv, environment, log)
    try:
        code = starting.wait(_START_SECONDS)
    except subprocess.TimeoutExpired:
        starting.kill()
        starting.wait()
        raise WitnessError(_too_late(argv, log)) from None
    except BaseException:
        starting.kill()
        raise
    if code != 0:
        raise WitnessError(_ended(argv, code, log))


def _begin(argv: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with os.fdopen(open_log(log, below=log.parent), "ab") as output:
        return subprocess.Popen(
            argv, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/",
            start_new_session=True,
        )  # fmt: skip


def _too_late(argv: list[str], log: Path) -> str:
    return f"{' '.join(argv[2:4])} did not come up within {_START_SECONDS:.0f} s: see {log}"


def _ended(argv: list[str], code: int, log: Path) -> str:
    return f"{' '.join(argv[2:4])} ended with {code}: see {log}"


def _holds(path: Path, text: str, below: Path) -> bool:
    try:
        return read_bytes(path, below=below) == text.encode(errors="surrogateescape")
    except OSError:
        return False


def _start_by_tmux(argv: list[str], environment: dict[str, str], log: Path, tmux: Tmux) -> None:
    launch = log.with_name(f"launch-{os.getpid()}.json")
    replace_file(launch, json.dumps({"argv": argv, "environment": environment, "log": str(log)}))
    try:
        tmux.run_shell([sys.executable, "-S", "-I", str(_OUTSIDE), str(launch)], timeout=_START_SECONDS)
    finally:
        launch.unlink(missing_ok=True)


class PoolStartingError(SpawnError):
    """The fork server is coming up: nothing was started, and nothing is wrong. Try again when it is up."""


@dataclass
class _Starting:
    """A fork server that somebody has begun to start.

    Args:
        process: the launcher, which ends with 0 when the server answers.
        argv: what it was started with.
        until: monotonic seconds at which it is too late.
    """

    process: subprocess.Popen[bytes]
    argv: list[str]
    until: float


@dataclass
class SidecarPool:
    """A connection to the town's nursery; use it from one thread.

    Args:
        runtime: the town's runtime folder.
        key_env: name of the variable with the sidecars' API key.
        outer: the tmux that holds the polecat that the caller runs in, if any (see ``start_outside``).
        key: the sidecars' API key where somebody has handed it over; it goes to them through the socket alone.
        waits: whether ``start`` waits for a fork server that has to come up first; a daemon must not: it has others to
            look after for the seconds that takes.
        generation: counts the connections; a descriptor's number alone may come back.
    """

    runtime: Path
    key_env: str
    outer: Tmux | None = None
    key: str = field(default="", repr=False)
    waits: bool = True
    generation: int = 0
    _starting: _Starting | None = None
    _socket: socket.socket | None = None
    _buffer: bytes = b""
    _server: ProcessId | None = None
    _news: list[SidecarLaunch] = field(default_factory=list)

    def fileno(self) -> int | None:
        """Descriptor that turns readable when there is news; None while not connected."""
        return self._socket.fileno() if self._socket else None

    def close(self) -> None:
        if self._socket:
            self._socket.close()
        self._socket, self._buffer = None, b""

    def process(self) -> ProcessId | None:
        """The nursery that runs, as the kernel knows it; None when none does."""
        if self._socket is None or self._server is None or not is_alive(self._server):
            self._server = serving_process(self.runtime, "nursery.sock", "nursery.lock")
        return self._server

    def start(self, assignment: Assignment) -> ProcessId:
        """Start one sidecar.

        Raises:
            PoolStartingError: the fork server is only just coming up, and we do not wait.
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
        for attempt in (1, 2):
            try:
                self.connect()
                # Only now: before the first sidecar there is no fork server. A stranger behind its socket gets no key.
                request["key"] = self.key if self.key and self.process() else ""
                answer = self.ask(request)
                break
            except (OSError, ValueError) as error:
                # It may have ended between two requests; a second failure is a real one.
                self.close()
                if attempt == 2:
                    raise SpawnError(assignment.name, f"the nursery does not answer: {error}") from error
            except SpawnError:
                raise
            except WitnessError as error:
                raise SpawnError(assignment.name, str(error)) from error
        if "error" in answer:
            raise SpawnError(assignment.name, str(answer["error"]))
        return ProcessId(int(answer["pid"]), int(answer["started"]))

    def shutdown(self) -> ProcessId | None:
        """Ask the nursery to end, which it does when it has no children; returns it when it goes."""
        process = self.process()
        try:
            if not self.join() or not self.ask({"leave": True}).get("leaving"):
                return None
        except (OSError, ValueError):
            self.close()
            return None
        self.close()
        return process

    def news(self) -> list[SidecarLaunch]:
        """What has happened since the last call, without waiting."""
        if self._socket:
            self._socket.setblocking(False)
            try:
                while chunk := self._socket.recv(65536):
                    self._buffer += chunk
                self.close()
            except BlockingIOError:
                pass
            except OSError:
                self.close()
        while (message := self._message()) is not None:
            self._keep(message)
        news, self._news = self._news, []
        return news

    def connect(self) -> None:
        """Connect, starting the nursery when none answers."""
        if self.join():
            return
        argv = [sys.executable, "-P", "-m", "sidecars", "--nursery", str(self.runtime)]
        argv += ["--model"] if self.key else []
        environment = daemon_environ(self.key_env) | {MARKER_VARIABLE: " " * MARKER_ROOM, HELPER_VARIABLE: "1"}
        if self.waits:
            start_outside(argv, environment, self._log, self.outer)
        else:
            self._start_beside(argv, environment)
        self._socket = self._dial()
        self.generation += 1

    @property
    def _log(self) -> Path:
        return self.runtime / "nursery.log"

    def _start_beside(self, argv: list[str], environment: dict[str, str]) -> None:
        """Start the fork server without waiting for it; returns when one that was begun earlier is up.

        Raises:
            PoolStartingError: it is coming up.
            WitnessError: what was begun earlier has failed.
        """
        begun = self._starting
        if begun is None:
            process = _begin(argv, environment, self._log)
            begun = _Starting(process, argv, time.monotonic() + _START_SECONDS)
            self._starting = begun
        code = begun.process.poll()
        if code is None and time.monotonic() < begun.until:
            raise PoolStartingError("", "the fork server is coming up")
        self.give_up()
        if code is None:
            raise WitnessError(_too_late(begun.argv, self._log))
        if code != 0:
            raise WitnessError(_ended(begun.argv, code, self._log))

    def starting(self) -> ProcessId | None:
        """The launcher of a fork server that was begun: when it has ended, the server is up or has failed."""
        return identify(self._starting.process.pid) if self._starting else None

    def give_up(self) -> None:
        """Forget a fork server that was begun; where it comes up all the same, the next caller finds it."""
        if self._starting and self._starting.process.poll() is None:
            self._starting.process.kill()
            self._starting.process.wait()
        self._starting = None

    def join(self) -> bool:
        """Connect to the nursery if one runs; False when none does."""
        if not self._socket:
            try:
                self._socket = self._dial()
            except (FileNotFoundError, ConnectionRefusedError):
                return False
            self.generation += 1
            self.give_up()  # its launcher has nothing more to tell
        return True

    def _dial(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with short_path(self.runtime, "nursery.sock") as path:
                connection.connect(path)
        except OSError:
            connection.close()
            raise
        return connection

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """One request over the connection that stands, and its answer; news that come between are kept."""
        assert self._socket  # noqa: S101
        self._socket.settimeout(_ANSWER_SECONDS)
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        while True:
            while (message := self._message()) is None:
                chunk = self._socket.recv(65536)
                if not chunk:
                    raise ConnectionResetError("it closed the connection")
                self._buffer += chunk
            if "kind" not in message:
                return message
            self._keep(message)

    def _message(self) -> dict[str, Any] | None:
        line, newline, rest = self._buffer.partition(b"\n")
        if not newline:
            return None
        self._buffer = rest
        message: dict[str, Any] = json.loads(line)
        return message

    def _keep(self, message: dict[str, Any]) -> None:
        process = ProcessId(message["pid"], message["started"])
        self._news.append(SidecarLaunch(message["kind"], message["run"], message["name"], process, message.get("code")))
