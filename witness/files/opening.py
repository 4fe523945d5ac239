"""Opening a file that may be anything, and reading it within bounds. See ``witness.files`` for the rules."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

# Our own small files: states, reports, requests.
SMALL = 1 << 20
_NEVER_WAIT = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

_OPENAT2 = 437  # one number on every architecture that Python has wheels for
# RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH of linux/openat2.h.
_RESOLVE = 0x01 | 0x02 | 0x04 | 0x08
openat2_works: bool | None = None
_libc: Any = None


class UnsafeFileError(OSError):
    """A file is not what it has to be. The text is one line: the path, and what is wrong with it."""

    def __init__(self, path: str | os.PathLike[str], what: str, number: int = errno.EPERM) -> None:
        super().__init__(number, what, os.fspath(path))

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def open_regular(
    path: Path | str,
    *,
    below: Path | str | None = None,
    follow: bool = False,
    owners: Collection[int] | None = None,
    flags: int = os.O_RDONLY,
) -> int:
    """Open a regular file, never waiting and never through a link.

    Args:
        path: the file.
        below: a folder above it that is trusted; every component from there on must be no link and on the same mount.
            None: only the last component is looked at.
        follow: links may be followed (files that people keep elsewhere and link, as settings); what they lead to is
            checked all the same. Not together with ``below``.
        owners: user ids whose files are accepted; None for our own and root's. An empty collection accepts everybody's.
        flags: how it is opened. With a writing flag the file must have no second name, so that nobody else's file is
            changed through a hard link; with ``O_CREAT`` it is made for its user alone.

    Returns:
        A descriptor, which the caller closes.

    Raises:
        FileNotFoundError: it is not there.
        UnsafeFileError: it is no regular file, or somebody else's.
        OSError: it cannot be opened.
    """
    if follow and not flags & os.O_CREAT:
        _check(path, os.stat(path), flags, owners)  # noqa: PTH116 - before a device is opened: some act on that alone
    elif not follow:
        flags |= os.O_NOFOLLOW
    try:
        handle = _open(os.fspath(path), below, flags | _NEVER_WAIT)
    except UnsafeFileError:
        raise
    except OSError as error:
        raise explained(path, error) from error
    try:
        _check(path, os.fstat(handle), flags, owners)
    except BaseException:
        os.close(handle)
        raise
    return handle


def explained(path: Path | str, error: OSError) -> OSError:
    """The same error in words, where the kernel's own mislead."""
    what = {
        errno.ELOOP: "a link stands in its place or above it",
        errno.EXDEV: "it lies outside, or on another mount",
        errno.ENXIO: "it is a FIFO or a socket",
        errno.EISDIR: "it is a folder",
    }.get(error.errno or 0)
    return UnsafeFileError(path, f"{what}: not opened", error.errno or errno.EPERM) if what else error


def _check(path: Path | str, status: os.stat_result, flags: int, owners: Collection[int] | None) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnsafeFileError(path, f"it is {kind_of(status.st_mode)}, not a regular file: not opened", errno.EINVAL)
    allowed = {os.geteuid(), 0} if owners is None else owners
    if allowed and status.st_uid not in allowed:
        raise UnsafeFileError(path, f"it belongs to user {status.st_uid}: not opened", errno.EPERM)
    if status.st_nlink > 1 and flags & (os.O_WRONLY | os.O_RDWR):
        raise UnsafeFileError(path, "it has a second name (a hard link): not written", errno.EMLINK)


def kind_of(mode: int) -> str:
    for test, word in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISLNK, "a link"),
    ):
        if test(mode):
            return word
    return "something else"


def _open(path: str, below: Path | str | None, flags: int) -> int:
    if below is None:
        return os.open(path, flags, 0o600)
    with opened_folder(below) as anchor:
        return open_beneath(anchor, relative_to(path, os.fspath(below)), flags)


def relative_to(path: str, below: str) -> str:
    top = below.rstrip("/") + "/"
    if not path.startswith(top):
        raise UnsafeFileError(path, f"it does not lie below {below}: not opened", errno.EXDEV)
    return path[len(top) :]


@contextmanager
def opened_folder(path: Path | str) -> Iterator[int]:
    handle = os.open(path, FOLDER)
    try:
        yield handle
    finally:
        os.close(handle)


