"""An exclusive lock on a file, and logs that stay within bounds."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from witness.files.opening import open_regular
from witness.files.writing import make_folder

_LOCK_PAUSE = 0.005
_ROTATE_AT = 8 << 20


@contextmanager
def locked(path: Path | str, patience: float = 0.0) -> Iterator[int | None]:
    """Hold an exclusive lock on a file, which is made when it is missing and never removed.

    The lock ends with its process, however that ends; it is not inherited by children.

    Args:
        path: the lock file.
        patience: seconds to wait for another holder.

    Yields:
        The lock file's descriptor; None when the lock could not be had in time.

    Raises:
        OSError: the lock file cannot be opened, or is none.
    """
    handle = open_regular(path, flags=os.O_RDWR | os.O_CREAT)
    deadline = time.monotonic() + patience
    try:
        while not (held := _try_lock(handle)) and time.monotonic() < deadline:
            time.sleep(_LOCK_PAUSE)
        yield handle if held else None
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def open_log(path: Path | str, *, below: Path | str, limit: int = _ROTATE_AT) -> int:
    """A descriptor to append to a log; one that has grown above the limit is first put aside as ``<name>.1``.

    A log is never a reason not to run: its folder is made anew when it is gone, and where that fails too the
    descriptor is that of the null device.

    Args:
        path: the log.
        below: a trusted folder above it; no link is followed from there on.
        limit: bytes.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        folder = os.path.dirname(path)  # noqa: PTH120
        if folder != os.fspath(below).rstrip("/"):
            make_folder(folder, below=below)
        handle = open_regular(path, below=below, flags=flags)
        if os.fstat(handle).st_size > limit:
            os.close(handle)
            os.replace(path, f"{os.fspath(path)}.1")  # noqa: PTH105
            handle = open_regular(path, below=below, flags=flags)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    return handle
