"""The town that chaos befalls: ten polecats with children, sidecars, a Witness, decoys, and whoever calls commands."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.programs import Identity, alive
from witness.cli import main as gt
from witness.cli import (
    program,  # noqa: F401 - loaded before the first fork, so that no command pays for it
)
from witness.config.town import Town
from witness.ipc.serving import serving_process
from witness.journal import Group, Journal, Member
from witness.launch.town_witness import witness_process
from witness.names import MARKER_VARIABLE
from witness.process import ProcessId
from witness.process.exits import wait_gone
from witness.process.table import Markers, Table, command_line, read_table

POLECATS = 10
# Longer than a run of chaos lasts, and an end by itself for what a killed driver leaves.
LIFE = 3600.0
KINDS = (
    "plain", "stubborn-child", "own-session", "daemon", "daemon-renamed", "twins-apart", "stopped", "nohup-jobs",
    "late-daemon", "foster",
)  # fmt: skip
# Each of these may leave a daemon with a cleared environment, which only a reaper or an earlier look can hold.
BARE = frozenset({"daemon-renamed", "late-daemon"})
SETTINGS = """
stop_grace: 300ms
spawn_settle: 50ms
patrol_interval: 1s
backoff_base: 20ms
backoff_ceiling: 400ms
intensity: 100000
done_settle: 100ms
linger: 0
containment: reaper
"""
_DISK = 48 << 20
_AWKWARD = Path(__file__).parent.parent / "programs" / "awkward.py"
_AGENT = Path(__file__).with_name("agent.py")
_COMMAND_SECONDS = 60.0


@dataclass
class Command:
    """A ``gt`` that somebody has called: a fork of the driver, which has loaded all that it needs.

    Args:
        words: its arguments.
        pid: its process.
        dies_at: monotonic seconds at which it is killed; None when it may end.
        code: how it ended; None while it runs.
        number: of the nudge that it sends; 0 for other commands.
    """

    words: tuple[str, ...]
    pid: int
    began: float
    dies_at: float | None = None
    code: int | None = None
    number: int = 0

    @property
    def killed(self) -> bool:
        return self.code is not None and self.code < 0


@dataclass
class ChaosTown:
    """One town under chaos.

    Args:
        base: a folder of the driver's own; the town's part of it may be a small file system of its own.
        mount: whether that can be had (the driver is root in a mount namespace of its own).
        step: seconds between two steps of each agent.
    """

    base: Path
    mount: bool
    step: float = 1.0
    commands: list[Command] = field(default_factory=list)
    decoys: dict[str, Identity] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    _journal: Journal | None = None

    def __post_init__(self) -> None:
        self.facts, self.work, self.disk = self.base / "facts", self.base / "work", self.base / "disk"
        for folder in (self.facts, self.work, self.disk, self.base / "tmux", self.base / "home"):
            folder.mkdir(parents=True)
        if self.mount:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "chaos", str(self.disk)], check=True)
        (self.base / "tmux").chmod(0o700)
        os.environ.update(TMUX_TMPDIR=str(self.base / "tmux"), HOME=str(self.base / "home"))
        (self.work / "issue.md").write_text("---\nfiles: [a/**]\n---\nOnly a.\n")
        self.town = Town.init(self.disk / "town")
        (self.town.root / "settings").mkdir(exist_ok=True)
        self.write_settings()
        self.town.make_runtime()
        self._start_decoys()

    def leave_room(self) -> None:
        """Give the disk as much room again as it had at first: what ended runs leave is kept, and adds up."""
        if self.mount:
            used = shutil.disk_usage(self.disk).used
            subprocess.run(["mount", "-o", f"remount,size={used + _DISK}", str(self.disk)], check=True)

    def write_settings(self) -> None:
        """Put the town's settings back as they were."""
        path = self.town.root / "settings" / "witness.yaml"
        path.write_text(SETTINGS)

    # -- who is there -------------------------------------------------------------------------------------------------

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """The journal, closed again before anything is forked."""
        with Journal(self.town.journal_path, patience=30.0) as journal:
            yield journal

    def living(self) -> list[tuple[Group, list[Member]]]:
        """The groups that live, by the journal."""
        with self.journal() as journal:
            members = journal.members.of_living()
            return [(group, members.get(group.id.run, [])) for group in journal.groups.living()]

    def witness(self) -> ProcessId | None:
        return witness_process(self.town)

    def fork_server(self) -> ProcessId | None:
        return serving_process(self.town.runtime, "forkserver.sock", "forkserver.lock")

    def recorded(self, run: str) -> set[Identity]:
        """The processes that a run's agent and its tree have written down themselves."""
        try:
            lines = (self.facts / f"{run}.record").read_text().split("\n")
        except FileNotFoundError:
            return set()
        return {(int(words[0]), int(words[1])) for line in lines if len(words := line.split()) == 2}

    def heard(self) -> Counter[tuple[str, int]]:
        """How often each run heard each nudge."""
        found: Counter[tuple[str, int]] = Counter()
        for path in self.facts.glob("*.heard"):
            found.update((path.stem, int(line)) for line in path.read_text().split())
        return found

    def runs(self) -> set[str]:
        """Every run there ever was."""
        return {path.stem for path in self.facts.glob("*.record")}

    def marked(self, table: Table) -> dict[Identity, str]:
        """The run of every living process that carries a marker of this town; the decoys are none of them."""
        runs, decoys = self.runs(), set(self.decoys.values())
        found = Markers().read(table)
        return {
            who: run
            for each, marker in found.items()
            if (run := marker.rpartition("/")[2]) in runs and (who := (each.pid, each.started)) not in decoys
        }

    def sidecars(self, table: Table) -> Counter[tuple[str, str]]:
        """How many processes there are of each sidecar (run, name), by what they call themselves."""
        runs, found = self.runs(), Counter[tuple[str, str]]()
        for row in table.values():
            if row.defunct:
                continue
            words = command_line(row.process).split()
            if words[:1] == ["gt-sidecar"] and len(words) == 3 and (run := words[1].rpartition("/")[2]) in runs:
                found[run, words[2]] += 1
        return found

    def hooks(self, table: Table) -> list[ProcessId]:
        """The hooks that run at this moment."""
        agents = {
            member.process.pid
            for _, each in self.living()
            for member in each
            if member.process and member.name == "agent"
        }
        return [
            row.process
            for row in table.values()
            if row.parent in agents and not row.defunct and "gt_hook.py" in command_line(row.process)
        ]

    # -- commands -----------------------------------------------------------------------------------------------------

    def call(
        self, *words: str, dies_after: float | None = None, number: int = 0, marker: str = "", wait: bool = False
    ) -> Command:
        """Call ``gt WORDS``.

        Args:
            words: its arguments.
            dies_after: seconds after which it is killed.
            number: see ``Command``.
            marker: as from inside of that group.
            wait: until it has ended.
        """
        began = time.monotonic()
        pid = os.fork()
        if pid == 0:
            self._become(words, marker)
        dies_at = began + dies_after if dies_after is not None else None
        command = Command(words, pid, began, dies_at, number=number)
        self.commands.append(command)
        while wait and command.code is None:
            self.attend(0.01)
        return command

    def _become(self, words: tuple[str, ...], marker: str) -> None:
        code = 70
        try:
            os.setsid()
            log = os.open(self.base / "commands.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            null = os.open(os.devnull, os.O_RDONLY)
            for target, source in ((0, null), (1, log), (2, log)):
                os.dup2(source, target)
            os.chdir(self.work if words[0] == "polecat" else self.town.root)
            os.environ["GT_TOWN_ROOT"] = str(self.town.root)
            if marker:
                os.environ[MARKER_VARIABLE] = marker
            sys.argv = ["gt", *words]
            os.write(2, f"-- {time.monotonic():.3f} {shlex.join(words)}\n".encode())
            gt(list(words))
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:  # noqa: BLE001 - a fork must never come back into the driver
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def attend(self, seconds: float) -> None:
        """Let time pass: kill whoever is to be killed at its moment, and take in who has ended."""
        until = time.monotonic() + seconds
        while True:
            running = [each for each in self.commands if each.code is None]
            now = time.monotonic()
            for each in running:
                if each.dies_at is not None and now >= each.dies_at:
                    os.kill(each.pid, signal.SIGKILL)
                    each.dies_at = None
                pid, status = os.waitpid(each.pid, os.WNOHANG)
                if pid:
                    each.code = os.waitstatus_to_exitcode(status)
            left = until - now
            if left <= 0:
                return
            time.sleep(min(left, 0.003 if any(each.dies_at for each in running) else 0.02))

    def finish_commands(self) -> list[str]:
        """Wait for every command; returns those that did not end in time, which are killed."""
        deadline = time.monotonic() + _COMMAND_SECONDS
        while any(each.code is None for each in self.commands) and time.monotonic() < deadline:
            self.attend(0.02)
        late = [each for each in self.commands if each.code is None]
        for each in late:
            os.kill(each.pid, signal.SIGKILL)
            os.waitpid(each.pid, 0)
            each.code = -9
        return [shlex.join(each.words) for each in late]

    def spawn_words(self, name: str) -> tuple[str, ...]:
        """The command that spawns that polecat."""
        kind = self.kinds.setdefault(name, KINDS[int(name[1:]) % len(KINDS)])
        agent = shlex.join(
            [sys.executable, "-S", "-I", str(_AGENT), str(self.facts), str(_AWKWARD), kind, str(LIFE), str(self.step)]
        )
        sidecars = "scope:issue.md,tools" if int(name[1:]) % 2 else "scope:issue.md"
        return ("polecat", "spawn", name, "--workdir", str(self.work), "--agent", agent, "--sidecars", sidecars)

    # -- decoys -------------------------------------------------------------------------------------------------------

    def _start_decoys(self) -> None:
        """Processes that look like ours and are not: nothing may ever end one of them."""
        claude = self.base / "claude"
        shutil.copy(shutil.which("sleep") or "/bin/sleep", claude)
        life = str(int(LIFE))
        plain = {"PATH": os.environ["PATH"]}
        forged = {**plain, MARKER_VARIABLE: "main/p0/not-a-run", "GT_TOWN_ROOT": str(self.town.root)}
        self._decoy("a client of the user's own", [str(claude), life], plain)
        self._decoy("a marker that somebody exported", [str(claude), life], forged)
        self._decoy("in a polecat's folder", [str(claude), life], plain, cwd=self.work)
        self._decoy("named as a sidecar", ["gt-sidecar main/p0/not-a-run scope"], plain, executable=sys.executable)
        tmux = ["tmux", "-L", "users-own"]
        subprocess.run([*tmux, "new-session", "-d", "-s", "gt-p0", str(claude), life], check=True)
        shown = subprocess.run([*tmux, "list-panes", "-a", "-F", "#{pane_pid} #{pid}"], capture_output=True, check=True)
        pane, server = map(int, shown.stdout.split())
        self.decoys |= {"a session of the user's own": identity(pane), "the user's own tmux": identity(server)}

    def _decoy(self, what: str, argv: list[str], environment: dict[str, str], **more: object) -> None:
        if "executable" in more:
            argv = [*argv, "-S", "-I", "-c", f"import time; time.sleep({LIFE})"]
        process = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, **more)  # type: ignore[call-overload]
        self.decoys[what] = identity(process.pid)

    def mark_a_decoy(self, group: Group) -> None:
        """One more: it carries a living group's very marker, as a shell that was started with an exported one does."""
        if "a living group's marker" not in self.decoys:
            environment = {"PATH": os.environ["PATH"], MARKER_VARIABLE: group.id.marker}
            self._decoy("a living group's marker", [str(self.base / "claude"), str(int(LIFE))], environment)

    # -- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End whatever is left, decoys included, by what each is known by; nothing else."""
        self.finish_commands()
        helpers = [process for process in (self.witness(), self.fork_server()) if process]
        recorded = {who for run in self.runs() for who in self.recorded(run)}
        for _ in range(3):
            table = read_table()
            marked = set(self.marked(table))
            servers = {(row.process.pid, row.process.started) for row in table.values() if self._is_ours(row.process)}
            everybody = {(each.pid, each.started) for each in helpers} | recorded | marked | servers
            for who in everybody | set(self.decoys.values()):
                kill(who)
            wait_gone([ProcessId(*who) for who in everybody], 1.0)
        if self.mount:
            subprocess.run(["umount", "-l", str(self.disk)], check=False)

    def _is_ours(self, process: ProcessId) -> bool:
        """Whether a process names this run's own folder: tmux servers, the fork server, commands."""
        try:
            text = Path(f"/proc/{process.pid}/environ").read_bytes()
        except OSError:
            return False
        return process.pid != os.getpid() and f"TMUX_TMPDIR={self.base}/tmux\0".encode() in text


def identity(pid: int) -> Identity:
    """A process, as the kernel tells it apart from a later one of that number."""
    return pid, int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def kill(who: Identity, number: int = signal.SIGKILL) -> bool:
    """Send a signal to exactly that process; False when it is gone."""
    try:
        handle = os.pidfd_open(who[0])
    except (ProcessLookupError, OSError):
        return False
    try:
        if not alive(who):
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def nudge_numbers(text: str) -> set[int]:
    """The numbers of the nudges that a text speaks of."""
    return {int(number) for number in re.findall(r"chaos nudge (\d+)", text)}
