"""The event spool: what the agent has done, as its client's hooks recorded it.

Hooks append (``witness.events.spool_writer``), any number of readers follow, each with a position of its own. A reader
is woken through a socket in the same folder.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

from witness.events.effects import Effects
from witness.events.spool_writer import AT_WORK, CURRENT, append_record
from witness.files import open_regular

# The head that every record begins with; what follows, up to the last brace, is the payload. From schema 2 on, what was
# seen of the call may stand between them.
_HEAD = re.compile(
    rb'\{"t":(\d{1,20}),"p":(\d{1,10}),"cut":([01])(?:,"v":2(?:,"of":"(\d{1,20}-\d{1,10})")?(,"look":))?'
)
_PAYLOAD = b',"e":'
# Longer than any whole record; a line beyond it is not ours.
_LINE_LIMIT = 2 << 20
_LOOK_LIMIT = 1 << 19


@dataclass(frozen=True, slots=True)
class SpooledEvent:
    """One event of the agent's client.

    Args:
        id: unique in the spool; sorts by time.
        time: wall clock in seconds.
        payload: the client's own JSON.
        cut: the payload was too long and its end is missing.
        effects: what was seen of the call, None where nobody looked (so in all events of schema 1).
        awaited: the look went on when this was recorded; what was seen follows in an event of its own.
        of: id of the earlier event that ``effects`` belongs to; the payload is then empty.
    """

    id: str
    time: float
    payload: dict[str, Any]
    cut: bool = False
    effects: Effects | None = None
    awaited: bool = False
    of: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What two reports of the same happening share; clients are known to fire some events twice."""
        payload = self.payload
        what = payload.get("tool_use_id") or payload.get("prompt_id") or ""
        return str(payload.get("session_id", "")), str(payload.get("hook_event_name", "")), str(what or self.id)


def append_event(folder: Path | str, payload: bytes) -> None:
    """Record one event, as the hooks do.

    Raises:
        OSError: it could not be written.
    """
    append_record(os.fspath(folder), payload)


