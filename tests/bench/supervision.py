"""Supervision side by side: kinds of process tree fully stopped, time to stop, respawn, footprint."""

from __future__ import annotations

import os
import select
import signal
import tempfile
from pathlib import Path

from tests.bench.measure import gone_after, milliseconds, pss, replaced_after, share_of_core
from tests.bench.ours import GtWitness
from tests.bench.peers import PEERS, Peer
from tests.bench.table import Row
from tests.programs import PROGRAMS, Program, missing, recording

_STOPS = 7
_RESPAWNS = 9
# How long after the stop has returned what it stopped may take to be gone.
_PATIENCE = 0.3
# Several take a service that dies within its first second for one that cannot start, and wait before the next try.
_SETTLED_SECONDS = 1.3
_IDLE = 100
_IDLE_SECONDS = 5.0
# Nothing that a killed run leaves behind may live longer than this.
_SLEEP = ["sleep", "300"]


def systems() -> tuple[type[Peer], ...]:
    """Us first: the others are compared with the first row."""
    return (GtWitness, *PEERS)


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder with a path short enough for sockets."""
    return tempfile.TemporaryDirectory(prefix="gtb-", ignore_cleanup_errors=True)


def kinds() -> list[Row]:
    """Which kinds of awkward process tree a stop ends without a survivor, and how long the easy kind takes."""
    programs = [program for program in PROGRAMS if not missing(program)]
    return [_stopping(system, programs) for system in systems() if not _absent(system)] + _absentees()


def matrix() -> list[Row]:
    """The same kind by kind: processes that survived the stop; 0 is what is wanted."""
    rows = {program.name: Row({"kind": program.name}) for program in PROGRAMS if not missing(program)}
    for system in systems():
        for program, survivors in _LEFT.get(system.name, {}).items():
            rows[program][system.name] = survivors
    return [*rows.values()]


# What `kinds` has found, by system and program, for `matrix`.
_LEFT: dict[str, dict[str, int]] = {}


def _absent(system: type[Peer]) -> str:
    return system.missing()


def _absentees() -> list[Row]:
    return [Row({"system": system.name, "note": reason}) for system in systems() if (reason := _absent(system))]


def _stopping(system: type[Peer], programs: list[Program]) -> Row:
    left: dict[str, int] = {}
    failed: list[str] = []
    spans: list[float] = []
    with scratch() as name:
        folder = Path(name)
        places = {program.name: folder / program.name for program in programs}
        services = {program.name: program.argv(places[program.name] / "record") for program in programs}
        for number in range(_STOPS):
            places[f"easy{number}"] = folder / f"easy{number}"
            services[f"easy{number}"] = programs[0].argv(places[f"easy{number}"] / "record")
        for place in places.values():
            place.mkdir()
        (folder / "p").mkdir()
        with system(folder / "p", services) as running:
            for service, place in places.items():
                with recording(place) as record:
                    running.up(service)
                    try:
                        stood = record.wait_stands()
                    except TimeoutError:
                        failed.append(service)
                        continue
                    span = gone_after(stood, lambda service=service: running.down(service), _PATIENCE)  # type: ignore[misc]
                    survivors = len(record.survivors())
                    if service.startswith("easy"):
                        spans += [span] if span is not None else []
                    else:
                        left[service] = survivors
    _LEFT[system.name] = left
    whole = sum(not survivors for survivors in left.values())
    return Row(
        {
            "system": system.name,
            "kinds fully stopped": f"{whole} of {len(programs)}",
            "stop, ms": milliseconds(spans),
            "note": "; ".join([system.how, *(f"{each} did not start" for each in failed)]),
        }
    )


def respawn() -> list[Row]:
    """Time from `kill -9` of a supervised process, up for more than a second, until its replacement exists."""
    return [_respawning(system) for system in systems() if not _absent(system) and system.restarts] + _absentees()


def _respawning(system: type[Peer]) -> Row:
    spans = []
    with scratch() as name, system(Path(name), {"one": _SLEEP}, restart=True) as running:
        running.up("one")
        for _ in range(_RESPAWNS):
            pid = running.pid("one")
            parent = _parent(pid)
            select.select([], [], [], _SETTLED_SECONDS)
            span = replaced_after(parent, pid, lambda pid=pid: os.kill(pid, signal.SIGKILL))  # type: ignore[misc]
            spans += [span] if span is not None else []
        running.down("one")
    return Row({"system": system.name, "respawn, ms": milliseconds(spans), "worst, ms": 1000 * max(spans)})


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def footprint() -> list[Row]:
    """What the supervisor itself holds and uses with a hundred idle children."""
    return [_idling(system) for system in systems() if not _absent(system) and system.restarts] + _absentees()


def _idling(system: type[Peer]) -> Row:
    services = {f"s{number:03}": _SLEEP for number in range(_IDLE)}
    with scratch() as name, system(Path(name), services, restart=True) as running:
        for service in services:
            running.up(service)
        pids = running.own()
        return Row(
            {
                "system": system.name,
                "own PSS, MiB": pss(pids),
                "own processes": len(pids),
                "own CPU, % of a core": share_of_core(pids, _IDLE_SECONDS),
            }
        )
