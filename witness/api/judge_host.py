"""The process that gave judges to a Witness, as sidecars find it: a private socket for each, in a thread of its own."""

from __future__ import annotations

import logging
import os
import selectors
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from witness.config.town import Town
from witness.errors import UsageError
from witness.files import locked, make_folder
from witness.installed import JUDGES, entries
from witness.ipc.jsonlines import Connection, RequestServer
from witness.judging.functions import JudgeFunction, answer_to, check_judge
from witness.judging.hosts import FOLDER, names_of

_LOG = logging.getLogger("witness.judges")
# How long the end waits for a function that is at work; its sidecar waits no longer either.
_END_SECONDS = 5.0


class JudgeHost:
    """Answers the sidecars of a town until it is closed, or its process ends.

    Args:
        town: whose sidecars ask.
        judges: the functions by name.

    Raises:
        UsageError: a name cannot be used, is given by another process already, or is that of an installed judge.
        TypeError: what is given is no function.
    """

    def __init__(self, town: Town, judges: Mapping[str, JudgeFunction]) -> None:
        for name, function in judges.items():
            check_judge(name, function)
            if found := entries(JUDGES).get(name):
                raise UsageError(f"judge {name!r} is installed already: {found.value}; give yours another name")
        folder = town.make_runtime() / FOLDER
        make_folder(folder, below=folder.parent)
        self._stack = ExitStack()
        try:
            for name, function in judges.items():
                self._stack.callback(_JudgeServer(folder, name, function).close)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Serve nobody any more; sidecars that ask these judges are mute from now on."""
        self._stack.close()


class _JudgeServer:
    """One judge's socket and thread: a function is asked one question at a time, and one that hangs hangs alone."""

    def __init__(self, folder: Path, name: str, function: JudgeFunction) -> None:
        self._name, self._function = name, function
        socket, lock = names_of(name)
        self._place = folder / socket
        with ExitStack() as stack:
            if stack.enter_context(locked(folder / lock)) is None:
                raise UsageError(f"judge {name!r} of this town is given by another Witness already")
            self._lock = stack.pop_all()
        try:
            self._held = ExitStack()
            self._selector = self._held.enter_context(selectors.DefaultSelector())
            self._server = RequestServer(self._selector, socket, Connection, folder)
            self._held.callback(self._server.close)
            self._server.listen()
            self._place.chmod(0o600)
            awake, self._end = os.pipe()
            self._held.callback(os.close, awake)
            self._selector.register(awake, selectors.EVENT_READ, "end")
        except BaseException:
            self._held.close()
            self._lock.close()
            raise
        self._thread = threading.Thread(target=self._serve, name=f"judge {name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        os.close(self._end)
        self._place.unlink(missing_ok=True)
        # What it holds open is the thread's own: a function that hangs keeps it, and nobody finds it any more.
        self._thread.join(_END_SECONDS)
        self._lock.close()

    def _serve(self) -> None:
        with self._held:
            while not self._look():
                pass

    def _look(self) -> bool:
        """Answer what has come; True at the end."""
        for key, _ in self._selector.select():
            if key.data == "end":
                return True
            if key.data == "listener":
                self._server.accept()
                continue
            caller: Connection = key.fileobj  # type: ignore[assignment]
            for question in self._server.read_requests(caller):
                self._server.tell(caller, self._answer(question))
        return False

    def _answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return {"reports": answer_to(self._function, question)}
        except (ValueError, KeyError, TypeError) as error:
            _LOG.warning("judge %s: %s", self._name, error, exc_info=error.__cause__)
            return {"error": str(error)}
