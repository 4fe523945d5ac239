"""The hand-over, run as people run it: the program as a process, with a PATH of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.stand_in import StandIn
from tests.scripts import with_our_packages

BASE = {"HOME": "/nonexistent", "TERM": "dumb"}


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A start script as pip writes it."""
    folder = tmp_path / "ours"
    folder.mkdir()
    script = folder / "gt"
    script.write_text(f"{with_our_packages()}from witness.cli import main\nmain()\n")
    script.chmod(0o755)
    return script


def _run(
    script: Path, *args: str, path: list[Path], stdin: bytes = b"", cwd: Path | None = None, **more: str
) -> subprocess.CompletedProcess[bytes]:
    environment = {**BASE, "PATH": os.pathsep.join(map(str, path)), **more}
    return subprocess.run([script, *args], env=environment, input=stdin, capture_output=True, cwd=cwd, check=False)


def test_a_foreign_command_is_handed_over_unchanged(ours: Path, tmp_path: Path) -> None:
    body = "sys.stdout.write(sys.stdin.read().upper()); sys.stderr.write('said'); sys.exit(42)"
    real = StandIn(tmp_path / "real", body)
    args = ["sling", "gt-1", "my rig", "--var", "a=$HOME;b", "", "--help", "--json", "*"]
    done = _run(ours, *args, path=[ours.parent, real.folder], stdin=b"words", cwd=tmp_path, GT_SESSION="gt-Toast")
    assert (done.returncode, done.stdout, done.stderr) == (42, b"WORDS", b"said")
    (call,) = real.calls
    assert call["args"] == args
    assert call["cwd"] == str(tmp_path)
    expected = {**BASE, "PATH": f"{ours.parent}:{real.folder}", "GT_SESSION": "gt-Toast"}
    # PWD is of the sh that reads the start script where our own path holds spaces.
    environment = {name: value for name, value in call["environment"].items() if name not in ("LC_CTYPE", "PWD")}
    assert environment == expected


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_no_variable_is_added_and_no_signal_is_left_ignored(ours: Path, tmp_path: Path) -> None:
    # Read by a shell, because Python itself sets LC_CTYPE and ignores SIGPIPE.
    folder = tmp_path / "real"
    folder.mkdir()
    (folder / "gt").write_text("#!/bin/sh\n/usr/bin/env\n/bin/grep SigIgn /proc/self/status\n")
    (folder / "gt").chmod(0o755)
    done = _run(ours, "prime", path=[folder])
    lines = done.stdout.decode().splitlines()
    assert {line.partition("=")[0] for line in lines[:-1]} - {"PWD", "SHLVL", "_", "OLDPWD"} == {"HOME", "TERM", "PATH"}
    assert int(lines[-1].split()[1], 16) & (1 << (signal.SIGPIPE - 1)) == 0


def test_it_becomes_the_real_one_so_signals_are_its_own(ours: Path, tmp_path: Path) -> None:
    real = StandIn(tmp_path / "real", "print('ready', flush=True); signal.pause()")
    environment = {**BASE, "PATH": str(real.folder)}
    with subprocess.Popen([ours, "mayor", "attach"], env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert real.calls[0]["pid"] == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM


@pytest.mark.parametrize("args", [["sling", "x"], ["version"], ["__complete", ""], ["--colour", "x"]])
def test_without_a_real_one_it_is_one_line_and_exit_2(ours: Path, tmp_path: Path, args: list[str]) -> None:
    wrapper = tmp_path / "wrapper"
    wrapper.mkdir()
    (wrapper / "gt").write_text('#!/bin/sh\nexec gt-witness "$@"\n')
    (wrapper / "gt").chmod(0o755)
    done = _run(ours, *args, path=[ours.parent, wrapper])
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.decode().count("\n") == 1
    assert args[0] in done.stderr.decode()


def test_help_and_slips_without_a_real_one(ours: Path, tmp_path: Path) -> None:
    assert b"Usage: gt [OPTIONS]" in _run(ours, "help", path=[tmp_path]).stdout
    assert b"Usage: gt molecule lint" in _run(ours, "help", "molecule", "lint", path=[tmp_path]).stdout
    assert b"did you mean polecat?" in _run(ours, "polcat", "list", path=[tmp_path]).stderr


def test_a_real_one_that_cannot_start(ours: Path, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "gt").write_text("#!/nonexistent/interpreter\n")
    (folder / "gt").chmod(0o755)
    done = _run(ours, "sling", path=[folder])
    assert done.returncode == 1
    assert b"cannot be started" in done.stderr


def test_our_own_commands_stay_ours(ours: Path, tmp_path: Path) -> None:
    real = StandIn(tmp_path / "real")
    done = _run(ours, "--help", path=[real.folder])
    assert done.returncode == 0
    assert b"polecat" in done.stdout
    assert _run(ours, "--version", path=[real.folder]).returncode == 0
    assert real.calls == []


@pytest.mark.parametrize(
    "args",
    [["molecule", "status"], ["init", "--no-such-flag"], ["molecule", "burn", "--dry-run"]],
)
def test_gas_towns_own_form_of_a_shared_command_is_handed_over(ours: Path, tmp_path: Path, args: list[str]) -> None:
    real = StandIn(tmp_path / "real", "sys.exit(9)")
    assert _run(ours, *args, path=[real.folder]).returncode == 9
    assert real.calls[0]["args"] == args


def test_a_group_alone_shows_our_help(ours: Path, tmp_path: Path) -> None:
    real = StandIn(tmp_path / "real")
    for args in ([], ["molecule"]):
        done = _run(ours, *args, path=[real.folder])
        assert done.returncode == 2
        assert b"Usage: gt" in done.stderr
    assert real.calls == []


def test_a_slip_in_a_command_that_only_we_have_stays_here(ours: Path, tmp_path: Path) -> None:
    real = StandIn(tmp_path / "real")
    for args in (["molecule", "lint", "--nosuch"], ["molecule", "vars"]):
        done = _run(ours, *args, path=[real.folder])
        assert done.returncode == 2
    assert real.calls == []


def test_nothing_is_imported_before_a_foreign_command_is_handed_over() -> None:
    # Gas Town calls gt in every hook of every agent: what is loaded here is paid for each time.
    program = (
        "import sys; before = set(sys.modules); from witness.cli import main; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {
        "witness", "witness.cli", "witness.cli.main", "witness.cli.commands", "witness.cli.exec_real_gt", "_signal",
        "__future__", "witness.version",
    }  # fmt: skip
