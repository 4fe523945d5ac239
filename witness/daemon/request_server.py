"""Those who talk to the running Witness: one JSON object a line, over a Unix socket in its runtime folder."""

from __future__ import annotations

import json
import selectors
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from witness.files import clear_place
from witness.supervise.executor import PatrolResult

SOCKET = "witness.sock"
# A caller that does not take its answer within this many seconds keeps nobody else waiting.
_TELL_SECONDS = 2.0


@dataclass
class AskedPatrol:
    """A patrol that somebody asked for.

    Args:
        checked: how many groups were looked at.
        deeds: what was done so far.
        ending: runs whose end is still under way; the answer waits for them.
    """

    checked: int
    outcome: PatrolResult
    ending: set[str]


@dataclass
class Connection:
    """Somebody who is connected.

    Args:
        connection: the socket.
        buffer: what came of a request that is not whole yet.
        waits_for: runs whose spawn is to end before it is answered.
        patrols: patrols that are answered when the ends that they began are over.
    """

    connection: socket.socket
    buffer: bytes = b""
    waits_for: set[str] = field(default_factory=set)
    patrols: list[AskedPatrol] = field(default_factory=list)


class Callers:
    """The socket and everybody on it.

    Args:
        selector: told of the listener (data ``"listener"``) and of each connection (data ``"caller"``).
    """

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._callers: dict[socket.socket, Connection] = {}

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._callers.values()))

    def listen(self) -> None:
        """Bind the socket in the working directory: a relative path is short enough for the kernel."""
        clear_place(SOCKET)
        self._listener.bind(SOCKET)
        self._listener.listen(128)
        self._selector.register(self._listener, selectors.EVENT_READ, "listener")

    def accept(self) -> None:
        """Take in one more."""
        connection, _ = self._listener.accept()
        connection.setblocking(False)
        self._callers[connection] = Connection(connection)
        self._selector.register(connection, selectors.EVENT_READ, "caller")

    def read_requests(self, connection: socket.socket) -> Iterator[tuple[Connection, dict[str, Any]]]:
        """The whole requests that have come; what is none is answered here."""
        caller = self._callers[connection]
        try:
            data = connection.recv(65536)
        except OSError:
            data = b""
        if not data:
            self._forget(connection)
            return
        *lines, caller.buffer = (caller.buffer + data).split(b"\n")
        for line in lines:
            try:
                request = json.loads(line)
                if not isinstance(request, dict) or not isinstance(request.get("op"), str):
                    raise ValueError("an object with an 'op' is wanted")
            except ValueError as error:
                self.tell(caller, {"error": f"not a request: {error}"})
            else:
                yield caller, request

    def tell(self, caller: Connection, message: dict[str, Any]) -> None:
        """Answer somebody; one who has left or does not read is forgotten."""
        try:
            caller.connection.settimeout(_TELL_SECONDS)
            caller.connection.sendall(json.dumps(message).encode() + b"\n")
            caller.connection.setblocking(False)
        except OSError:
            self._forget(caller.connection)

    def close(self) -> None:
        """Hang up on everybody."""
        for connection in (self._listener, *self._callers):
            connection.close()

    def _forget(self, connection: socket.socket) -> None:
        if self._callers.pop(connection, None) is not None:
            self._selector.unregister(connection)
            connection.close()
