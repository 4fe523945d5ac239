"""What one polecat may use of the machine, and what of it it has met.

The bounds hold for the agent and all that it starts; its reapers and sidecars are outside of them, so that who watches
it does not starve with it. They are a cgroup's: of the v2 tree where its controllers are delegated to us, of the v1
hierarchies where those hold the controllers (a machine may mix both).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from witness.process.cgroup import folder_of, own_cgroup, remove_cgroup

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,3})?) ?([kmgt]?)(?:i?b)?", re.IGNORECASE)
_CONTROLLER = {"memory_high": "memory", "memory_max": "memory", "pids_max": "pids", "cpu_weight": "cpu"}
_SMALLEST_MEMORY, _LARGEST = 1 << 20, 1 << 60
_WEIGHTS = (1, 10_000)
# In a run's v2 cgroup: no process may stand beside a cgroup that hands its controllers down.
_AGENT, _REAPERS = "agent", "reapers"


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one polecat; None is none.

    Args:
        memory_high: bytes from which on the kernel takes memory back and slows it down. In a v1 hierarchy the kernel
            takes it back only while the machine is short.
        memory_max: bytes, swap included, past which the kernel ends the largest of its processes.
        pids_max: how many processes and threads.
        cpu_weight: its share of a busy processor, 1 to 10000; 100 is that of everybody else, and where a controller can
            be had also that of an agent with any other bound, so that a thousand processes count as one.
    """

    memory_high: int | None = None
    memory_max: int | None = None
    pids_max: int | None = None
    cpu_weight: int | None = None

    def __bool__(self) -> bool:
        return any(value is not None for value in self.values())

    def values(self) -> tuple[int | None, int | None, int | None, int | None]:
        return (self.memory_high, self.memory_max, self.pids_max, self.cpu_weight)

    def set_values(self) -> dict[str, int]:
        """Those that are set, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def over(self, given: Mapping[str, int | None]) -> Limits:
        """These, with what is given in their place."""
        return replace(self, **given)

    def tightened(self, given: Mapping[str, int | None]) -> Limits:
        """These; where what is given is lower, that."""
        both = {name: (getattr(self, name), value) for name, value in given.items() if value is not None}
        return replace(self, **{name: value if own is None else min(own, value) for name, (own, value) in both.items()})


#: The names under which settings, molecules and the command line give them.
LIMITS = tuple(_CONTROLLER)


def parse_limit(name: str, value: Any) -> int | None:
    """Read one limit: ``4G``, ``512M`` or bytes for memory, a whole number for the others, ``max`` for none.

    Raises:
        ValueError: it is none of these, or out of range.
    """
    if value == "max":
        return None
    if name.startswith("memory"):
        found = (
            _SIZE.fullmatch(str(value).strip())
            if isinstance(value, str | int) and not isinstance(value, bool)
            else None
        )
        if not found:
            raise ValueError(f"{value!r} is no size: write it like 512M or 4G, or max for none")
        size = int(float(found[1]) * _UNITS[found[2].lower()])
        if not _SMALLEST_MEMORY <= size <= _LARGEST:
            raise ValueError(f"{value!r}: at least 1M, for nothing runs in less")
        return size
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:20])
    if type(value) is not int:
        raise ValueError(f"{value!r}: a whole number, or max for none")
    low, high = _WEIGHTS if name == "cpu_weight" else (1, 1 << 22)
    if not low <= value <= high:
        raise ValueError(f"{value}: between {low} and {high}")
    return value


def shown_size(size: int) -> str:
    """A number of bytes in the largest unit that keeps it short."""
    for unit, one in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size >= one:
            return f"{size / one:.1f}".removesuffix(".0") + unit
    return str(size)


@dataclass(frozen=True, slots=True)
class LimitUse:
    """What of its bounds a group uses, and how often it met them.

    Args:
        memory: bytes, those of the files that it reads included; None where memory has no bound.
        pids: processes and threads; None where they have no bound.
        oom_kills: processes that the kernel has ended for ``memory_max``.
        forks_refused: how often ``pids_max`` was met; a kernel may count a run of them as one.
    """

    memory: int | None = None
    pids: int | None = None
    oom_kills: int = 0
    forks_refused: int = 0

    @property
    def words(self) -> str:
        """What was met, for people; empty when nothing was."""
        met = [f"the kernel ended {self.oom_kills} of its processes at its memory_max"] if self.oom_kills else []
        met += (
            [f"it was refused new processes at its pids_max ({self.forks_refused} times)"] if self.forks_refused else []
        )
        return "; ".join(met)


@dataclass(frozen=True, slots=True)
class LimitGroup:
    """The cgroups that hold an agent's bounds.

    Args:
        folders: by controller, the run's own cgroup.
        join: the cgroups that the agent goes into.
        contained: the run's cgroup in the v2 tree, where its bounds are there; empty otherwise.
        reapers: the one below it that the reapers go into.
    """

    folders: Mapping[str, str] = field(default_factory=dict)
    join: tuple[str, ...] = ()
    contained: str = ""
    reapers: str = ""


class LimitsUnavailable(Exception):
    """The machine does not let us set a limit; the text says which, and why."""


def make_limit_group(run: str, limits: Limits) -> LimitGroup:
    """Make the cgroups in which limits hold.

    Raises:
        LimitsUnavailable: one cannot be had; nothing stays.
    """
    wanted: dict[str, dict[str, int]] = {}
    for name, value in limits.set_values().items():
        wanted.setdefault(_CONTROLLER[name], {})[name] = value
    folders: dict[str, str] = {}
    try:
        old = {controller: place for controller in wanted if (place := own_cgroup(controller))}
        for controller, place in old.items():
            folder = folder_of(place, run)
            _make(folder, wanted[controller])
            folders[controller] = str(folder)
            _write(folder, _v1_values(folder, wanted[controller]), wanted[controller])
        if "cpu" not in wanted and (place := own_cgroup("cpu")):
            # Whoever has a bound also counts as one for the processor, however many processes it is.
            with suppress(LimitsUnavailable):
                _make(folder_of(place, run), ())
                folders["cpu"] = str(folder_of(place, run))
        join = tuple(folders.values())
        if new := {name: value for name, value in wanted.items() if name not in old}:
            folder = _make_v2(run, new, folders)
            return LimitGroup(folders, (*join, str(folder / _AGENT)), str(folder), str(folder / _REAPERS))
        return LimitGroup(folders, join)
    except LimitsUnavailable:
        for each in set(folders.values()):
            remove_cgroup(each, run)
        raise


def _make_v2(run: str, wanted: Mapping[str, Mapping[str, int]], folders: dict[str, str]) -> Path:
    names = [name for values in wanted.values() for name in values]
    place = own_cgroup()
    if place is None:
        raise LimitsUnavailable(f"{', '.join(names)}: this machine has no cgroups with {', '.join(wanted)}")
    for parent in _delegating(place, wanted):
        folder = folder_of(parent, run)
        _make(folder, names)
        folders |= dict.fromkeys(wanted, str(folder))
        _hand_down(folder, {"cpu": None})
        _hand_down(folder, wanted)
        for name in (_REAPERS, _AGENT):
            _make(folder / name, names)
        for values in wanted.values():
            _write(folder / _AGENT, _v2_values(folder / _AGENT, values), values)
        return folder
    raise LimitsUnavailable(
        f"{', '.join(names)}: the controllers {', '.join(wanted)} are not delegated to {place}: start it within "
        "'systemd-run --user --scope -p Delegate=yes', or leave the limits out"
    )


def _delegating(place: Path, wanted: Mapping[str, object]) -> Iterator[Path]:
    """Where controllers can be had: our own cgroup, where no process of ours is in the way, or one above it."""
    top = next((each for each in [place, *place.parents] if not (each.parent / "cgroup.procs").exists()), place)
    for parent in [place, *place.parents]:
        with suppress(OSError):
            held = (parent / "cgroup.subtree_control").read_text().split()
            # Root might hand them down anywhere, and would change what others chose; so only where we are.
            ours = parent == place or parent.stat().st_uid == os.geteuid() != 0
            if not set(wanted) <= set(held) and ours:
                _hand_down(parent, wanted)
                held = (parent / "cgroup.subtree_control").read_text().split()
            if set(wanted) <= set(held) and os.access(parent, os.W_OK):
                yield parent
        if parent == top:
            return


def _hand_down(folder: Path, wanted: Mapping[str, object]) -> None:
    with suppress(OSError):
        (folder / "cgroup.subtree_control").write_text(" ".join(f"+{each}" for each in wanted))


def _make(folder: Path, names: Iterable[str]) -> None:
    try:
        folder.mkdir()
    except OSError as error:
        raise LimitsUnavailable(
            f"{', '.join(names)}: no cgroup can be made in {folder.parent}: {error.strerror}"
        ) from error


def _v1_values(folder: Path, limits: Mapping[str, int]) -> dict[str, int]:
    values = {}
    for name, value in limits.items():
        match name:
            case "memory_high":
                values["memory.soft_limit_in_bytes"] = value
            case "memory_max":
                values["memory.limit_in_bytes"] = value
                # A kernel that does not count swap has no such file; there the first is all.
                if (folder / "memory.memsw.limit_in_bytes").exists():
                    values["memory.memsw.limit_in_bytes"] = value
            case "pids_max":
                values["pids.max"] = value
            case "cpu_weight":
                values["cpu.shares"] = max(value * 1024 // 100, 2)
    return values


def _v2_values(folder: Path, limits: Mapping[str, int]) -> dict[str, int]:
    values = {name.replace("_", ".", 1): value for name, value in limits.items()}
    if "memory_max" in limits and (folder / "memory.swap.max").exists():
        values["memory.swap.max"] = 0
    return values


def _write(folder: Path, values: Mapping[str, int], names: Mapping[str, int]) -> None:
    for name, value in values.items():
        try:
            (folder / name).write_text(str(value))
        except OSError as error:
            raise LimitsUnavailable(f"{', '.join(names)}: {folder / name} cannot be set: {error.strerror}") from error


def lift_cpu_weight(folders: Iterable[str]) -> None:
    """Let a group that is to end have the processor for it: to take a signal, a process must be given a turn."""
    for folder in folders:
        for name, value in (("cpu.shares", _WEIGHTS[1] * 1024 // 100), (f"{_AGENT}/cpu.weight", _WEIGHTS[1])):
            with suppress(OSError):
                handle = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                with os.fdopen(handle, "w") as file:
                    file.write(str(value))


def read_use(folders: Mapping[str, str]) -> LimitUse:
    """What a run's cgroups say; what cannot be read is None or 0."""
    memory, pids = _place(folders, "memory"), _place(folders, "pids")
    return LimitUse(
        memory=_number(memory, "memory.current", "memory.usage_in_bytes"),
        pids=_number(pids, "pids.current"),
        oom_kills=_counted(memory, "oom_kill", "memory.events", "memory.oom_control"),
        forks_refused=_counted(pids, "max", "pids.events"),
    )


def _place(folders: Mapping[str, str], controller: str) -> Path | None:
    folder = folders.get(controller)
    if not folder:
        return None
    inner = Path(folder, _AGENT)
    return inner if (inner / f"{controller}.events").exists() else Path(folder)


def _number(place: Path | None, *names: str) -> int | None:
    for name in names if place else ():
        with suppress(OSError, ValueError):
            return int(Path(place or "", name).read_text())
    return None


def _counted(place: Path | None, key: str, *names: str) -> int:
    for name in names if place else ():
        with suppress(OSError, ValueError):
            lines = (line.split() for line in Path(place or "", name).read_text().splitlines())
            return next((int(words[1]) for words in lines if len(words) == 2 and words[0] == key), 0)
    return 0
