"""One writer at a time, and nobody waits for ever.

Among our own processes the kernel's file lock decides: it ends with the process that holds it, however that ends.
MDAN's own program locks by making a folder; while we write the file that it shares with us we make the same folder.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from witness.clock import Clock
from witness.errors import WitnessError

LOCK_WAIT = 5.0
# After this MDAN takes a folder for left behind.
_FOREIGN_STALE = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05


class MemoryBusyError(WitnessError):
    """Somebody else holds the memory for longer than we wait; what stands in the journal is safe."""

    def __init__(self, path: Path, seconds: float) -> None:
        self.path = path
        super().__init__(f"{path} was held by another process for {seconds:g} s: try again")


@contextmanager
def locked(path: Path, clock: Clock, wait: float = LOCK_WAIT) -> Iterator[int]:
    """Hold the file lock at ``path``.

    Args:
        path: the lock file; made when missing, never removed (a removed one would let two processes in).
        clock: for the bounded wait.
        wait: seconds.

    Yields:
        The open lock file's descriptor.

    Raises:
        MemoryBusyError: it was not to be had in time.
    """
    # Not inheritable: a child that outlives us must not keep the lock.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        for _ in _attempts(path, clock, wait):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                continue
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def foreign_locked(folder: Path, held: int, clock: Clock, wait: float = LOCK_WAIT) -> Iterator[None]:
    """Hold MDAN's folder lock as well.

    Args:
        folder: the folder whose existence is the lock.
        held: descriptor of our own lock, which is held. It notes that the folder is ours: a holder that was killed
            leaves the note, so that the next one clears the folder at once instead of waiting till it is stale.
        clock: for the bounded wait and the folder's age.
        wait: seconds.

    Raises:
        MemoryBusyError: MDAN holds it for longer than we wait.
    """
    if os.fstat(held).st_size:
        with suppress(OSError):
            folder.rmdir()
    os.pwrite(held, b"1", 0)
    for _ in _attempts(folder, clock, wait):
        try:
            folder.mkdir()
            break
        except FileExistsError:
            with suppress(OSError):
                if clock.wall() - folder.stat().st_mtime > _FOREIGN_STALE:
                    folder.rmdir()
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()
        os.ftruncate(held, 0)


def _attempts(path: Path, clock: Clock, wait: float) -> Iterator[int]:
    deadline, pause, number = clock.monotonic() + wait, _FIRST_PAUSE, 0
    while True:
        yield number
        if clock.monotonic() >= deadline:
            raise MemoryBusyError(path, wait)
        time.sleep(pause)
        pause, number = min(pause * 2, _LONGEST_PAUSE), number + 1
