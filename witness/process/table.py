"""Processes: which live, which descends from which, which carry our marker. Signals are sent here and nowhere else.

Linux is read from ``/proc`` directly: a patrol over thousands of processes must cost little, and the raw start ticks
there do not move when somebody sets the date, as a computed creation time does. Elsewhere psutil answers, which is
imported only there and for words for people: it is a tenth of what a short command takes.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from witness.names import HELPER_VARIABLE, MARKER_VARIABLE
from witness.process import ProcessId

if TYPE_CHECKING:
    import psutil

LINUX = sys.platform.startswith("linux")
HELPER = "helper"
# Most environments fit; a larger buffer would be mapped and unmapped for each of thousands of processes.
_ENVIRONMENT_CHUNK = 32768
# PF_EXITING in the kernel's include/linux/sched.h.
_EXITING = 0x4
# A second, in the units of ProcessId.started: an exec follows its fork in far less.
SETTLED = 100 if LINUX else 1000
_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Row:
    """One process in a snapshot of the process table.

    Args:
        process: its identity.
        parent: pid of its parent.
        defunct: it has ended and waits to be reaped; it is dead.
        name: the kernel's short name of it, which an exec changes; empty where nobody asked.
    """

    process: ProcessId
    parent: int
    defunct: bool
    name: bytes = b""


Table = Mapping[int, Row]


def read_table() -> dict[int, Row]:
    """One pass over the process table, by pid."""
    return _read_linux() if LINUX else read_psutil()


def _read_linux() -> dict[int, Row]:
    return {pid: row for pid in list_pids() if (row := _row(pid))}


def list_pids() -> list[int]:
    """The pids that ``/proc`` lists now, in the order of the kernel's walk: ascending."""
    return [int(entry) for entry in os.listdir("/proc") if entry[0] in "123456789"]  # noqa: PTH208 - a hot path


def newest_pid() -> int:
    """The pid that was given out last; 0 where the kernel does not say."""
    try:
        with open("/proc/loadavg", "rb") as file:  # noqa: PTH123 - a hot path
            return int(file.read().split()[-1])
    except (OSError, ValueError, IndexError):
        return 0


def _row(pid: int) -> Row | None:
    try:
        handle = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return None
    except OSError:  # we have no descriptor left, or may not look: that is no fact about the process
        return _unknown(pid)
    try:
        data = os.read(handle, 1024)
    except ProcessLookupError:  # it ended while we looked
        return None
    except OSError:
        return _unknown(pid)
    finally:
        os.close(handle)
    # The name stands in parentheses and may itself hold spaces and parentheses.
    fields = data[data.rindex(b")") + 2 :].split(b" ", 20)
    # A process whose first thread has ended shows as defunct while its other threads run on.
    defunct = fields[0] == b"X" or (fields[0] == b"Z" and int(fields[17]) < 2)
    return Row(ProcessId(pid, int(fields[19])), int(fields[1]), defunct, data[data.index(b"(") + 1 : data.rindex(b")")])


def _unknown(pid: int) -> Row:
    """A process that is there and cannot be looked at."""
    return Row(ProcessId(pid, 0), 0, defunct=False)


def read_psutil() -> dict[int, Row]:
    """The same where there is no ``/proc``."""
    import psutil

    table = {}
    for process in psutil.process_iter():
        if row := _psutil_row(process):
            table[process.pid] = row
    return table


def _psutil_row(process: psutil.Process) -> Row | None:
    import psutil

    try:
        with process.oneshot():
            started = int((process.create_time() or 0) * 1000)
            defunct = process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
            return Row(ProcessId(process.pid, started), process.ppid(), defunct)
    except psutil.NoSuchProcess:
        return None
    except (psutil.Error, OSError, ValueError):
        return _unknown(process.pid)


