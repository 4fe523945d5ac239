"""What a test session leaves behind: processes that fail it, and dead sockets that are swept away."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import psutil


def processes_under(place: Path) -> list[str]:
    """Living processes that were started for files below ``place``, as ``pid command``."""
    found = []
    mark = f"{place}/"
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            words = " ".join(process.cmdline())
            if mark in words or any(mark in value for value in process.environ().values()):
                found.append(f"{process.pid} {words[:150]}")
        except (psutil.Error, OSError):
            continue
    return found


def sweep_tmux_sockets(since: float) -> None:
    """Remove the sockets of tmux servers that began after ``since`` and have ended; tmux itself leaves them."""
    folder = Path("/tmp") / f"tmux-{os.getuid()}"
    for path in folder.iterdir() if folder.is_dir() else ():
        try:
            status = path.stat()
            if stat.S_ISSOCK(status.st_mode) and status.st_mtime >= since and not _answers(path):
                path.unlink()
        except OSError:
            continue


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
