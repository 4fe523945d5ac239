"""The fork server: loads once what every sidecar needs, and forks one on request.

It is single-threaded, opens nothing that a child must not share, and is the only one to reap its children: how each
ended is written to ``RUN_DIR/exits/NAME.json`` and told to all that are connected. It ends by itself when it has had
neither children nor callers for a while.

The protocol is one JSON object a line on a Unix socket: ``{"assignment","text","run","name","marker","run_dir"}`` is
answered by ``{"pid","started"}`` or ``{"error"}``; events come as ``{"kind": "ready"|"exited", "run","name","pid",
"started"}``.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from sidecars.observer.looker_pool import LookerPool
from witness.assignment import Assignment
from witness.config.keys import give_key
from witness.files import clear_place, make_folder, open_log, open_regular, replace_file
from witness.ipc.background import go_to_background
from witness.ipc.jsonlines import Connection, RequestServer
from witness.names import MARKER_VARIABLE
from witness.process.title import keep_title_safe

_SOCKET = "forkserver.sock"
_IDLE_SECONDS = 60.0
# As the loop's own code for a journal that was taken away.
_REMOVED = 5
_LARGEST_LOG = 1_000_000
_RECORD_WIDTH = 100
# What a sidecar imports between its fork and its first look.
_NEEDED = (
    "ctypes",
    "encodings.utf_8_sig",
    "pathspec",
    "rapidfuzz.fuzz",
    "setproctitle",
    "sidecars.observer.factory",
    "sidecars.observer.process",
    "sidecars.observer.watcher",
    "witness.delivery.nudge_queue",
    "witness.events.looker",
    "witness.process.title",
    "yaml",
)
# What those that ask a model import besides: two seconds and 60 MB for each, unless they share it.
_NEEDED_WITH_A_KEY = (
    "anthropic",
    "sidecars.observer.judge.model",
    "sidecars.observer.judge.model",
    "tenacity",
)


@dataclass(frozen=True, slots=True)
class _Child:
    run: str
    name: str
    run_dir: str
    started: int

    def event(self, kind: str, pid: int, **more: object) -> dict[str, object]:
        return {"kind": kind, "run": self.run, "name": self.name, "pid": pid, "started": self.started, **more}


def _start_ticks(pid: int) -> int:
    try:
        data = Path(f"/proc/{pid}/stat").read_bytes()
        return int(data.rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        import psutil

        return int(psutil.Process(pid).create_time() * 1000)


def _own_marker(marker: str) -> None:
    """Put the marker where the kernel shows it to others.

    ``/proc/PID/environ`` shows the memory that a process was started with, and a fork inherits its parent's. The
    fork_server was started with a blank marker of enough room; the child fills its own copy in.
    """
    import ctypes

    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    room = libc.getenv(MARKER_VARIABLE.encode())
    encoded = marker.encode()
    if room and len(encoded) <= len(os.environ.get(MARKER_VARIABLE, "")):
        ctypes.memmove(room, encoded + b"\0", len(encoded) + 1)
    os.environ[MARKER_VARIABLE] = marker


class ForkServer:
    """The running fork server of one town."""

    def __init__(self, runtime: Path) -> None:
        self._runtime = runtime
        self._children: dict[int, _Child] = {}
        self._leaving = False
        self._lookers = LookerPool(self._become_looker)
        self._selector = selectors.DefaultSelector()
        self._callers = RequestServer(self._selector, _SOCKET, Connection)
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def open(self) -> None:
        """Take requests. The caller holds the lock."""
        os.chdir(self._runtime)
        self._callers.listen()

    def serve(self) -> None:
        """Fork sidecars until nobody needs us any more."""
        started = _start_ticks(os.getpid())
        replace_file("forkserver.json", json.dumps({"pid": os.getpid(), "started": started}), durable=False, aside=True)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        self._selector.register(self._wake_read, selectors.EVENT_READ, "wake")
        while True:
            ready = self._selector.select(_IDLE_SECONDS)
            if not ready and not self._children and not self._callers:
                return
            for key, _ in ready:
                if key.data == "listener":
                    self._callers.accept()
                elif key.data == "wake":
                    os.read(self._wake_read, 4096)
                elif isinstance(key.fileobj, Connection):
                    self._serve(key.fileobj)
                else:
                    self._is_ready(key.fd, key.data)
            self._reap()
            if self._leaving:
                self._lookers.close()
                return

    def _serve(self, caller: Connection) -> None:
        for request in self._callers.read_requests(caller):
            try:
                answer = self._fork(request)
            except (ValueError, KeyError, TypeError, OSError) as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            self._callers.tell(caller, answer)
            if "pid" in answer:
                self._look_for(request)

    def _look_for(self, request: dict[str, str]) -> None:
        """Have what the observed agent's calls do to the files looked at."""
        try:
            workdir = Assignment.from_json(request["text"]).workdir
            self._lookers.add(f"{request['run_dir']}/spool", workdir)
        except (OSError, ValueError, KeyError, TypeError) as error:
            # Sidecars then go by what a command says, as everywhere where nobody looks.
            sys.stderr.write(f"{request['run_dir']}: effects are not looked at: {error}\n")

    def _fork(self, request: dict[str, str]) -> dict[str, object]:
        if request.get("leave"):
            # Asked when the Witness stops: without children there is nothing to stay for.
            self._leaving = not self._children
            return {"leaving": self._leaving}
        run, name, run_dir = request["run"], request["name"], request["run_dir"]
        assignment, text, marker = request["assignment"], request["text"], request["marker"]
        key = request.get("key", "")
        ready_read, ready_write = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            os.close(ready_read)
            self._become(assignment, text, key, name, run_dir, marker, ready_write)
        os.close(ready_write)
        child = _Child(run, name, run_dir, _start_ticks(pid))
        self._children[pid] = child
        self._selector.register(ready_read, selectors.EVENT_READ, pid)
        return {"pid": pid, "started": child.started}

    def _become(
        self, assignment: str, text: str, key: str, name: str, run_dir: str, marker: str, ready: int
    ) -> NoReturn:
        """The child's whole life. It never returns into the fork server's loop."""

        def observe() -> int:
            _own_marker(marker)
            give_key(key)
            return self._observe(assignment, text, marker, name, ready)

        self._live(observe, ready, Path(run_dir) / "logs" / f"{name}.log", Path(run_dir).parent)

    def _become_looker(self, root: str, orders: int) -> NoReturn:
        def look() -> int:
            from witness.events import looker
            from witness.process.title import set_title

            set_title(f"gt-looker {root}")
            # Ours may lie in the tree: in a town that is a repository itself.
            ours = self._runtime.parent if self._runtime.parent.name == ".runtime" else self._runtime
            return looker.run(root, (os.path.realpath(ours),), orders)

        self._live(look, orders, self._runtime / "looker.log", self._runtime)

    def _live(self, life: Callable[[], int], kept: int, log: Path, below: Path) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            # The lock, too, would live on in the child.
            self._close_inherited(kept)
            os.setsid()
            self._redirect(log, below)
            os.chdir("/")
            code = life()
        except SystemExit as leave:
            code = leave.code if isinstance(leave.code, int) else 1
        except BaseException:  # noqa: BLE001 - whatever it was, the log shall have it and the fork server its exit code
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _close_inherited(self, kept: int) -> None:
        self._selector.close()
        os.closerange(3, kept)
        os.closerange(kept + 1, 4096)

    @staticmethod
    def _redirect(log: Path, below: Path) -> None:
        handle = open_log(log, below=below, limit=_LARGEST_LOG)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        os.close(handle)
        os.close(null)

    @staticmethod
    def _observe(assignment: str, text: str, marker: str, name: str, ready: int) -> int:
        from sidecars.observer.process import run
        from witness.process.title import set_title

        set_title(f"gt-sidecar {marker} {name}")

        def tell_ready() -> None:
            if not Path(assignment).exists():
                # Everything was removed while we came up, and we made it anew: nobody wants us there.
                sys.exit(_REMOVED)
            os.write(ready, b"r")
            os.close(ready)

        # The file is for people and for a journal that is made anew; an agent can write it, so it is not believed here.
        return run(Assignment.from_json(text), tell_ready)

    def _is_ready(self, handle: int, pid: int) -> None:
        said = os.read(handle, 1)
        self._selector.unregister(handle)
        os.close(handle)
        if said and (child := self._children.get(pid)):
            self._callers.broadcast(child.event("ready", pid))

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self._lookers.reaped(pid):
                continue
            if (child := self._children.pop(pid, None)) is None:
                continue  # a looker that was dropped
            if not any(other.run_dir == child.run_dir for other in self._children.values()):
                self._lookers.drop(f"{child.run_dir}/spool")
            code = os.waitstatus_to_exitcode(status)
            code = code if code >= 0 else 128 - code
            self._record(child, pid, code)
            self._callers.broadcast(child.event("exited", pid, code=code))

    @staticmethod
    def _record(child: _Child, pid: int, code: int) -> None:
        # One write of always the same length over the record before: whole for every reader, and the successor waits
        # for it, so no file is made and renamed each time.
        path = f"{child.run_dir}/exits/{child.name}.json"
        text = json.dumps({"pid": pid, "started": child.started, "code": code}).ljust(_RECORD_WIDTH)
        try:
            make_folder(f"{child.run_dir}/exits", below=child.run_dir)
            handle = open_regular(path, below=os.path.dirname(child.run_dir), flags=os.O_WRONLY | os.O_CREAT)  # noqa: PTH120
            try:
                os.write(handle, text.encode())
            finally:
                os.close(handle)
        except OSError as error:  # a full disk, or the run's folder is gone: the Witness then takes it for a crash
            with contextlib.suppress(OSError):
                os.write(2, f"could not record the exit of {child.name}: {error}\n".encode())


