"""What chaos does: each fault is one blow, drawn by a seed that repeats the order."""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import clock
from tests.chaos.town import BARE, POLECATS, ChaosTown, Command, identity, kill, nudge_numbers
from tests.programs import Identity, alive
from tests.safety.poison import FILES, POISON, remove
from witness.delivery import queue_files
from witness.errors import WitnessError
from witness.journal import Group, GroupState, Member
from witness.process import ProcessId
from witness.process.table import command_line, read_table

_MORE_FILES = tuple(
    f".runtime/witness/runs/{{run}}/{name}"
    for name in (
        "beats/tools", "exits", "exits/tools.json", "sidecars/tools.json", "launch.json", "settings.json", "prompt.xml",
        "screen.txt", "started.fifo", "spool/client", "spool/effects.look", "spool/working",
    )
)  # fmt: skip
# What a run's successors share with it is mended before the invariants are looked at.
_RUNS_FILES = tuple(file for file in (*FILES, *_MORE_FILES) if "{run}" in file)
_SHARED_FILES = tuple(file for file in FILES if "{run}" not in file)
_LONGEST_PAUSE = 0.1
_FULL = 0.6


@dataclass
class Faults:
    """The blows of one run.

    Args:
        town: whom they befall.
        dice: draws them.
        dated: whether the date of the town's processes can be moved.
        done: how many of each there were.
        story: what was done, with its time, for whoever repeats it.
        stopped: processes that stand still, and since when.
        still: spans in which the Witness was stopped or dead by our hand.
        sent: the run of each nudge that a command was to send.
        spoilt: nudges whose files or ledger we took away: nobody can know any more what became of them.
        poisoned: runs in whose folder something was poisoned, with what.
    """

    town: ChaosTown
    dice: random.Random
    dated: bool = False
    done: Counter[str] = field(default_factory=Counter)
    story: list[str] = field(default_factory=list)
    stopped: dict[Identity, tuple[str, float]] = field(default_factory=dict)
    still: list[tuple[float, float]] = field(default_factory=list)
    sent: dict[int, str] = field(default_factory=dict)
    spoilt: set[int] = field(default_factory=set)
    poisoned: dict[str, list[str]] = field(default_factory=dict)
    shared: set[Path] = field(default_factory=set)
    witness_down: bool = False
    _full_until: float = 0.0
    _groups: list[tuple[Group, list[Member]]] = field(default_factory=list)
    _looked: float = 0.0

    def blow(self) -> None:
        """One fault, and a moment."""
        while not self._try():
            pass
        self.town.attend(self.dice.random() * _LONGEST_PAUSE)
        if self._full_until and time.monotonic() > self._full_until:
            self.free_disk()

    def _try(self) -> bool:
        (what,) = self.dice.choices(list(_WEIGHTS), weights=list(_WEIGHTS.values()))
        try:
            told = what(self)
        except (WitnessError, OSError) as error:
            # The journal or the disk is in the state that we have put it into; the blow goes elsewhere.
            told = ""
            self.story.append(f"{time.monotonic():.3f} ({what.__name__}: {error})")
        if not told:
            return False
        self.done[what.__name__] += 1
        self.story.append(f"{time.monotonic():.3f} {what.__name__} {told}")
        return True

    # -- who it befalls -----------------------------------------------------------------------------------------------

    def _living(self) -> list[tuple[Group, list[Member]]]:
        if time.monotonic() - self._looked > 0.5:
            # With a full disk the journal may not be had; then it is those of before whom it befalls.
            with contextlib.suppress(WitnessError):
                self._groups, self._looked = self.town.living(), time.monotonic()
        return self._groups

    def _group(self) -> Group | None:
        groups = [group for group, _ in self._living() if group.state is not GroupState.NUKED]
        return self.dice.choice(groups) if groups else None

    def _member(self, *names: str) -> tuple[Group, Identity] | None:
        found = [
            (group, (member.process.pid, member.process.started))
            for group, members in self._living()
            for member in members
            if member.process and (member.name in names or (not names and str(member.kind) == "sidecar"))
        ]
        living = [each for each in found if alive(each[1])]
        return self.dice.choice(living) if living else None

    def _child(self) -> Identity | None:
        group = self._group()
        found = sorted(self.town.recorded(group.id.run)) if group else []
        living = [each for each in found[1:] if alive(each)]
        return self.dice.choice(living) if living else None

    def _signal(self, who: Identity | None, number: int = signal.SIGKILL, of: str = "") -> str:
        if who is None or (number == signal.SIGSTOP and who in self.stopped) or not kill(who, number):
            return ""
        if number == signal.SIGSTOP:
            self.stopped[who] = (of, time.monotonic())
        return f"{of} {who[0]}"

    # -- kill -9 ------------------------------------------------------------------------------------------------------

    def kill_witness(self) -> str:
        process = self.town.witness()
        if not process or not (told := self._signal(_identity(process))):
            return ""
        self.witness_down = True
        if self.dice.random() < 0.8:
            self.town.call("witness", "start")
        return told

    def kill_fork_server(self) -> str:
        process = self.town.fork_server()
        return self._signal(_identity(process)) if process else ""

    def kill_sidecar(self) -> str:
        found = self._member()
        return self._signal(found[1], of=found[0].id.run) if found else ""

    def kill_reaper(self) -> str:
        """One of the two: with both gone before any look, a bare daemon is beyond what is promised."""
        found = self._member("reaper", "keeper")
        if not found:
            return ""
        group, who = found
        if self.town.kinds.get(group.id.polecat) in BARE:
            pair = [
                each.process
                for each in dict(self._pairs())[group.id.run]
                if each.process and each.name in ("reaper", "keeper")
            ]
            if not all(alive(_identity(each)) for each in pair):
                return ""
        return self._signal(who, of=group.id.run)

    def _pairs(self) -> list[tuple[str, list[Member]]]:
        return [(group.id.run, members) for group, members in self._living()]

    def kill_agent(self) -> str:
        found = self._member("agent")
        return self._signal(found[1], of=found[0].id.run) if found else ""

    def kill_child(self) -> str:
        return self._signal(self._child())

    def kill_hook(self) -> str:
        for _ in range(6):
            hooks = self.town.hooks(read_table())
            if hooks:
                self.town.attend(self.dice.random() * 0.05)
                return self._signal(_identity(self.dice.choice(hooks)))
            self.town.attend(0.02)
        return ""

    def kill_looker(self) -> str:
        table = read_table()
        fork_server = self.town.fork_server()
        lookers = [
            row.process
            for row in table.values()
            if fork_server and row.parent == fork_server.pid and command_line(row.process).startswith("gt-looker")
        ]
        return self._signal(_identity(self.dice.choice(lookers))) if lookers else ""

    def kill_tmux(self) -> str:
        return self._signal(self._tmux_server())

    def _tmux_server(self) -> Identity | None:
        found, table = self._member("reaper"), read_table()
        row = table.get(found[1][0]) if found else None
        server = table.get(row.parent) if row else None
        return _identity(server.process) if server and server.name.startswith(b"tmux") else None

    # -- standstill ---------------------------------------------------------------------------------------------------

    def stop_witness(self) -> str:
        process = self.town.witness()
        return self._signal(_identity(process), signal.SIGSTOP, "witness") if process else ""

    def stop_fork_server(self) -> str:
        process = self.town.fork_server()
        return self._signal(_identity(process), signal.SIGSTOP, "fork server") if process else ""

    def stop_tmux(self) -> str:
        server = self._tmux_server()
        return self._signal(server, signal.SIGSTOP, "tmux") if server else ""

    def stop_member(self) -> str:
        found = (
            self._member(self.dice.choice(["reaper", "keeper", "agent"]))
            if self.dice.random() < 0.5
            else self._member()
        )
        return self._signal(found[1], signal.SIGSTOP, found[0].id.run) if found else ""

    def stop_child(self) -> str:
        return self._signal(self._child(), signal.SIGSTOP, "child")

    def let_go(self, *, everybody: bool = False) -> None:
        """Let those go on who have stood still for a while."""
        for who, (of, since) in list(self.stopped.items()):
            if everybody or time.monotonic() - since > 0.2 + self.dice.random():
                kill(who, signal.SIGCONT)
                del self.stopped[who]
                if of in ("witness", "tmux"):
                    self.still.append((since, time.monotonic()))

    # -- commands that die half-way -----------------------------------------------------------------------------------

    def _moment(self, longest: float) -> float:
        """Seconds after which a command is killed: every order of magnitude equally often."""
        return 0.002 * math.exp(math.log(longest / 0.002) * self.dice.random())

    def command_spawn(self) -> str:
        names = {group.id.polecat for group, _ in self._living()}
        free = [f"p{number}" for number in range(POLECATS) if f"p{number}" not in names]
        if not free:
            return ""
        name = self.dice.choice(free)
        self.town.call(*self.town.spawn_words(name), dies_after=self._moment(0.6))
        return name

    def command_nuke(self) -> str:
        group = self._group()
        if not group:
            return ""
        self.town.call("polecat", "nuke", group.id.polecat, dies_after=self._moment(0.5))
        return group.id.address

    def command_done(self) -> str:
        group = self._group()
        if not group:
            return ""
        self.town.call("done", marker=group.id.marker, dies_after=self._moment(0.1))
        return group.id.address

    def command_nudge(self) -> str:
        return self.nudge(self._moment(0.05))

    def command_patrol(self) -> str:
        self.town.call("witness", "patrol", dies_after=self._moment(0.3))
        return "patrol"

    def nudge(self, dies_after: float | None = None) -> str:
        """Send the next number to somebody; without ``dies_after`` that is no fault."""
        group = self._group()
        if not group or group.state not in (GroupState.RUNNING, GroupState.DEGRADED):
            return ""
        number = len(self.sent) + 1
        self.sent[number] = group.id.run
        priority = self.dice.choice(["normal", "normal", "urgent"])
        self.town.call(
            "nudge", group.id.polecat, f"chaos nudge {number}", "--mode", "queue", "--priority", priority,
            dies_after=dies_after, number=number,
        )  # fmt: skip
        return f"{number} to {group.id.run}"

    def whole_command(self) -> None:
        """Something ordinary beside the faults: no fault itself."""
        if self.dice.random() < 0.6:
            self.nudge()

    # -- files --------------------------------------------------------------------------------------------------------

    def poison_run_file(self) -> str:
        group = self._group()
        return self._poison(group, self.dice.choice(_RUNS_FILES)) if group else ""

    def poison_shared_file(self) -> str:
        group = self._group()
        return self._poison(group, self.dice.choice(_SHARED_FILES)) if group else ""

    def _poison(self, group: Group, file: str) -> str:
        kind = self.dice.choice([each for each in POISON if each != "foreign" or os.geteuid() == 0])
        path = self.town.town.root / file.format(run=group.id.run, session=group.session)
        if not path.parent.is_dir() or path.parent.is_symlink():
            return ""
        if "nudge_queue" in file:
            self._spoil(self.town.town.queue_dir(group.session))
        remove(path)
        POISON[kind](path)
        if "{run}" in file:
            self.poisoned.setdefault(group.id.run, []).append(f"{file}: {kind}")
        else:
            self.shared.add(path)
        return f"{path.relative_to(self.town.town.root)}: {kind}"

    def _spoil(self, queue: Path) -> None:
        """Whatever a queue speaks of may be lost from now on."""
        for path in queue.rglob("*") if queue.is_dir() and not queue.is_symlink() else ():
            if path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 22:
                self.spoilt |= nudge_numbers(path.read_text(errors="replace"))
        # Those that are on their way into it at this very moment, too.
        runs = {group.id.run for group, _ in self._living() if group.session == queue.name}
        self.spoilt |= {
            each.number
            for each in self.town.commands
            if each.number and each.code is None and self.sent[each.number] in runs
        }

    def mend_shared(self) -> None:
        """Take the poison out of what later runs use as well, the innermost first."""
        for path in sorted(self.shared, reverse=True):
            for each in (path, path.parent / f"{path.name}.theirs", path.parent / f"{path.name}.folder"):
                with contextlib.suppress(NotADirectoryError):  # its folder is poison itself
                    # A queue that works again holds what was queued since.
                    if not _is_own_folder(each) or "nudge_queue" not in each.parts:
                        remove(each)
        self.shared.clear()
        self.town.write_settings()

    def remove_tmux_socket(self) -> str:
        path = self.town.base / "tmux" / f"tmux-{os.getuid()}" / self.town.town.socket
        if not path.exists():
            return ""
        path.unlink()
        return str(path.name)

    def fill_disk(self) -> str:
        if not self.town.mount or self._full_until:
            return ""
        with (self.town.disk / "full").open("wb") as file:
            try:
                while True:
                    file.write(b"\0" * (1 << 20))
                    file.flush()
            except OSError:
                pass
        self._full_until = time.monotonic() + self.dice.random() * _FULL
        return f"for {self._full_until - time.monotonic():.2f} s"

    def free_disk(self) -> None:
        """Room again."""
        (self.town.disk / "full").unlink(missing_ok=True)
        self._full_until = 0.0

    def clock_jumps(self) -> str:
        """By a second, minutes or hours, further or back."""
        if not self.dated:
            return ""
        seconds = self.dice.choice([-1, 1]) * self.dice.choice([1, 30, 400, 3600, 8 * 3600])
        return f"{seconds} s, {clock.jump(seconds)} s off"

    def age_claims(self, older_than: float = 0.0) -> str:
        """Five minutes pass for every claim: whoever holds one is taken for dead.

        Only of claims whose carrier is dead: a living one of that age does not occur.
        """
        if self.town.hooks(read_table()):
            return ""
        aged = []
        for folder in (self.town.town.root / ".runtime" / "nudge_queue").glob("*"):
            if not folder.is_dir() or folder.is_symlink() or _owner(folder) != os.geteuid():
                continue
            for name in queue_files.claims(str(folder)):
                head, _, _ = name.partition(queue_files.CLAIM)
                then = time.time() - queue_files.STALE - 5
                try:
                    if time.time() - queue_files.claimed_at(str(folder), name) < older_than:
                        continue
                    os.utime(folder / name, (then, then))
                    (folder / name).rename(folder / f"{head}{queue_files.CLAIM}{int(then):08x}")
                except OSError:
                    continue
                aged.append(head)
        return f"{len(aged)} claims" if aged else ""


