"""The way from a sidecar to the process that gave a judge: a socket of the town, served by the holder of its lock."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from witness.ipc.jsonlines import Connection
from witness.ipc.serving import serving_process

FOLDER = "judges"
GONE = "its host is gone"


def names_of(judge: str) -> tuple[str, str]:
    """(name of a judge's socket, name of its lock), both in ``FOLDER`` of the town's runtime."""
    return f"{judge}.sock", f"{judge}.lock"


class HostLink:
    """A sidecar's connection to the host of its judge: it tells at once when the host is gone.

    Args:
        runtime: the town's runtime folder; None outside of any town, where there is no host.
        judge: the judge's name.
    """

    def __init__(self, runtime: Path | None, judge: str) -> None:
        self._folder, self._names = runtime and runtime / FOLDER, names_of(judge)
        self._connection: Connection | None = None

    def fileno(self) -> int:
        """Readable once the host is gone; -1 while there is none."""
        return self._connection.fileno() if self._connection else -1

    @property
    def lack(self) -> str:
        """Why nobody can be asked, empty when the host is there."""
        if self._connection is None:
            self._connection = self._dial()
        elif not self._connection.pending()[1]:
            self.close()  # and anew at the next look: who waits for this descriptor has to be told first
        return "" if self._connection else GONE

    def close(self) -> None:
        """Let go of the host."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _dial(self) -> Connection | None:
        socket, lock = self._names
        # Not any process that bound a socket there: a polecat must not become the judge of itself.
        if self._folder is None or serving_process(self._folder, socket, lock) is None:
            return None
        try:
            return Connection.dial(self._folder, socket)
        except OSError:
            return None

    def ask(self, question: Mapping[str, Any], seconds: float) -> list[Any]:
        """Put a question, over a connection of its own; safe from any thread.

        Args:
            question: as ``question_of`` made it.
            seconds: how long it may take.

        Returns:
            The reports.

        Raises:
            ConnectionError: the host is gone.
            ValueError: it failed, does not answer in time, or answers something else.
        """
        deadline = time.monotonic() + seconds
        connection = self._dial()
        if connection is None:
            raise ConnectionError(GONE)
        with closing(connection):
            try:
                connection.send(question, seconds)
                answer = connection.receive(max(0.01, deadline - time.monotonic()))
            except TimeoutError as error:
                raise ValueError(f"no answer within {seconds:g} s") from error
            except OSError as error:
                raise ConnectionError(GONE) from error
        if not isinstance(answer.get("reports"), list):
            raise ValueError(" ".join(str(answer.get("error", "it answered without reports")).split()))
        return list(answer["reports"])