def main(runtime: Path, *, with_model: bool = False) -> int:
    """Become the town's fork server in the background; returns once it answers, or one does already."""
    lock = open_regular(runtime / "forkserver.lock", flags=os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0 if _answers(runtime) else 1
    ready = go_to_background()
    if isinstance(ready, bool):
        os.close(lock)
        return 0 if ready else 1
    keep_title_safe("gt-forkserver")
    server = ForkServer(runtime)
    _preload(with_model)
    # Only now: who could connect earlier would wait for the answer as long as all that takes.
    server.open()
    # Objects that live for ever are put aside, so that no collection in a child copies their pages.
    gc.collect()
    gc.freeze()
    ready()
    try:
        server.serve()
    finally:  # never reached in a child: that one leaves by os._exit
        for name in (_SOCKET, "forkserver.json"):
            with contextlib.suppress(OSError):
                clear_place(name)
    return 0


def _preload(with_model: bool) -> None:
    """Import what every child needs, once: a child that did it by itself would need 150 ms and 10 MiB for it."""
    for module in _NEEDED + (_NEEDED_WITH_A_KEY if with_model else ()):
        importlib.import_module(module)
    from sidecars.observer.process import warm_up
    from witness.process import ProcessId

    warm_up(ProcessId(os.getpid(), _start_ticks(os.getpid())))


def _answers(runtime: Path) -> bool:
    """Whether the fork server that holds the lock accepts connections; one that is just coming up is given time."""
    for _ in range(500):
        try:
            Connection.dial(runtime, _SOCKET).close()
            return True
        except OSError:
            time.sleep(0.02)
    return False
