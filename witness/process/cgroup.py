"""A further net below a group: a cgroup (v2) of its own, where the user may make one.

A process can leave its parents, its session and its environment behind, but not its cgroup. So it also holds a daemon
that was never looked at and whose reapers were both killed. Linux only; root has it, and a user inside of a
delegated cgroup (``systemd-run --user --scope -p Delegate=yes``). Without it the other nets do their work.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_PREFIX = "gt-witness-"
_MEMBERS = "cgroup.procs"


def make_cgroup(run: str) -> Path | None:
    """Make the cgroup of a run, beside the one that we are in; None where there is none to be had."""
    place = _own_cgroup()
    if place is None:
        return None
    folder = place / f"{_PREFIX}{run}"
    try:
        folder.mkdir()
    except OSError:
        return None
    if os.access(folder / _MEMBERS, os.W_OK):
        return folder
    remove_cgroup(str(folder), run)
    return None


def _own_cgroup() -> Path | None:
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    mine = next((line[3:] for line in lines if line.startswith("0::/")), None)
    # Field 5 is the mount point, field 4 the part of the tree that is mounted there.
    mounted = next((line.split()[3:5] for line in mounts if " - cgroup2 " in line), None)
    if mine is None or mounted is None or (mounted[0] != "/" and not mine.startswith(mounted[0])):
        return None
    path = mine[len(mounted[0].rstrip("/")) :].strip("/")
    # A polecat that spawns a polecat: the inner one is no part of the outer one's group.
    parts = path.split("/") if path else []
    outer = next((at for at, part in enumerate(parts) if part.startswith(_PREFIX)), len(parts))
    return Path(mounted[1], *parts[:outer])


def cgroup_members(folder: str, run: str) -> set[int]:
    """The pids in a run's cgroup and below it; empty when there is no such cgroup."""
    if not _is_of(folder, run):
        return set()
    found: set[int] = set()
    for place, _, _ in os.walk(folder):
        with suppress(OSError, ValueError):
            found.update(int(pid) for pid in Path(place, _MEMBERS).read_text().split())
    return found


def remove_cgroup(folder: str, run: str) -> None:
    """Take an empty cgroup away, with those that its processes made below it; one that is not empty stays."""
    if _is_of(folder, run):
        for place, _, _ in os.walk(folder, topdown=False):
            with suppress(OSError):
                os.rmdir(place)  # noqa: PTH106


def _is_of(folder: str, run: str) -> bool:
    return bool(folder) and Path(folder).name == f"{_PREFIX}{run}"
