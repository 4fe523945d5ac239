"""Asks the Witness again and again, from a process of its own: how long does a living one leave a question open?"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tests.programs import Identity
from witness.config.town import Town
from witness.ipc.serving import short_path

_PAUSE = 0.1
_PATIENCE = 20.0
_CROWDED_MOST = 8.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One question that a living Witness has answered.

    Args:
        began, ended: monotonic seconds.
        queued: seconds of these in which the Witness was ready and had no processor: the machine's share.
        pressed: seconds of these in which some process of the machine waited for a processor; 0 where the kernel does
            not tell.
    """

    began: float
    ended: float
    queued: float
    pressed: float = 0.0

    @property
    def seconds(self) -> float:
        """How long nobody supervised, apart from what the machine did not give."""
        return self.ended - self.began - self.queued

    @property
    def crowded(self) -> bool:
        """Whether somebody waited for a processor all the time: what the Witness waits for (a fork, tmux) then did.

        That explains seconds, and no more.
        """
        whole = self.ended - self.began
        return whole < _CROWDED_MOST and (self.queued > 1.0 or self.pressed > 0.9 * whole)


class Probe:
    """The asking process; its answers lie in a file."""

    def __init__(self, town: Town, facts: Path) -> None:
        self._path, self._read = facts / "probe", 0
        self.pid = os.fork()
        if self.pid == 0:
            _ask_for_ever(town, self._path)

    def answers(self) -> list[Answer]:
        """What was answered since this was last asked."""
        if not self._path.exists():
            return []
        with self._path.open() as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind("\n") + 1]
        self._read += len(whole)
        return [Answer(*map(float, line.split())) for line in whole.splitlines()]

    def identity(self) -> Identity:
        return self.pid, int(Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[19])


def _ask_for_ever(town: Town, path: Path) -> NoReturn:
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(_PAUSE)
        began, before, pressed = time.monotonic(), 0.0, _pressed()
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(_PATIENCE)
                with short_path(town.runtime, "witness.sock") as socket_path:
                    connection.connect(socket_path)
                pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
                before = _queued(pid)
                connection.sendall(json.dumps({"op": "status"}).encode() + b"\n")
                answered = bool(connection.recv(4096))
                after = _queued(pid)
        except TimeoutError:
            answered, after = True, before
        except OSError:
            continue
        if answered:
            with path.open("a") as file:
                file.write(f"{began} {time.monotonic()} {after - before} {_pressed() - pressed}\n")
    os._exit(0)


def _pressed() -> float:
    """Seconds in which some process of this machine has waited for a processor so far."""
    try:
        return int(Path("/proc/pressure/cpu").read_text().partition("total=")[2].split()[0]) / 1e6
    except (OSError, ValueError, IndexError):
        return 0.0


def _queued(pid: int) -> float:
    """Seconds that a process has waited for a processor so far."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
