"""Cgroups of our own, beside the one that we are in: a further net below a group, and the bounds of its agent.

A process can leave its parents, its session and its environment behind, but not its cgroup. So a run's own (v2) also
holds a daemon that was never looked at and whose reapers were both killed. Root has one, and a user inside of a
delegated cgroup (``systemd-run --user --scope -p Delegate=yes``). Without it the other nets do their work.

A machine may have each controller in the v2 tree or in a v1 hierarchy of its own; ``own_cgroup`` finds either.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_PREFIX = "gt-witness-"
_MEMBERS = "cgroup.procs"


def make_cgroup(run: str) -> Path | None:
    """Make the cgroup of a run, beside the one that we are in; None where there is none to be had."""
    place = own_cgroup()
    if place is None:
        return None
    folder = folder_of(place, run)
    try:
        folder.mkdir()
    except OSError:
        return None
    if os.access(folder / _MEMBERS, os.W_OK):
        return folder
    remove_cgroup(str(folder), run)
    return None


def folder_of(place: Path, run: str) -> Path:
    """The name of a run's cgroup below another one."""
    return place / f"{_PREFIX}{run}"


def own_cgroup(controller: str = "", pid: int | None = None) -> Path | None:
    """The cgroup of a process, or, where that is a run's own, the one that the run's stands in.

    Args:
        controller: of its v1 hierarchy; the v2 tree when empty.
        pid: the process; the caller when None.

    Returns:
        None where there is no such hierarchy, or it is not mounted where it can be reached.
    """
    path = _cgroup_path(controller, pid)
    if path is None:
        return None
    # A polecat that spawns a polecat: the inner one is no part of the outer one's group.
    outer = next((at for at, part in enumerate(path.parts) if part.startswith(_PREFIX)), len(path.parts))
    return Path(*path.parts[:outer])


def cgroups_of(pid: int, run: str) -> dict[str, str]:
    """The cgroups of a run that a process is in, by controller; that of the v2 tree has an empty name."""
    found = {}
    for controller in ("", "memory", "pids", "cpu"):
        path = _cgroup_path(controller, pid)
        for each in [path, *path.parents] if path else []:
            if each.name == f"{_PREFIX}{run}":
                found[controller] = str(each)
    return found


def _cgroup_path(controller: str, pid: int | None) -> Path | None:
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        lines = Path(f"/proc/{pid or 'self'}/cgroup").read_text().splitlines()
    except OSError:
        return None
    mine = next((path for names, path in _hierarchies(lines) if (controller in names if controller else names == [""])), None)  # noqa: E501 # fmt: skip
    mount = next((each for each in map(_mounted, mounts) if each and (controller in each[2] if controller else not each[2])), None)  # noqa: E501 # fmt: skip
    if mine is None or mount is None or (mount[0] != "/" and not f"{mine}/".startswith(f"{mount[0]}/")):
        return None
    return Path(mount[1], mine[len(mount[0].rstrip("/")) :].strip("/"))


def _hierarchies(lines: Iterable[str]) -> Iterable[tuple[list[str], str]]:
    for line in lines:
        _, _, rest = line.partition(":")
        names, colon, path = rest.partition(":")
        if colon and path.startswith("/"):
            yield names.split(","), path


def _mounted(line: str) -> tuple[str, str, frozenset[str]] | None:
    """(the part of the tree that is mounted, where, the v1 controllers of it) of a mount, where it is of cgroups."""
    place, dash, kind = line.partition(" - ")
    # Field 5 is the mount point, field 4 the part of the tree that is mounted there.
    fields, facts = place.split(), kind.split()
    if not dash or len(fields) < 5 or len(facts) < 3 or facts[0] not in ("cgroup", "cgroup2"):
        return None
    point = fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
    return fields[3], point, frozenset(facts[2].split(",")) if facts[0] == "cgroup" else frozenset()


def cgroup_members(folder: str, run: str) -> set[int]:
    """The pids in a run's cgroup and below it; empty when there is no such cgroup."""
    if not _is_of(folder, run):
        return set()
    found: set[int] = set()
    for place, _, _ in os.walk(folder):
        with suppress(OSError, ValueError):
            found.update(int(pid) for pid in Path(place, _MEMBERS).read_text().split())
    return found


def remove_cgroup(folder: str, run: str) -> bool:
    """Take an empty cgroup away, with those that its processes made below it; one that is not empty stays.

    Returns:
        Whether it is gone.
    """
    if not _is_of(folder, run):
        return True
    for place, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            os.rmdir(place)  # noqa: PTH106
    return not Path(folder).exists()


def _is_of(folder: str, run: str) -> bool:
    return bool(folder) and Path(folder).name == f"{_PREFIX}{run}"