class SpoolReader:
    """Reads a spool from a position on, across rotations.

    The position names files by inode, so it survives their renaming; the file before the current one stays in it
    because a hook may still be writing there while it is rotated away.
    """

    def __init__(self, folder: Path | str, position: str = "") -> None:
        """Begin after ``position`` (empty: at the oldest event there is)."""
        self.folder = Path(folder)
        self._offsets = _parse_position(position)
        #: Lines that were no event (torn by a full disk, or not JSON).
        self.spoiled = 0

    @classmethod
    def at_end(cls, folder: Path | str) -> Self:
        """A reader of what is yet to come."""
        reader = cls(folder)
        for file in reader._files():
            status = file.lstat()
            reader._offsets[status.st_ino] = status.st_size
        return reader

    @property
    def position(self) -> str:
        """Where the next ``read`` goes on; store it to resume after a restart."""
        return ";".join(f"{inode}:{offset}" for inode, offset in self._offsets.items())

    def read(self, limit: int = 100) -> list[SpooledEvent]:
        """The next events, oldest first; empty when there are none."""
        events: list[SpooledEvent] = []
        files = self._files()
        found: dict[int, int] = {}
        known = [path for path in files if _inode(path) in self._offsets]
        # All before the first known file was read before it was forgotten.
        for path in files[files.index(known[0]) :] if known else files:
            with suppress(OSError), os.fdopen(open_regular(path, below=self.folder.parent), "rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                offset = self._offsets.get(inode, 0)
                if offset > os.fstat(file.fileno()).st_size:
                    offset = 0
                found[inode] = self._read_file(file, offset, events, limit)
            if len(events) >= limit:
                break
        for inode, offset in self._offsets.items():
            found.setdefault(inode, offset)
        self._offsets = dict(list(sorted_by_files(found, files))[-2:])
        return events

    def _read_file(self, file: BinaryIO, offset: int, events: list[SpooledEvent], limit: int) -> int:
        file.seek(offset)
        while len(events) < limit:
            line = file.readline(_LINE_LIMIT)
            if not line.endswith(b"\n") and len(line) < _LINE_LIMIT:
                break  # still being written
            offset += len(line)
            if line.strip():
                event = parse_record(line)
                if event is None:
                    self.spoiled += 1
                else:
                    events.append(event)
        return offset

    def _files(self) -> list[Path]:
        try:
            names = [path.name for path in self.folder.iterdir()]
            names = [name for name in names if name.startswith("events.") and name.endswith(".jsonl")]
        except FileNotFoundError:
            return []
        # events.<n>.jsonl by age, the current one last.
        return [self.folder / name for name in sorted(names, key=lambda name: (name == CURRENT, len(name), name))]


def sorted_by_files(offsets: dict[int, int], files: list[Path]) -> Iterator[tuple[int, int]]:
    """The offsets in the order of the files, without those that are gone."""
    for path in files:
        inode = _inode(path)
        if inode in offsets:
            yield inode, offsets[inode]


def parse_record(line: bytes) -> SpooledEvent | None:
    """Read one line of the spool; None when it is no whole event."""
    line = line.strip()
    head = _HEAD.match(line)
    if not head or not line.endswith(b"}"):
        return None
    nanoseconds, pid, cut = int(head[1]), int(head[2]), head[3] == b"1"
    at, effects, awaited = head.end(), None, False
    if head[5]:
        look, at = _look(line, at)
        effects, awaited = Effects.from_json(look), look is None
    if not line.startswith(_PAYLOAD, at):
        return None
    of = (head[4] or b"").decode()
    payload = {} if of else parse_payload(line[at + len(_PAYLOAD) : -1], cut)
    if payload is None or (of and effects is None):
        return None
    return SpooledEvent(f"{nanoseconds}-{pid}", nanoseconds / 1e9, payload, cut, effects, awaited, of)


def _look(line: bytes, at: int) -> tuple[Any, int]:
    """The JSON value that begins at a place, and where it ends; no place at all when there is none."""
    # Long payloads follow: only as much is decoded as a look may hold.
    text = line[at : at + _LOOK_LIMIT].decode("latin-1")
    try:
        value, length = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None, len(line)
    return value, at + length


def parse_payload(body: bytes, cut: bool) -> dict[str, Any] | None:
    """A client's JSON object, of a cut one as much as there is; None when it is none."""
    try:
        payload = _parse_cut(body) if cut else json.loads(body)
    except (ValueError, RecursionError):  # no JSON, or nested so deep that it is meant to hurt
        return None
    return payload if isinstance(payload, dict) else None


def _parse_cut(body: bytes) -> Any:
    import jiter

    # A cut in the middle of a character leaves bytes that no parser takes.
    return jiter.from_json(body.decode("utf-8", "ignore").encode(), partial_mode="trailing-strings")


def _parse_position(position: str) -> dict[int, int]:
    offsets = {}
    for part in position.split(";"):
        inode, colon, offset = part.partition(":")
        if colon and inode.isdigit() and offset.isdigit():
            offsets[int(inode)] = int(offset)
    return offsets


def _inode(path: Path) -> int:
    try:
        return path.lstat().st_ino
    except FileNotFoundError:
        return 0


# -- waking ------------------------------------------------------------------------------------------------------------


class Wake:
    """One hook that came by. ``answer`` lets it go on when it waits, ``hold`` has it wait a little longer."""

    def __init__(self, peer: socket.socket) -> None:
        self._peer = peer

    def hold(self) -> None:
        """Tell the hook that the judging has begun, so that it waits beyond the time that it gives to the silent."""
        with suppress(OSError):
            self._peer.send(AT_WORK, socket.MSG_DONTWAIT)

    def answer(self) -> None:
        """Tell the hook that all it recorded has been judged, and forget it. Safe to call when it has left."""
        with suppress(OSError):
            self._peer.send(b"!", socket.MSG_DONTWAIT)
        self._peer.close()


def bound_in(folder: str, name: str, listener: socket.socket) -> None:
    """Bind a socket in a folder, however long its path is, in place of the one that a dead predecessor left.

    Raises:
        OSError: the folder is gone, or may not be written.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=handle)
        if sys.platform == "linux":
            listener.bind(f"/proc/self/fd/{handle}/{name}")  # a socket's path holds 107 bytes at most
        else:
            before = os.open(".", os.O_RDONLY)
            try:
                os.fchdir(handle)
                listener.bind(name)
            finally:
                os.fchdir(before)
                os.close(before)
    finally:
        os.close(handle)


class WakeSocket:
    """The socket through which hooks wake one sidecar; a context manager.

    Args:
        folder: the spool.
        name: the sidecar's name.
        asked: hooks wait for ``Wake.answer`` (rules judges); else they only knock.
    """

    def __init__(self, folder: Path | str, name: str, asked: bool) -> None:
        self._name = f"{name}.ask" if asked else f"{name}.wake"
        self._folder = os.fspath(folder)
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | getattr(socket, "SOCK_NONBLOCK", 0))
        try:
            listener.setblocking(False)
            bound_in(self._folder, self._name, listener)
            listener.listen(64)
        except BaseException:
            listener.close()
            raise
        self._socket = listener
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            with suppress(OSError):
                os.unlink(os.path.join(self._folder, self._name))

    def fileno(self) -> int:
        """For a selector: readable when a hook has come."""
        assert self._socket is not None, "used outside of its context"  # noqa: S101
        return self._socket.fileno()

    def accept(self) -> list[Wake]:
        """All hooks that have come since; never blocks."""
        assert self._socket is not None, "used outside of its context"  # noqa: S101
        wakes: list[Wake] = []
        while True:
            try:
                peer, _ = self._socket.accept()
            except BlockingIOError:
                return wakes
            except OSError:  # the hook has left already, or we are out of descriptors
                return wakes
            wakes.append(Wake(peer))
