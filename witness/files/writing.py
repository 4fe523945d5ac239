"""Replacing a file as a whole, folders for their user alone, locks, and logs within bounds."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from witness.files.opening import (
    FOLDER,
    UnsafeFileError,
    components,
    explained,
    kind_of,
    open_beneath,
    open_regular,
    opened_folder,
    relative_to,
)

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def replace_file(
    path: Path | str,
    data: str | bytes,
    *,
    mode: int = 0o600,
    durable: bool = True,
    below: Path | str | None = None,
    aside: bool = False,
) -> None:
    """Put a file's whole new content into its place, for readers all at once.

    Args:
        path: the file; its folder exists. A link there is replaced, not followed.
        data: the content; text is written in UTF-8, and surrogates of file names as the bytes that they stand for.
        mode: its permissions, whatever the umask.
        durable: it must survive a power cut; False for what the next start makes anew.
        below: a folder above it that is trusted; no link is followed from there on.
        aside: a folder that stands in its place gets another name; for files of ours alone.

    Raises:
        OSError: it could not be written; the old content stands as it was and nothing is left beside it.
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    name = os.path.basename(path)  # noqa: PTH119
    with _opened_parent(os.fspath(path), below) as folder:
        fresh = f".{name[:200]}.{os.getpid()}-{os.urandom(4).hex()}.new"
        handle = os.open(
            fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode, dir_fd=folder
        )
        try:
            try:
                os.fchmod(handle, mode)
                write_all(handle, data)
                if durable:
                    os.fsync(handle)
            finally:
                os.close(handle)
            try:
                os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
            except IsADirectoryError:
                if not aside:
                    raise
                os.rename(name, _other_name(name), src_dir_fd=folder, dst_dir_fd=folder)
                os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(fresh, dir_fd=folder)
            raise
        if durable:
            os.fsync(folder)  # the new name, too, is only safe once its folder is


def clear_place(path: Path | str) -> None:
    """Take away what stands in the place of a file of ours; a folder there gets another name, with all that it holds.

    Raises:
        OSError: it stays.
    """
    path = Path(path)
    try:
        path.unlink(missing_ok=True)
    except IsADirectoryError:
        path.rename(_other_name(os.fspath(path)))


def _other_name(name: str) -> str:
    return f"{name}.{time.time_ns()}.bad"


@contextmanager
def _opened_parent(path: str, below: Path | str | None) -> Iterator[int]:
    parent = os.path.dirname(path) or "."  # noqa: PTH120
    if below is None or parent == os.fspath(below).rstrip("/"):
        with opened_folder(parent) as folder:
            yield folder
        return
    with opened_folder(below) as anchor:
        try:
            handle = open_beneath(anchor, relative_to(parent, os.fspath(below)), FOLDER)
        except OSError as error:
            raise explained(parent, error) from error
        try:
            yield handle
        finally:
            os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write all of it to a descriptor; a full disk is an ``OSError``, never a part of it in silence."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def make_folder(path: Path | str, *, below: Path | str, close: bool = False) -> None:
    """Make a folder for its user alone, and every level that is missing between it and one that exists.

    Args:
        path: the folder.
        below: an existing folder above it. Each level from there on must be a folder of ours that others cannot write:
            who can write one can put another in the place of the next.
        close: take the right to write from others instead of refusing; for folders that another program of the same
            user makes by its own umask.

    Raises:
        UnsafeFileError: a level is a link, no folder, another user's or open to others.
        OSError: it cannot be made.
    """
    below = os.fspath(below).rstrip("/") or "/"
    with opened_folder(below) as anchor:
        at, here = anchor, below
        try:
            for part in components(relative_to(os.fspath(path), below)):
                here = f"{here.rstrip('/')}/{part}"
                inner = _enter(at, part, here, close)
                if at != anchor:
                    os.close(at)
                at = inner
        finally:
            if at != anchor:
                os.close(at)


def _enter(at: int, part: str, here: str, close: bool) -> int:
    with suppress(FileExistsError):
        os.mkdir(part, 0o700, dir_fd=at)
        # A umask may have taken our own rights as well; nobody else knows of it yet.
        os.chmod(part, 0o700, dir_fd=at)
    try:
        handle = os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=at)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise UnsafeFileError(here, _not_a_folder(at, part), errno.ENOTDIR) from error
        raise
    try:
        status = os.fstat(handle)
        if close and status.st_uid == os.geteuid() and status.st_mode & _OTHERS_WRITE:
            os.fchmod(handle, stat.S_IMODE(status.st_mode) & ~_OTHERS_WRITE)
            status = os.fstat(handle)
        check_own_folder(here, status)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _not_a_folder(at: int, part: str) -> str:
    try:
        kind = kind_of(os.stat(part, dir_fd=at, follow_symlinks=False).st_mode)
    except OSError:
        kind = "no folder"
    return f"it is {kind}, and must be a folder of your own: remove it"


def check_own_folder(path: Path | str, status: os.stat_result | None = None) -> None:
    """Refuse a folder that is a link, somebody else's, or open for others to write in.

    Args:
        path: the folder.
        status: its status where the caller has it; None to look.

    Raises:
        UnsafeFileError: it is not ours alone.
        OSError: it is not there.
    """
    status = status or os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        what = f"it is {kind_of(status.st_mode)}, and must be a folder of your own: remove it"
        raise UnsafeFileError(path, what, errno.ENOTDIR)
    if status.st_uid != os.geteuid():
        raise UnsafeFileError(path, f"it belongs to user {status.st_uid}: run as that user, or chown it", errno.EPERM)
    if status.st_mode & _OTHERS_WRITE:
        raise UnsafeFileError(path, f"others can write in it: chmod go-w {path}", errno.EPERM)


# An exclusive lock on a file, and logs that stay within bounds.

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
