"""Who serves a Unix socket, as the kernel tells it and not as somebody has written it down."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from witness.process import ProcessId
from witness.process.table import LINUX, identify, read_marker


@contextmanager
def short_path(folder: Path, name: str) -> Iterator[str]:
    """A path to a socket in ``folder`` that is short enough for the kernel, however deep the folder lies."""
    direct = str(folder / name)
    # The kernel's limit is 108 bytes (104 on macOS), and a town may lie anywhere.
    if len(os.fsencode(direct)) < 100 or not Path("/proc/self/fd").is_dir():
        yield direct
        return
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{name}"
    finally:
        os.close(handle)


def serving_process(folder: Path, name: str, lock: str) -> ProcessId | None:
    """The helper of ours that serves a socket; None when nobody does, or somebody else.

    It is ours when it runs as us, holds the lock that only one can hold, and was not started by a polecat: a process of
    a group carries its marker, and cannot write itself into a file to become one of us.

    Args:
        folder: the runtime folder.
        name: the socket's name in it.
        lock: the lock file's name in it.
    """
    pid = _peer(folder, name)
    process = identify(pid) if pid else None
    if process is None or read_marker(process.pid).marker or not _holds_lock(process.pid, folder / lock):
        return None
    return process if identify(process.pid) == process else None


def _peer(folder: Path, name: str) -> int:
    """The pid of the process that listens on a socket, 0 for none and for one of another user."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
        try:
            with short_path(folder, name) as path:
                connection.connect(path)
            pid, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        except (OSError, AttributeError):
            return 0
    return pid if user in (os.geteuid(), 0) else 0


def _holds_lock(pid: int, lock: Path) -> bool:
    """Whether a process holds an exclusive lock on a file; where the kernel does not tell, its socket is enough."""
    if not LINUX:
        return True
    try:
        wanted = lock.stat()
        handles = sorted(map(int, os.listdir(f"/proc/{pid}/fd")))  # noqa: PTH208
    except OSError:
        return False
    for handle in handles:
        try:
            found = os.stat(f"/proc/{pid}/fd/{handle}")  # noqa: PTH116
            if (found.st_dev, found.st_ino) != (wanted.st_dev, wanted.st_ino):
                continue
            if "lock:" in Path(f"/proc/{pid}/fdinfo/{handle}").read_text():
                return True
        except OSError:
            continue
    return False
