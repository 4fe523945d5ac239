"""Talking to a running Witness: its lock, its socket, its start and its stop.

Every listing asks whether one runs, so what only a start needs is imported by the start.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from witness.clock import SystemClock
from witness.errors import DeclarationError, TownLockedError, WitnessError
from witness.files import locked, replace_file
from witness.ipc.serving import serving_process
from witness.process import ProcessId
from witness.version import __version__

if TYPE_CHECKING:
    from witness.config.town import Town
    from witness.tmux import Tmux

SOCKET = "witness.sock"
_STOP_SECONDS = 30.0
_STATUS_SECONDS = 5.0
# How often it is asked, while the lock is waited for, whether its holder is a daemon.
_LOCK_STEP_SECONDS = 0.2
_CLOCK = SystemClock()
_SECRET = re.compile("KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)


@contextmanager
def town_lock(town: Town, *, patience: float = 0.0) -> Iterator[None]:
    """Be the only Witness of a town.

    Args:
        town: the town.
        patience: seconds to wait for a patrol that only passes through; a daemon is not waited for.

    Raises:
        TownLockedError: another one is.
    """
    path = town.make_runtime() / "witness.lock"
    deadline = _CLOCK.monotonic() + patience
    while True:
        with locked(path, min(patience, _LOCK_STEP_SECONDS)) as held:
            if held is not None:
                yield
                return
        holder = witness_process(town)
        if holder or _CLOCK.monotonic() >= deadline:
            raise TownLockedError(holder.pid if holder else 0)


def witness_process(town: Town) -> ProcessId | None:
    """The town's running Witness, as the kernel knows it; None when there is none. What a file says is not believed."""
    return serving_process(town.runtime, SOCKET, "witness.lock")


def ask(town: Town, request: dict[str, Any], seconds: float) -> dict[str, Any] | None:
    """Send one request to the running Witness.

    Args:
        town: its town.
        request: ``{"op": …}``.
        seconds: how long to wait for the answer.

    Returns:
        The answer; None when no Witness runs.

    Raises:
        WitnessError: it runs, but did not answer in time.
    """
    from witness.ipc.jsonlines import Connection

    try:
        connection = Connection.dial(town.runtime, SOCKET)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    try:
        connection.send(request, seconds)
        return connection.receive(seconds)
    except TimeoutError:
        raise WitnessError(f"the Witness did not answer {request['op']!r} within {seconds:g} s") from None
    except ConnectionError:
        return None
    finally:
        connection.close()


def start_witness(town: Town, outer: Tmux | None, *, linger: bool = True) -> None:
    """Start the town's Witness in the background; one that runs already is left alone.

    One that an older version of us started is replaced; its polecats live on.

    Args:
        town: the town.
        outer: the tmux that holds the polecat that the caller runs in: the Witness must not become its descendant.
        linger: let it end by itself when the town has had no groups for a while.

    Raises:
        WitnessError: it did not come up.
    """
    if witness_process(town) and not _replaced(town):
        return
    from witness.ipc.background import start_outside

    runtime = town.make_runtime()
    argv = [sys.executable, "-P", "-m", "witness.daemon", str(town.root), *(["--linger"] if linger else [])]
    start_outside(argv, _environment(town), runtime / "witness.log", outer)


def _environment(town: Town) -> dict[str, str]:
    """The Witness's environment: without the key, whose variable the settings name."""
    from witness.launch.environment import daemon_environ
    from witness.trust.settings import trusted_settings

    try:
        return daemon_environ(trusted_settings(town.root).key_env)
    except DeclarationError:
        from witness.config.settings import Settings

        # A slip in the settings keeps nobody from ending; whatever may be that key stays behind.
        kept = daemon_environ(Settings().key_env)
        return {name: value for name, value in kept.items() if not _SECRET.search(name)}


def running_witness(town: Town) -> dict[str, Any]:
    """What the running Witness says of itself; empty without one, or when it does not answer."""
    with suppress(WitnessError):
        return ask(town, {"op": "status"}, _STATUS_SECONDS) or {}
    return {}


def _replaced(town: Town) -> bool:
    """End the running Witness when an older version of us started it: it does not know what we write.

    Raises:
        WitnessError: a newer one runs.
    """
    found = running_witness(town)
    theirs = str(found.get("version", ""))
    if not found or theirs == __version__:
        return False
    if _number(theirs) > _number(__version__):
        raise WitnessError(
            f"the Witness of {town.root} is of gt-witness {theirs}, this is {__version__}: upgrade this one"
        )
    return stop_witness(town)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def stop_witness(town: Town) -> bool:
    """Stop the town's Witness and wait until it is gone; polecats and sidecars live on.

    Returns:
        False when none ran.

    Raises:
        WitnessError: it did not end.
    """
    from witness.process.exits import wait_gone

    process = witness_process(town)
    if process is None:
        return False
    ask(town, {"op": "stop"}, _STOP_SECONDS)
    if wait_gone({process}, _STOP_SECONDS):
        raise WitnessError(f"the Witness (pid {process.pid}) did not end within {_STOP_SECONDS:.0f} s")
    return True


def record_process(path: Path, process: ProcessId) -> None:
    """Write who we are, whole or not at all."""
    replace_file(path, json.dumps({"pid": process.pid, "started": process.started}), durable=False, aside=True)
