"""The supervisors that people use today, each set up as its manual says for ending whole trees.

Each is started under a scratch folder of its own with some declared services, and ended by its pid. ``GRACE`` is the
time that every one of them is given between TERM and KILL.
"""

from __future__ import annotations

import http.client
import json
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import time
import xmlrpc.client
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

import psutil

GRACE = 1.0
_VENV = Path(__file__).resolve().parents[2] / ".cache" / "bench-venv" / "bin"
_START_SECONDS = 20.0
_SCRIPT_MODE = 0o755

Services = Mapping[str, list[str]]
_T = TypeVar("_T")


def wait_for(what: str, seconds: float, check: Callable[[], _T]) -> _T:
    """Ask a foreign program for a fact until it says yes; the last resort where it tells nothing by itself."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(OSError, psutil.Error, ValueError, http.client.HTTPException):
            if found := check():
                return found
        select.select([], [], [], 0.01)
    raise TimeoutError(what)


class Peer(ABC):
    """One supervisor with its services.

    Args:
        folder: scratch folder, with a short path: some put sockets there.
        services: argument list by name; none runs until ``up``.
        restart: whether a service that dies is started again.
    """

    name: str
    how = ""
    # Whether it starts anew what has died; tmux and a recipe do not.
    restarts = True

    def __init__(self, folder: Path, services: Services, *, restart: bool = False) -> None:
        self.folder, self.services, self.restart = folder, services, restart

    @classmethod
    @abstractmethod
    def missing(cls) -> str:
        """Why it cannot be measured here; empty when it can."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    @abstractmethod
    def up(self, service: str) -> None:
        """Start a service."""

    @abstractmethod
    def down(self, service: str) -> None:
        """Stop a service as the manual says, and wait as long as the supervisor itself waits."""

    def pid(self, service: str) -> int:
        """The first process of a service."""
        raise NotImplementedError

    def own(self) -> list[int]:
        """The supervisor's own processes."""
        raise NotImplementedError


class _Daemon(Peer):
    """A peer that is one daemon of ours with something below it."""

    daemon: subprocess.Popen[bytes]

    def _launch(self, argv: list[str], **environment: str) -> None:
        # Nothing of the caller's environment but what a program needs to run.
        kept = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.folder), **environment}
        log = (self.folder / "daemon.log").open("wb")
        self.daemon = subprocess.Popen(
            argv, cwd=self.folder, env=kept, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        log.close()

    def __exit__(self, *_: object) -> None:
        root = psutil.Process(self.daemon.pid)
        tree = root.children(recursive=True)
        self.daemon.send_signal(self.ends_by)
        with suppress(subprocess.TimeoutExpired):
            self.daemon.wait(GRACE + 3)
        for process in [root, *tree]:
            with suppress(psutil.Error):
                process.kill()
        self.daemon.wait(10)
        psutil.wait_procs(tree, timeout=5)

    ends_by = signal.SIGTERM


class _UnixTransport(xmlrpc.client.Transport):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def make_connection(self, host: object) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self._path)
        return connection