def open_beneath(anchor: int, name: str, flags: int) -> int:
    """Open ``name`` seen from a folder's descriptor; no component may be a link, ``..`` or another mount."""
    global openat2_works
    if sys.platform == "linux" and openat2_works is not False:
        try:
            handle = _openat2(anchor, name, flags)
        except OSError as error:
            # An old kernel, or a sandbox that knows no such call: then component by component.
            if openat2_works or error.errno not in (errno.ENOSYS, errno.EPERM):
                raise
            openat2_works = False
        else:
            openat2_works = True
            return handle
    *folders, last = components(name)
    at = anchor
    try:
        for part in folders:
            inner = os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=at)
            if at != anchor:
                os.close(at)
            at = inner
        return os.open(last, flags | os.O_NOFOLLOW, 0o600, dir_fd=at)
    except NotADirectoryError as error:  # what O_DIRECTORY says of a link
        raise UnsafeFileError(name, "a link or a file stands in the place of a folder", errno.ELOOP) from error
    finally:
        if at != anchor:
            os.close(at)


def components(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        raise UnsafeFileError(name, "it is no path below that folder", errno.EXDEV)
    return parts


def _openat2(anchor: int, name: str, flags: int) -> int:
    import ctypes

    global _libc
    _libc = _libc or ctypes.CDLL(None, use_errno=True)  # to open it costs more than all the rest
    how = (ctypes.c_uint64 * 3)(flags, 0o600 if flags & os.O_CREAT else 0, _RESOLVE)
    while True:
        handle = _libc.syscall(
            ctypes.c_long(_OPENAT2), ctypes.c_int(anchor), ctypes.c_char_p(os.fsencode(name)), ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )  # fmt: skip
        if handle >= 0:
            return int(handle)
        number = ctypes.get_errno()
        if number not in (errno.EINTR, errno.EAGAIN):
            raise OSError(number, os.strerror(number), name)


def read_bytes(
    path: Path | str,
    limit: int = SMALL,
    *,
    below: Path | str | None = None,
    follow: bool = False,
    owners: Collection[int] | None = None,
) -> bytes:
    """The whole content of a file.

    Args:
        path, below, follow, owners: as for ``open_regular``.
        limit: bytes; a larger file is refused, not cut.

    Raises:
        UnsafeFileError: as ``open_regular``, or it is larger than the limit.
        OSError: it cannot be opened or read.
    """
    handle = open_regular(path, below=below, follow=follow, owners=owners)
    try:
        if os.fstat(handle).st_size > limit:
            raise UnsafeFileError(path, f"it is larger than {limit} bytes: not read", errno.EFBIG)
        data = b""
        # Files of /proc and of some mounts tell no size.
        while len(data) <= limit and (part := os.read(handle, limit + 1 - len(data))):
            data += part
    finally:
        os.close(handle)
    if len(data) > limit:
        raise UnsafeFileError(path, f"it is larger than {limit} bytes: not read", errno.EFBIG)
    return data


def read_text(
    path: Path | str,
    limit: int = SMALL,
    *,
    below: Path | str | None = None,
    follow: bool = False,
    owners: Collection[int] | None = None,
) -> str:
    """As ``read_bytes``, in UTF-8 (a byte order mark is dropped).

    Raises:
        ValueError: it is not UTF-8.
    """
    return read_bytes(path, limit, below=below, follow=follow, owners=owners).decode("utf-8-sig")


def read_from(
    path: Path | str,
    offset: int,
    limit: int,
    *,
    below: Path | str | None = None,
    follow: bool = False,
    owners: Collection[int] | None = None,
) -> bytes:
    """At most ``limit`` bytes of a file that grows, from a position on; a negative one counts from its end.

    Raises:
        OSError: as ``read_bytes``; a size above the limit is no fault.
    """
    handle = open_regular(path, below=below, follow=follow, owners=owners)
    try:
        if offset < 0:
            offset = max(0, os.fstat(handle).st_size + offset)
        parts, left = [], limit
        while left > 0 and (part := os.pread(handle, min(left, 1 << 20), offset)):
            parts.append(part)
            offset, left = offset + len(part), left - len(part)
    finally:
        os.close(handle)
    return b"".join(parts)


def lines_of(file: BinaryIO, longest: int) -> Iterator[bytes]:
    """The lines of an open file but those that are longer than ``longest`` bytes, which are passed over."""
    parts: list[bytes] = []
    size = 0
    while chunk := file.read(1 << 20):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if size + len(end) <= longest:
                yield b"".join((*parts, end, b"\n"))
            parts, size = [], 0
        size += len(rest)
        parts = [*parts, rest] if size <= longest else []
    if 0 < size <= longest:
        yield b"".join(parts)