def look_up(pid: int) -> Row | None:
    """The process that has this pid now; None when there is none."""
    if LINUX:
        return _row(pid)
    import psutil

    try:
        return _psutil_row(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return None
    except (psutil.Error, OSError, ValueError):
        return _unknown(pid)


def identify(pid: int) -> ProcessId | None:
    """The identity of the living process with this pid."""
    row = look_up(pid)
    return row.process if row and row.process.started and not row.defunct else None


def is_alive(process: ProcessId, table: Table | None = None) -> bool:
    """Whether exactly this process runs; a defunct one and a later owner of the pid do not count.

    One that is there and cannot be looked at is not taken for dead: a caller that did would replace it, or let it
    survive.

    Args:
        process: the one meant.
        table: a snapshot to look in; the kernel is asked when None.
    """
    row = table.get(process.pid) if table is not None else look_up(process.pid)
    if row is None or row.defunct:
        return False
    return row.process == process or (row.process.pid == process.pid and not row.process.started)


def send(process: ProcessId, number: int) -> bool:
    """Send a signal to exactly this process.

    Returns:
        False when it is gone, is not known well enough, or may not be signalled; then nothing was sent.
    """
    if not process.known:
        return False
    try:
        if not hasattr(os, "pidfd_open"):
            return identify(process.pid) == process and _kill(process.pid, number)
        # The handle is taken first and the identity checked after: from then on the pid may be recycled at will.
        handle = os.pidfd_open(process.pid)
        try:
            if identify(process.pid) != process:
                return False
            signal.pidfd_send_signal(handle, number)
            return True
        finally:
            os.close(handle)
    except OSError:
        return False


def _kill(pid: int, number: int) -> bool:
    os.kill(pid, number)
    return True


def process_name(process: ProcessId) -> str:
    """Its name for people; empty when it is gone."""
    import psutil

    try:
        return psutil.Process(process.pid).name()
    except (psutil.Error, OSError, ValueError):
        return ""


def processor_seconds(processes: Iterable[ProcessId]) -> float:
    """The processor time that processes have used, with that of the children that they have waited for."""
    return sum(usage.processor for usage in map(usage_of, processes) if usage)


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """What one process uses.

    Args:
        processor: seconds of processor time so far, with that of the children that it has waited for.
        memory: bytes of resident memory.
    """

    processor: float
    memory: int


def usage_of(process: ProcessId) -> ProcessUsage | None:
    """What a process uses; None when it is gone."""
    if not LINUX:
        import psutil

        try:
            found = psutil.Process(process.pid)
            with found.oneshot():
                times = found.cpu_times()
                memory = int(found.memory_info().rss)
        except psutil.Error:
            return None
        children = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
        return ProcessUsage(times.user + times.system + children, memory)
    try:
        with open(f"/proc/{process.pid}/stat", "rb") as file:  # noqa: PTH123 - for each process of a town
            fields = file.read(1024).rpartition(b")")[2].split()
    except OSError:
        return None
    if int(fields[19]) != process.started:  # somebody else has the pid by now
        return None
    return ProcessUsage(sum(map(int, fields[11:15])) / _TICKS, max(int(fields[21]), 0) * _PAGE)


def command_line(process: ProcessId) -> str:
    """Its arguments joined by spaces; empty when it is gone or may not be read."""
    import psutil

    try:
        return " ".join(psutil.Process(process.pid).cmdline()).strip()
    except (psutil.Error, OSError, ValueError):
        return ""


def ancestors(pid: int, table: Table) -> set[int]:
    """The pid itself and everybody above it."""
    line: set[int] = set()
    while pid > 0 and pid not in line:
        line.add(pid)
        row = table.get(pid)
        pid = row.parent if row else 0
    return line


@dataclass(frozen=True, slots=True)
class Mark:
    """What a process's environment says of where it belongs.

    Args:
        marker: the marker of a group, empty without.
        sign: what speaks for the marker: the tmux pane that the process was started in (``%3``), ``HELPER`` for a
            sidecar and what it started, or empty. A marker alone may come from anybody's export.
    """

    marker: str = ""
    sign: str = ""


# Nothing could be read: a process of the kernel, of another user, in the midst of an exec, or ended.
_UNREADABLE = Mark()


class Markers:
    """The groups whose marker processes carry in their initial environment.

    It is read once for each process: the kernel shows the environment that a process was started with. An exec brings
    a new one, but a child of ours that clears it stays a descendant.
    """

    def __init__(self) -> None:
        # Those of the last reading that ended before their environment could be read.
        self.unread: set[ProcessId] = set()
        self._known: dict[ProcessId, Mark] = {}
        self._without: dict[ProcessId, bytes] = {}

    def read(self, table: Table) -> dict[ProcessId, str]:
        """The marker of every living process in the table that carries one."""
        return {process: mark.marker for process, mark in self.marks(table).items()}

    def marks(self, table: Table) -> dict[ProcessId, Mark]:
        """The same, with what speaks for each."""
        newest = max((row.process.started for row in table.values()), default=0)
        known: dict[ProcessId, Mark] = {}
        without: dict[ProcessId, bytes] = {}
        self.unread = set()
        for row in table.values():
            process = row.process
            if row.defunct:
                continue
            if row.name and self._without.get(process) == row.name:
                without[process] = row.name
            elif (mark := self._known.get(process) or read_marker(process.pid)).marker:
                known[process] = mark
            elif mark is _UNREADABLE and _has_ended(process):
                self.unread.add(process)
            elif newest - process.started > SETTLED:
                # That it has none is believed only of one that is settled, and only until its name changes: between
                # fork and exec a process shows its parent's environment.
                without[process] = row.name
        self._known, self._without = known, without
        return known


def read_marker(pid: int) -> Mark:
    """What the environment that a process was started with says; empty where it may not be read."""
    if not LINUX:
        import psutil

        try:
            environment = psutil.Process(pid).environ()
        except (psutil.Error, OSError):
            return _UNREADABLE
        return _mark(environment.get(MARKER_VARIABLE, ""), environment.get("TMUX_PANE", ""), HELPER_VARIABLE in environment)  # noqa: E501 # fmt: skip
    try:
        handle = os.open(f"/proc/{pid}/environ", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return _UNREADABLE
    try:
        data = chunk = os.read(handle, _ENVIRONMENT_CHUNK)
        while len(chunk) == _ENVIRONMENT_CHUNK:
            chunk = os.read(handle, _ENVIRONMENT_CHUNK)
            data += chunk
    except OSError:
        return _UNREADABLE
    finally:
        os.close(handle)
    if not data:
        return _UNREADABLE
    data = b"\0" + data
    marker = _value(data, MARKER_VARIABLE)
    return _mark(marker, _value(data, "TMUX_PANE"), _value(data, HELPER_VARIABLE) != "") if marker else Mark()


def _has_ended(process: ProcessId) -> bool:
    """Whether it is dead, or its last thread is on its way out: its memory, and with it its environment, goes first."""
    if not LINUX:
        return not is_alive(process)
    try:
        with open(f"/proc/{process.pid}/stat", "rb") as file:  # noqa: PTH123 - a hot path
            fields = file.read(1024).rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return True
    except OSError:
        return False
    if int(fields[19]) != process.started:
        return True
    # A first thread that has ended before the others stays defunct; the process lives.
    return int(fields[17]) < 2 if fields[0] == b"Z" else bool(int(fields[6]) & _EXITING)


def _mark(marker: str, pane: str, helper: bool) -> Mark:
    return Mark(marker.strip(), HELPER if helper else pane)


def _value(data: bytes, name: str) -> str:
    variable = b"\0%s=" % name.encode()
    at = data.find(variable)
    return data[at + len(variable) :].split(b"\0", 1)[0].decode(errors="replace") if at >= 0 else ""


def is_proven(sign: str, pane: str) -> bool:
    """Whether a marker with this sign is one of the group that runs in this pane."""
    return not pane or sign in (pane, HELPER)


class GroupMembership:
    """Which process belongs to which group in one snapshot of the process table. Pure once built.

    Args:
        table: the process table.
        marks: who carries which marker, and what speaks for it.
    """

    def __init__(self, table: Table, marks: Mapping[ProcessId, Mark]) -> None:
        self._table = table
        self._below: dict[int, list[ProcessId]] = {}
        for row in table.values():
            if not row.defunct:
                self._below.setdefault(row.parent, []).append(row.process)
        self._marked: dict[str, list[tuple[ProcessId, str]]] = {}
        for process, mark in marks.items():
            self._marked.setdefault(mark.marker, []).append((process, mark.sign))

    def group(
        self, marker: str, recorded: Iterable[ProcessId], foreign: Container[ProcessId] = frozenset(), pane: str = ""
    ) -> set[ProcessId]:
        """Everybody who belongs to a group.

        Args:
            marker: the group's marker.
            recorded: the group's recorded processes and every descendant ever seen.
            foreign: processes that are somebody else's by record (the Witness and its helpers, the tmux server,
                members of other groups, the caller and its ancestors). They are left out, and the search does not go
                below them.
            pane: the group's pane. A marker that nothing else speaks for than the pane of somebody else, or nothing at
                all, came there by an export; where the pane is not known, every marker counts.

        Returns:
            The living processes: recorded ones, marked ones, and all below them. A child that carries another marker
            is still a child.
        """
        found: set[ProcessId] = set()
        waiting = [process for process in recorded if process.known and is_alive(process, self._table)]
        waiting += [process for process, sign in self._marked.get(marker, ()) if is_proven(sign, pane)]
        while waiting:
            process = waiting.pop()
            if process in found or process in foreign:
                continue
            found.add(process)
            waiting += self._below.get(process.pid, ())
        return found

    def parent(self, pid: int) -> ProcessId:
        """The parent of a process; pid 0 where it is not in the table."""
        row = self._table.get(pid)
        above = self._table.get(row.parent) if row else None
        return above.process if above else ProcessId(0, 0)

    def roots(self, processes: Collection[ProcessId]) -> list[ProcessId]:
        """Those of the processes whose parent is not among them."""
        pids = {process.pid for process in processes}
        return [process for process in processes if self._table[process.pid].parent not in pids]