class Supervisord(_Daemon):
    name = "supervisord"
    how = "stopasgroup and killasgroup on, startsecs 0"

    @classmethod
    def missing(cls) -> str:
        return "" if (_VENV / "supervisord").exists() else "not installed"

    def __enter__(self) -> Self:
        lines = [
            "[supervisord]", "nodaemon=true", "logfile=/dev/null", "logfile_maxbytes=0",
            f"pidfile={self.folder}/pid", f"childlogdir={self.folder}",
            "[unix_http_server]", f"file={self.folder}/rpc",
            "[rpcinterface:supervisor]",
            "supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface",
        ]  # fmt: skip
        for service, argv in self.services.items():
            lines += [
                f"[program:{service}]", f"command={shlex.join(argv).replace('%', '%%')}", "autostart=false",
                f"autorestart={str(self.restart).lower()}", f"stopwaitsecs={GRACE:g}", "startsecs=0",
                "stopasgroup=true", "killasgroup=true", "stdout_logfile=NONE", "stderr_logfile=NONE",
            ]  # fmt: skip
        (self.folder / "conf").write_text("\n".join(lines) + "\n")
        self._launch(
            [str(_VENV / "python"), "-W", "ignore", str(_VENV / "supervisord"), "-c", str(self.folder / "conf")]
        )
        wait_for("supervisord answers", _START_SECONDS, lambda: self._rpc().getState()["statename"] == "RUNNING")
        return self

    def _rpc(self) -> Any:
        proxy = xmlrpc.client.ServerProxy("http://localhost", transport=_UnixTransport(str(self.folder / "rpc")))
        return proxy.supervisor

    def up(self, service: str) -> None:
        self._rpc().startProcess(service)

    def down(self, service: str) -> None:
        self._rpc().stopProcess(service)

    def pid(self, service: str) -> int:
        return wait_for("a pid", 10, lambda: int(self._rpc().getProcessInfo(service)["pid"]))

    def own(self) -> list[int]:
        return [self.daemon.pid]