def _is_own_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and _owner(path) == os.geteuid()


def _owner(path: Path) -> int:
    return path.lstat().st_uid


def _identity(process: ProcessId) -> Identity:
    return process.pid, process.started


_WEIGHTS: dict[Callable[[Faults], str], float] = {
    Faults.kill_witness: 5,
    Faults.kill_fork_server: 4,
    Faults.kill_sidecar: 12,
    Faults.kill_reaper: 2,
    Faults.kill_agent: 2,
    Faults.kill_child: 7,
    Faults.kill_hook: 7,
    Faults.kill_looker: 2,
    Faults.kill_tmux: 0.4,
    Faults.stop_witness: 3,
    Faults.stop_fork_server: 3,
    Faults.stop_member: 8,
    Faults.stop_child: 3,
    Faults.command_spawn: 3,
    Faults.command_nuke: 2,
    Faults.command_done: 2,
    Faults.command_nudge: 7,
    Faults.command_patrol: 5,
    Faults.poison_run_file: 18,
    Faults.poison_shared_file: 7,
    Faults.remove_tmux_socket: 0.3,
    Faults.fill_disk: 1.5,
    Faults.clock_jumps: 2,
    Faults.stop_tmux: 0.7,
}

__all__ = ["Command", "Faults", "identity"]
