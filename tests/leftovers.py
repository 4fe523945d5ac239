"""What a test session leaves behind: processes and tmux servers, which fail it and are ended, and dead sockets."""

from __future__ import annotations

import os
import signal
import socket
import stat
from contextlib import suppress
from pathlib import Path

import psutil

#: In the environment of whatever a session starts, unless a test builds that from nothing. ``conftest.py`` keeps it.
SESSION = "PYTEST_OF_SESSION"


def left_processes(place: Path, session: str) -> list[psutil.Process]:
    """Living processes of a session, however their parents ended: tmux servers, fork servers and sidecars too.

    Args:
        place: the session's folder: what is started for files in it, or works in it, is the session's.
        session: the value of the variable that all inherit.
    """
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            ours = process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE
            if not ours and _belongs(process, f"{place}/", session):
                found.append(process)
    return found


def _belongs(process: psutil.Process, mark: str, session: str) -> bool:
    environment = process.environ()
    texts = [" ".join(process.cmdline()), f"{process.cwd()}/", *environment.values()]
    return environment.get(SESSION) == session or any(mark in text for text in texts)


def told(process: psutil.Process) -> str:
    """What is left, in one line, with the test that left it where that is known."""
    try:
        test = process.environ().get("PYTEST_CURRENT_TEST", "")
        return f"{process.pid} {' '.join(process.cmdline())[:150]}" + (f" (of {test})" if test else "")
    except psutil.Error:
        return f"{process.pid} (gone by now)"


def end(processes: list[psutil.Process]) -> None:
    """SIGKILL to exactly these processes, and wait for their end."""
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(signal.SIGKILL)  # psutil looks whether the pid is still that process's
    psutil.wait_procs(processes, timeout=5)


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
