"""Processes of ours that stay: put into the background by themselves, and waited for until they are ready."""

from __future__ import annotations

import json
import math
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from witness.errors import WitnessError
from witness.files import open_log, replace_file
from witness.tmux import Tmux

_START_SECONDS = 30.0
_EXEC_WITH_ENV = Path(__file__).with_name("exec_with_env.py")


def go_to_background() -> Callable[[], None] | bool:
    """Fork; the child leaves the session and its standard input, and what it writes is the user's alone.

    Returns:
        In the child, what it calls when it is ready; in the parent, whether the child called it within 30 seconds.
    """
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    if os.fork() > 0:
        os.close(write_end)
        up = bool(select.select([read_end], [], [], _START_SECONDS)[0] and os.read(read_end, 1))
        os.close(read_end)
        return up
    os.close(read_end)
    os.setsid()
    os.umask(0o077)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)

    def ready() -> None:
        os.write(write_end, b"u")
        os.close(write_end)

    return ready


class Starting:
    """A helper that is on its way into the background.

    Args:
        argv: a program that returns 0 when its background half is ready.
        environment: its whole environment.
        log: where its output goes.
    """

    def __init__(self, argv: list[str], environment: dict[str, str], log: Path) -> None:
        self._argv, self._log = argv, log
        self._until = time.monotonic() + _START_SECONDS
        with os.fdopen(open_log(log, below=log.parent), "ab") as output:
            self._launcher = subprocess.Popen(
                argv, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/",
                start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """Of the launcher: when it has ended, the helper is ready or has failed."""
        return self._launcher.pid

    def is_up(self, *, wait: bool = False) -> bool:
        """Whether it is ready by now.

        Args:
            wait: wait for it, as long as a start may take.

        Raises:
            WitnessError: it has failed, or did not come up in time and was ended.
        """
        try:
            code = self._launcher.wait(max(0.0, self._until - time.monotonic())) if wait else self._launcher.poll()
        except subprocess.TimeoutExpired:
            code = None
        except BaseException:
            self.abandon()
            raise
        if code is None:
            if time.monotonic() < self._until:
                return False
            self.abandon()
            raise WitnessError(_too_late(self._argv, self._log))
        if code != 0:
            raise WitnessError(f"{' '.join(self._argv[2:4])} ended with {code}: see {self._log}")
        return True

    def abandon(self) -> None:
        """End the launcher; a helper that is ready by then stays."""
        if self._launcher.poll() is None:
            self._launcher.kill()
            self._launcher.wait()


def start_outside(argv: list[str], environment: dict[str, str], log: Path, outer: Tmux | None) -> None:
    """Start a helper that puts itself into the background, and wait until it has.

    Args:
        argv, environment, log: see ``Starting``.
        outer: the tmux that holds the polecat that we run in, if any: a child of ours would fall to that polecat's
            reaper and end with it, so its tmux server starts it instead.

    Raises:
        WitnessError: it did not come up.
    """
    if not (outer and outer.panes()):
        Starting(argv, environment, log).is_up(wait=True)
        return
    try:
        _start_by_tmux(argv, environment, log, outer)
    except subprocess.TimeoutExpired:
        raise WitnessError(_too_late(argv, log)) from None


def _too_late(argv: list[str], log: Path) -> str:
    return f"{' '.join(argv[2:4])} did not come up within {_START_SECONDS:.0f} s: see {log}"


def _start_by_tmux(argv: list[str], environment: dict[str, str], log: Path, tmux: Tmux) -> None:
    launch = log.with_name(f"launch-{os.getpid()}.json")
    replace_file(launch, json.dumps({"argv": argv, "environment": environment, "log": str(log)}))
    try:
        tmux.run_shell([sys.executable, "-S", "-I", str(_EXEC_WITH_ENV), str(launch)], timeout=_START_SECONDS)
    finally:
        launch.unlink(missing_ok=True)


class ServiceManager:
    """systemd, where it has started us with ``Type=notify``: it hears that we are ready, and at each beat that we live.

    The variables are taken out of the environment: what we start must not speak for us.

    Attributes:
        beat: seconds after which it must hear of us at the latest; endless without a watchdog.
    """

    def __init__(self) -> None:
        self._address = os.environ.pop("NOTIFY_SOCKET", "")
        watched = os.environ.pop("WATCHDOG_USEC", ""), os.environ.pop("WATCHDOG_PID", "")
        wanted = watched[0].isdigit() and watched[1] in ("", str(os.getpid()))
        self.beat = int(watched[0]) / 2e6 if wanted else math.inf

    def tell(self, state: str) -> None:
        """Send ``READY=1`` or ``WATCHDOG=1``; nothing where nobody listens."""
        if not self._address:
            return
        place = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as told:
            told.sendto(state.encode(), place)
