"""The pane's first process, run as tmux runs it, with real agents below."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.programs import BY_NAME, Record
from tests.waiting import until
from witness.files import replace_file
from witness.launch.pane import make_run_dir, read_started
from witness.process import ProcessId
from witness.process.exits import wait_gone
from witness.process.table import is_alive, look_up, read_table, send

REAPER = Path("witness/launch/reaper.py").resolve()
LINUX_ONLY = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has subreapers")


class Run:
    """One reaper with its agent.

    Args:
        folder: the run's folder.
        argv: the agent.
        more: other keys of ``launch.json``.
    """

    def __init__(self, folder: Path, argv: list[str], **more: Any) -> None:
        self.folder = folder / "run"
        make_run_dir(self.folder)
        launch = {"argv": argv, "cwd": str(folder), "environment": {"PATH": os.environ["PATH"]}, "grace": 0.3, **more}
        replace_file(self.folder / "launch.json", json.dumps(launch))
        os.mkfifo(self.folder / "started.fifo")
        self._fifo = os.open(self.folder / "started.fifo", os.O_RDONLY | os.O_NONBLOCK)
        self.terminal, inner = pty.openpty()
        self.reaper = subprocess.Popen(
            [sys.executable, "-S", "-I", "-c", _IN_TERMINAL, str(REAPER), str(self.folder)],
            stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
        )  # fmt: skip
        os.close(inner)
        assert select.select([self._fifo], [], [], 20)[0], "no report"
        self.report: dict[str, Any] = json.loads(os.read(self._fifo, 4096))

    def process(self, name: str) -> ProcessId:
        return ProcessId(*self.report[name])

    def exit(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "exit.json").read_text())
        return found

    def close(self) -> None:
        for row in read_table().values():
            if row.parent == self.reaper.pid:
                send(row.process, signal.SIGKILL)
        for name in ("agent", "keeper"):
            if name in self.report:
                send(self.process(name), signal.SIGKILL)
        self.reaper.kill()
        self.reaper.wait()
        os.close(self.terminal)
        os.close(self._fifo)


# As in a pane: the terminal is the session's own, and the reaper its first process.
_IN_TERMINAL = (
    "import fcntl,os,sys,termios;"
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execv(sys.executable, [sys.executable, '-S', '-I', *sys.argv[1:]])"
)
# An agent that writes each signal into a file, and ends at USR2.
_NOTES_SIGNALS = (
    "import os,signal,sys\n"
    "out = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n"
    "def note(n, f):\n"
    "    os.write(out, (signal.Signals(n).name + ' ').encode())\n"
    "    if n == signal.SIGUSR2: os._exit(7)\n"
    "for name in ('INT', 'TERM', 'HUP', 'QUIT', 'USR1', 'USR2'): signal.signal(getattr(signal, 'SIG' + name), note)\n"
    "os.write(out, b'up ')\n"
    "while True: signal.pause()\n"
)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    with ExitStack() as stack:

        def begin(*argv: str, **more: Any) -> Run:
            run = Run(tmp_path, list(argv), **more)
            stack.callback(run.close)
            return run

        yield begin


@pytest.mark.parametrize("code", [0, 1, 3, 42, 255])
def test_ends_with_the_agents_code(start: Callable[..., Run], code: int) -> None:
    run = start("sh", "-c", f"exit {code}")
    assert run.reaper.wait(20) == code
    assert run.exit() == {"code": code, "signal": 0, "hangup": False}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_signal_that_ended_the_agent_is_told(start: Callable[..., Run], number: int) -> None:
    run = start("sh", "-c", f"kill -{number} $$")
    assert run.reaper.wait(20) == 128 + number
    assert run.exit() == {"code": 128 + number, "signal": number, "hangup": False}


def test_who_is_who_is_told_in_file_and_fifo(start: Callable[..., Run]) -> None:
    run = start("sleep", "60")
    assert read_started(run.folder) == run.report
    assert run.process("reaper").pid == run.reaper.pid
    parents = {name: look_up(run.process(name).pid) for name in ("agent", "keeper")}
    assert parents["agent"]
    assert parents["keeper"]
    assert parents["agent"].parent == run.process("keeper").pid
    assert parents["keeper"].parent == run.process("reaper").pid
    assert all(is_alive(run.process(name)) for name in ("reaper", "keeper", "agent"))


def test_the_file_with_the_agents_environment_is_gone_before_the_agent_starts(start: Callable[..., Run]) -> None:
    run = start("sh", "-c", f"ls {'{}'} > listing; exec sleep 60".format("run"))
    until(lambda: (run.folder.parent / "listing").exists() and (run.folder.parent / "listing").stat().st_size > 0, "")
    assert "launch.json" not in (run.folder.parent / "listing").read_text().split()
    assert not (run.folder / "launch.json").exists()


def test_odd_values_reach_the_agent_unchanged(start: Callable[..., Run], tmp_path: Path) -> None:
    odd = {
        "PATH": os.environ["PATH"],
        "A": "two words\nand a line",
        "B": os.fsdecode(b"\xff\xfe"),
        "C": "",
        "D": "żółw =",
    }
    run = start(
        "sh", "-c", 'cat /proc/$$/environ > got; printf "%s" "$1" > arg', "sh", "a 'b' $c\n\"d\" 🐢", environment=odd
    )
    assert run.reaper.wait(20) == 0
    got = dict(each.split(b"=", 1) for each in (tmp_path / "got").read_bytes().split(b"\0") if each)
    assert {name: got[name.encode()] for name in odd} == {name: os.fsencode(value) for name, value in odd.items()}
    assert (tmp_path / "arg").read_text() == "a 'b' $c\n\"d\" 🐢"


def test_nothing_of_the_caller_but_the_panes_own_variables_is_added(
    start: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "x")
    monkeypatch.setenv("TERM", "screen-256color")
    run = start("sh", "-c", "exec cat /proc/self/environ > got")
    assert run.reaper.wait(20) == 0
    names = {each.split(b"=")[0] for each in (tmp_path / "got").read_bytes().split(b"\0") if each}
    assert b"TERM" in names
    assert b"SECRET_OF_THE_SERVER" not in names


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["/no/such/program"], "/no/such/program: No such file or directory"),
        (["/etc/passwd"], "/etc/passwd: Permission denied"),
        (["no-such-program-anywhere"], "no-such-program-anywhere: No such file or directory"),
    ],
)
def test_an_agent_that_cannot_be_started(start: Callable[..., Run], argv: list[str], reason: str) -> None:
    run = start(*argv)
    assert run.report == {"error": reason}
    assert run.reaper.wait(20) == 127


def test_a_working_directory_that_is_gone(start: Callable[..., Run], tmp_path: Path) -> None:
    run = start("true", cwd=str(tmp_path / "nowhere"))
    assert "No such file" in run.report["error"]
    assert run.reaper.wait(20) == 127


# -- signals --------------------------------------------------------------------------------------------------------


def _noting(start: Callable[..., Run], tmp_path: Path) -> tuple[Run, Callable[[], str]]:
    log = tmp_path / "signals"
    run = start(sys.executable, "-S", "-I", "-c", _NOTES_SIGNALS, str(log))
    until(lambda: log.exists() and "up" in log.read_text(), "the agent does not listen")
    return run, log.read_text


@pytest.mark.parametrize("name", ["TERM", "INT", "QUIT", "USR1", "HUP"])
def test_signals_to_the_reaper_reach_the_agent_once(start: Callable[..., Run], tmp_path: Path, name: str) -> None:
    run, told = _noting(start, tmp_path)
    os.kill(run.reaper.pid, getattr(signal, f"SIG{name}"))
    until(lambda: f"SIG{name}" in told(), "not passed on")
    os.kill(run.reaper.pid, signal.SIGUSR2)
    assert run.reaper.wait(20) == 7
    assert told().split() == ["up", f"SIG{name}", "SIGUSR2"]


@pytest.mark.parametrize(("key", "name"), [(b"\x03", "SIGINT"), (b"\x1c", "SIGQUIT")])
def test_a_key_on_the_terminal_is_not_doubled(start: Callable[..., Run], tmp_path: Path, key: bytes, name: str) -> None:
    run, told = _noting(start, tmp_path)
    os.write(run.terminal, key)
    until(lambda: name in told(), "the terminal's signal did not come")
    os.kill(run.reaper.pid, signal.SIGUSR2)
    assert run.reaper.wait(20) == 7
    assert told().split() == ["up", name, "SIGUSR2"]


def test_ctrl_z_stops_nobody(start: Callable[..., Run], tmp_path: Path) -> None:
    """Nobody stands above the pane who could wake it again."""
    run, told = _noting(start, tmp_path)
    os.write(run.terminal, b"\x1a")
    os.kill(run.reaper.pid, signal.SIGUSR1)
    until(lambda: "SIGUSR1" in told(), "the agent does not answer any more")
    os.kill(run.reaper.pid, signal.SIGUSR2)
    assert run.reaper.wait(20) == 7


def test_a_terminal_that_goes_away_is_told(start: Callable[..., Run]) -> None:
    run = start("sleep", "60")
    os.close(run.terminal)
    assert run.reaper.wait(20) == 128 + signal.SIGHUP
    assert run.exit() == {"code": 129, "signal": 1, "hangup": True}
    run.terminal = os.open(os.devnull, os.O_RDONLY)


# -- orphans --------------------------------------------------------------------------------------------------------


def _awkward(start: Callable[..., Run], tmp_path: Path, name: str) -> tuple[Run, Record]:
    record = Record(tmp_path, name)
    run = start(*BY_NAME[name].argv(record.path))
    record.wait_stands()
    return run, record


@LINUX_ONLY
@pytest.mark.parametrize("name", ["daemon", "daemon-bare", "daemon-renamed", "nohup", "stubborn", "twins-apart"])
def test_what_the_agent_leaves_behind_is_ended_with_it(start: Callable[..., Run], tmp_path: Path, name: str) -> None:
    run, record = _awkward(start, tmp_path, name)
    try:
        send(run.process("agent"), signal.SIGKILL)
        assert run.reaper.wait(20) == 137
        assert not record.survivors()
    finally:
        record.end()


@LINUX_ONLY
def test_a_daemon_falls_to_the_keeper(start: Callable[..., Run], tmp_path: Path) -> None:
    run, record = _awkward(start, tmp_path, "daemon-bare")
    try:
        parents = {row.parent for pid, _ in record.living() if (row := look_up(pid))}
        assert run.process("keeper").pid in parents
    finally:
        record.end()


@LINUX_ONLY
def test_the_keeper_is_killed_and_the_reaper_takes_over(start: Callable[..., Run], tmp_path: Path) -> None:
    run, record = _awkward(start, tmp_path, "daemon-bare")
    try:
        send(run.process("keeper"), signal.SIGKILL)
        assert not wait_gone([run.process("keeper")], 10)
        assert is_alive(run.process("agent"))
        assert is_alive(run.process("reaper"))
        until(lambda: _parent(run.process("agent")) == run.reaper.pid, "it did not fall to the reaper", every=0.01)
        send(run.process("agent"), signal.SIGTERM)
        run.reaper.wait(20)
        assert not record.survivors()
        assert run.exit()["signal"] == signal.SIGTERM
    finally:
        record.end()


@LINUX_ONLY
def test_the_reaper_is_killed_and_the_keeper_ends_the_rest(start: Callable[..., Run], tmp_path: Path) -> None:
    """With its first process the session loses its terminal, so the agent is hung up on."""
    run, record = _awkward(start, tmp_path, "daemon-renamed")
    try:
        run.reaper.kill()
        run.reaper.wait()
        assert not wait_gone([run.process("keeper")], 10)
        assert run.exit() == {"code": 129, "signal": 1, "hangup": True}
        assert not record.survivors()
    finally:
        record.end()


@LINUX_ONLY
def test_keeper_and_agent_are_killed_at_once(start: Callable[..., Run], tmp_path: Path) -> None:
    run, record = _awkward(start, tmp_path, "daemon-renamed")
    try:
        os.kill(run.reaper.pid, signal.SIGSTOP)
        send(run.process("keeper"), signal.SIGKILL)
        send(run.process("agent"), signal.SIGKILL)
        assert not wait_gone([run.process("agent"), run.process("keeper")], 10)
        os.kill(run.reaper.pid, signal.SIGCONT)
        assert run.reaper.wait(20) == 137
        assert run.exit() == {"code": 137, "signal": 9, "hangup": False}
        assert not record.survivors()
    finally:
        record.end()


def test_both_halves_are_killed_and_the_agent_lives(start: Callable[..., Run]) -> None:
    """Nobody of ours is left to hold it; the Witness finds it by its record and its marker."""
    run = start("sh", "-c", "trap '' HUP; touch deaf; exec sleep 60")
    until((run.folder.parent / "deaf").exists, "the agent did not come up")
    for name in ("keeper", "reaper"):
        send(run.process(name), signal.SIGKILL)
    run.reaper.wait()
    assert is_alive(run.process("agent"))
    assert not (run.folder / "exit.json").exists()


def _parent(process: ProcessId) -> int:
    row = look_up(process.pid)
    return row.parent if row else 0
