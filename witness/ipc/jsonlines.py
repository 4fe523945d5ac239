"""JSON objects, one a line, over a Unix socket: the one server and the one client of our own processes.

A line is bounded, and a peer that sends more than that, or does not read what it is told, is disconnected: no peer
keeps the others waiting.
"""

from __future__ import annotations

import json
import selectors
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from witness.files import clear_place, parse_json
from witness.ipc.serving import short_path

# A spawn's declarations are the largest of what is sent.
_LONGEST_LINE = 16 << 20
_CHUNK = 65536
# Seconds for which a peer may leave its answer lying before it is disconnected.
_TELL_SECONDS = 2.0


class Connection:
    """One end of a conversation.

    Args:
        connection: a connected stream socket.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._buffer = b""

    @classmethod
    def dial(cls, folder: Path, name: str) -> Connection:
        """Connect to the socket ``name`` in a folder, however deep that lies.

        Raises:
            OSError: nobody listens there (``FileNotFoundError``, ``ConnectionRefusedError``), or it cannot be reached.
        """
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with short_path(folder, name) as path:
                connection.connect(path)
        except OSError:
            connection.close()
            raise
        return cls(connection)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def send(self, message: Mapping[str, Any], seconds: float = _TELL_SECONDS) -> None:
        """Send one object.

        Raises:
            OSError: the peer has left, or did not read within so many seconds.
        """
        self._socket.settimeout(seconds)
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, seconds: float) -> dict[str, Any]:
        """The next object; each piece of it may take so many seconds.

        Raises:
            OSError: the peer has left (``ConnectionResetError``), or nothing came in time (``TimeoutError``).
            ValueError: what came is no JSON object.
        """
        self._socket.settimeout(seconds)
        while (line := self._line()) is None:
            self._read()
        return _parsed(line)

    def pending(self) -> tuple[list[dict[str, Any]], bool]:
        """What has come so far, without waiting, and whether the peer is still there.

        Raises:
            ValueError: what came is no JSON object.
        """
        self._socket.setblocking(False)
        open_still = True
        try:
            while True:
                self._read()
        except BlockingIOError:
            pass
        except OSError:
            open_still = False
        messages = []
        while (line := self._line()) is not None:
            messages.append(_parsed(line))
        return messages, open_still

    def lines(self) -> Iterator[bytes]:
        """The whole lines of one read.

        Raises:
            OSError: the peer has left.
        """
        self._read()
        while (line := self._line()) is not None:
            yield line

    def _read(self) -> None:
        chunk = self._socket.recv(_CHUNK)
        if not chunk:
            raise ConnectionResetError("it closed the connection")
        self._buffer += chunk
        if len(self._buffer) > _LONGEST_LINE:
            raise ConnectionResetError(f"it sent a line of more than {_LONGEST_LINE >> 20} MiB")

    def _line(self) -> bytes | None:
        line, newline, rest = self._buffer.partition(b"\n")
        if not newline:
            return None
        self._buffer = rest
        return line


Peer = TypeVar("Peer", bound=Connection)


class RequestServer(Generic[Peer]):
    """A socket, and those who are connected to it, for a process that waits in one selector.

    Args:
        selector: told of the listener (data ``"listener"``) and of each connection (data ``"caller"``, the connection
            itself as the file object).
        name: the socket's name in its folder.
        kind: what a connection is kept as.
        folder: where it stands; the working directory when not given.
    """

    def __init__(self, selector: selectors.BaseSelector, name: str, kind: type[Peer], folder: Path = Path()) -> None:
        self._selector, self._name, self._kind, self._folder = selector, name, kind, folder
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._callers: dict[int, Peer] = {}

    def __iter__(self) -> Iterator[Peer]:
        return iter(list(self._callers.values()))

    def __bool__(self) -> bool:
        return bool(self._callers)

    def listen(self) -> None:
        """Take connections. The caller holds the lock that goes with the socket: what stands there is a dead one's."""
        with short_path(self._folder, self._name) as path:
            clear_place(path)
            self._listener.bind(path)
        self._listener.listen(128)
        self._selector.register(self._listener, selectors.EVENT_READ, "listener")

    def accept(self) -> None:
        """Take in one more."""
        connection, _ = self._listener.accept()
        connection.settimeout(_TELL_SECONDS)
        caller = self._kind(connection)
        self._callers[caller.fileno()] = caller
        self._selector.register(caller, selectors.EVENT_READ, "caller")

    def read_requests(self, caller: Peer) -> Iterator[dict[str, Any]]:
        """The whole requests that have come from a connection that is readable; what is none is answered here."""
        try:
            lines = list(caller.lines())
        except OSError:
            self._forget(caller)
            return
        for line in lines:
            try:
                request = _parsed(line)
            except ValueError as error:
                self.tell(caller, {"error": f"not a request: {error}"})
            else:
                yield request

    def tell(self, caller: Peer, message: Mapping[str, Any]) -> None:
        """Answer somebody; a connection that has ended or is not read is forgotten."""
        try:
            caller.send(message)
        except OSError:
            self._forget(caller)

    def broadcast(self, message: Mapping[str, Any]) -> None:
        """Tell everybody who is connected."""
        for caller in self:
            self.tell(caller, message)

    def close(self) -> None:
        """Hang up on everybody."""
        self._listener.close()
        for caller in self:
            caller.close()

    def _forget(self, caller: Peer) -> None:
        if self._callers.get(caller.fileno()) is caller:
            del self._callers[caller.fileno()]
            self._selector.unregister(caller)
            caller.close()


def _parsed(line: bytes) -> dict[str, Any]:
    message = parse_json(line)
    if not isinstance(message, dict):
        raise ValueError("a JSON object is wanted")
    return message