class Circus(_Daemon):
    name = "circus"
    how = "stop_children on, check_delay 0.5 (5 unless set)"
    _client: subprocess.Popen[str]

    @classmethod
    def missing(cls) -> str:
        return "" if (_VENV / "circusd").exists() else "not installed"

    def __enter__(self) -> Self:
        lines = [
            "[circus]",
            "check_delay=0.5",
            f"endpoint=ipc://{self.folder}/ask",
            f"pubsub_endpoint=ipc://{self.folder}/pub",
        ]
        for service, argv in self.services.items():
            lines += [
                f"[watcher:{service}]", f"cmd={shlex.join(argv)}", "autostart=false", f"graceful_timeout={GRACE:g}",
                "stop_children=true", f"respawn={str(self.restart).lower()}", "copy_env=true",
            ]  # fmt: skip
        (self.folder / "conf").write_text("\n".join(lines) + "\n")
        self._launch([str(_VENV / "circusd"), "--log-level", "error", str(self.folder / "conf")])
        self._client = subprocess.Popen(
            [str(_VENV / "python"), str(Path(__file__).with_name("circus_client.py")), f"ipc://{self.folder}/ask"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        wait_for("circus answers", _START_SECONDS, lambda: self._ask("numprocesses")["status"] == "ok")
        return self

    def _ask(self, command: str, **properties: object) -> Any:
        assert self._client.stdin
        assert self._client.stdout
        self._client.stdin.write(json.dumps({"command": command, "properties": properties}) + "\n")
        self._client.stdin.flush()
        return json.loads(self._client.stdout.readline())

    def __exit__(self, *_: object) -> None:
        self._client.kill()
        self._client.wait()
        super().__exit__()

    def up(self, service: str) -> None:
        self._ask("start", name=service, waiting=True, match="simple")

    def down(self, service: str) -> None:
        self._ask("stop", name=service, waiting=True, match="simple")

    def pid(self, service: str) -> int:
        return wait_for("a pid", 10, lambda: int(self._ask("list", name=service)["pids"][0]))

    def own(self) -> list[int]:
        return [self.daemon.pid]


class _Folders(_Daemon):
    """runit and s6: a folder a service, a small supervisor each."""

    def _make(self, services: Path) -> None:
        for service, argv in self.services.items():
            folder = services / service
            folder.mkdir(parents=True)
            run = folder / "run"
            run.write_text(f"#!/bin/sh\nexec {shlex.join(argv)}\n")
            run.chmod(_SCRIPT_MODE)
            (folder / "down").touch()
            self._each(folder)

    def _each(self, folder: Path) -> None:
        pass

    def own(self) -> list[int]:
        return [self.daemon.pid, *(child.pid for child in psutil.Process(self.daemon.pid).children())]


class Runit(_Folders):
    name = "runit"
    how = "sv force-stop"
    ends_by = signal.SIGHUP

    @classmethod
    def missing(cls) -> str:
        return "" if shutil.which("runsvdir") and shutil.which("sv") else "not installed"

    def __enter__(self) -> Self:
        self._make(self.folder / "sv")
        self._launch(["runsvdir", str(self.folder / "sv")])
        ready = [self.folder / "sv" / service / "supervise" / "ok" for service in self.services]
        wait_for("runsvdir stands", _START_SECONDS, lambda: all(path.exists() for path in ready))
        return self

    def _sv(self, *arguments: str) -> None:
        subprocess.run(["sv", *arguments], capture_output=True, check=False)

    def up(self, service: str) -> None:
        self._sv("-w", "5", "start" if self.restart else "once", str(self.folder / "sv" / service))

    def down(self, service: str) -> None:
        self._sv("-w", f"{GRACE:g}", "force-stop", str(self.folder / "sv" / service))

    def pid(self, service: str) -> int:
        path = self.folder / "sv" / service / "supervise" / "pid"
        return wait_for("a pid", 10, lambda: int(path.read_text()))


class S6(_Folders):
    name = "s6"
    how = "timeout-kill set"

    @classmethod
    def missing(cls) -> str:
        return "" if shutil.which("s6-svscan") else "not installed"

    def __enter__(self) -> Self:
        self._make(self.folder / "sv")
        self._launch(["s6-svscan", "-c", "1000", str(self.folder / "sv")])
        ready = [self.folder / "sv" / service / "supervise" / "control" for service in self.services]
        wait_for("s6-svscan stands", _START_SECONDS, lambda: all(path.exists() for path in ready))
        return self

    def _each(self, folder: Path) -> None:
        (folder / "timeout-kill").write_text(f"{1000 * GRACE:.0f}\n")

    def _svc(self, *arguments: str) -> None:
        subprocess.run(["s6-svc", *arguments], capture_output=True, check=False)

    def up(self, service: str) -> None:
        self._svc("-u" if self.restart else "-o", "-wu", "-T", "5000", str(self.folder / "sv" / service))

    def down(self, service: str) -> None:
        self._svc("-d", "-wD", "-T", f"{1000 * (GRACE + 2):.0f}", str(self.folder / "sv" / service))

    def pid(self, service: str) -> int:
        def found() -> int:
            done = subprocess.run(
                ["s6-svstat", "-o", "pid", str(self.folder / "sv" / service)], capture_output=True, check=False
            )
            return max(0, int(done.stdout))

        return wait_for("a pid", 10, found)


class TmuxKillSession(Peer):
    name = "tmux kill-session"
    restarts = False
    how = "a session a service"

    @classmethod
    def missing(cls) -> str:
        return "" if shutil.which("tmux") else "not installed"

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self.folder / "socket"), *arguments],
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.folder), "SHELL": "/bin/sh"},
        )  # fmt: skip
        return done.stdout

    def __enter__(self) -> Self:
        self._tmux("new-session", "-d", "-s", "keep", "sleep", "600")
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server")

    def up(self, service: str) -> None:
        self._tmux("new-session", "-d", "-s", service, *self.services[service])

    def down(self, service: str) -> None:
        self._tmux("kill-session", "-t", f"={service}")


class PsutilRecipe(Peer):
    name = "psutil recipe"
    restarts = False
    how = "terminate, wait_procs, kill over children(recursive=True)"

    @classmethod
    def missing(cls) -> str:
        return ""

    def __enter__(self) -> Self:
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.kill()
            process.wait(10)

    def up(self, service: str) -> None:
        self._running[service] = subprocess.Popen(
            self.services[service], start_new_session=True, stdin=subprocess.DEVNULL
        )

    def down(self, service: str) -> None:
        leader = psutil.Process(self._running[service].pid)
        processes = [*leader.children(recursive=True), leader]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        _, living = psutil.wait_procs(processes, timeout=GRACE)
        for process in living:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(living, timeout=GRACE)


PEERS: tuple[type[Peer], ...] = (Supervisord, Circus, Runit, S6, TmuxKillSession, PsutilRecipe)
