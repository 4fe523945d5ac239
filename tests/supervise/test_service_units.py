"""What cron and the services are given, and that it works with nothing but what they give."""

from __future__ import annotations

import configparser
import os
import plistlib
import shlex
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.conftest import Place
from tests.supervise.command import GT, gt
from tests.waiting import until
from witness.config.town import Town
from witness.daemon import service_units
from witness.errors import WitnessError
from witness.journal import GroupState
from witness.launch import town_witness
from witness.process.table import is_alive

ODD = "a town, 100% 'odd' & $HOME"


def _town(tmp_path: Path) -> Town:
    return Town.init(tmp_path / ODD)


def _as_cron_runs(line: str) -> str:
    """The command of a crontab line, as cron hands it to the shell."""
    command = line.split(" ", 5)[5].rstrip("\n")
    return command.replace(r"\%", "%")


def test_the_cron_line_patrols_under_env_i(make_place: Callable[..., Place]) -> None:
    place = make_place(ODD)
    (place.work / "issue.md").write_text("only `a/**`\n")
    spawned = place.spawn("x", ["sleep", "60"], sidecars="scope:issue.md")
    place.kill(spawned.agent)
    shown = gt(place.work, "witness", "install", "--cron")
    assert shown.returncode == 0, shown.stderr
    line, boot = shown.stdout.splitlines()
    assert boot.startswith("@reboot ")
    assert boot.split(" ", 1)[1] == line.split(" ", 5)[5], "the same at boot"
    cron = ["env", "-i", "HOME=/", "LOGNAME=x", "SHELL=/bin/sh", "PATH=/usr/bin:/bin"]
    done = subprocess.run(
        [*cron, "/bin/sh", "-c", _as_cron_runs(line)],
        cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=50,
    )  # fmt: skip
    log = (place.town.runtime / "cron.log").read_text()
    assert (done.returncode, done.stderr) == (0, ""), log
    assert "nuked 1" in log
    assert place.witness.find("x", ended=True).state is GroupState.NUKED
    assert not place.marked()


def test_the_systemd_unit_is_well_formed(tmp_path: Path) -> None:
    town = _town(tmp_path)
    made = service_units.unit(town, "systemd", tmp_path)
    assert made.path == tmp_path / ".config" / "systemd" / "user" / f"gt-witness-{town.socket}.service"
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(made.text)
    service = parser["Service"]
    assert service["KillMode"] == "process"
    assert service["Restart"] == "always"
    assert (service["Type"], service["Delegate"], service["WatchdogSec"]) == ("notify", "yes", "120")
    assert parser["Unit"]["StartLimitIntervalSec"] == "0"
    assert service["EnvironmentFile"] == "-%h/.config/gt-witness/environment"
    assert "enable-linger" in made.enable
    if analyze := shutil.which("systemd-analyze"):
        file = tmp_path / "x.service"
        file.write_text(made.text)
        done = subprocess.run([analyze, "verify", "--user", file], capture_output=True, text=True, check=False)
        assert str(file) not in done.stderr, done.stderr
    assert service["WorkingDirectory"] == str(town.root).replace("%", "%%")
    words = shlex.split(service["ExecStart"].replace("%%", "%").replace("$$", "$"))
    assert words[1:] == ["-P", "-m", "witness.cli", "witness", "run"]
    assert Path(words[0]).is_absolute()
    assert f"GT_TOWN_ROOT={town.root}".replace("%", "%%") in made.text


def test_what_the_systemd_unit_starts_is_a_witness(place: Place) -> None:
    made = service_units.unit(place.town, "systemd", place.work)
    lines = dict(line.split("=", 1) for line in made.text.splitlines() if line.startswith(("ExecStart", "WorkingDir")))
    environment = [
        shlex.split(line.split("=", 1)[1])[0] for line in made.text.splitlines() if line.startswith("Environment=")
    ]
    argv = ["env", "-i", *environment, *shlex.split(lines["ExecStart"])]
    child = subprocess.Popen(argv, cwd=lines["WorkingDirectory"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: town_witness.witness_process(place.town) is not None, "no Witness came up")
        spawned = place.spawn("x", ["sleep", "60"], daemon=True)
        child.terminate()
        assert child.wait(20) == 0
        assert is_alive(spawned.agent)
    finally:
        child.kill()
        child.wait()


def test_it_tells_its_service_manager_that_it_is_ready_and_that_it_lives(place: Place, tmp_path: Path) -> None:
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(30)
        # Nothing is due for an hour, and the watchdog wants to hear within a second.
        settings = place.town.root / "settings" / "witness.yaml"
        settings.write_text(settings.read_text() + "patrol_interval: 1h\n")
        environment = {**os.environ, "NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "1000000"}
        child = subprocess.Popen(
            [*GT, "witness", "run"], cwd=place.town.root, env=environment, stderr=subprocess.DEVNULL
        )
        try:
            heard = [manager.recv(100) for _ in range(5)]
            assert heard[0] == b"READY=1"
            assert set(heard[1:]) == {b"WATCHDOG=1"}
        finally:
            child.terminate()
            assert child.wait(20) == 0


def test_a_unit_takes_over_from_a_witness_in_the_background(place: Place) -> None:
    spawned = place.spawn("x", ["sleep", "60"], daemon=True)
    before = town_witness.witness_process(place.town)
    child = subprocess.Popen([*GT, "witness", "run"], cwd=place.town.root, stderr=subprocess.DEVNULL)
    try:
        until(lambda: town_witness.witness_process(place.town) not in (None, before), "nobody took over")
        assert is_alive(spawned.agent)
        # Two that a manager keeps do not drive each other away.
        second = gt(place.town.root, "witness", "run")
        assert (second.returncode, "another Witness" in second.stderr) == (1, True)
    finally:
        child.terminate()
        assert child.wait(20) == 0


def test_the_crons_log_does_not_grow_for_ever(tmp_path: Path) -> None:
    town = _town(tmp_path)
    town.make_runtime()
    log = town.runtime / "cron.log"
    log.write_bytes(b"x" * (2 << 20))
    line = service_units.unit(town, "cron").text.splitlines()[0]
    subprocess.run(["/bin/sh", "-c", _as_cron_runs(line)], check=True, timeout=50)
    assert log.stat().st_size < 1000


def test_the_launchd_job_is_a_property_list(tmp_path: Path) -> None:
    town = _town(tmp_path)
    made = service_units.unit(town, "launchd", tmp_path)
    job = plistlib.loads(made.text.encode())
    assert job["ProgramArguments"][1:] == ["-P", "-m", "witness.cli", "witness", "run"]
    assert job["EnvironmentVariables"]["GT_TOWN_ROOT"] == str(town.root)
    assert job["KeepAlive"] is True
    assert job["AbandonProcessGroup"] is True
    assert made.enable.startswith("launchctl bootstrap gui/$(id -u) ")
    assert made.path == tmp_path / "Library" / "LaunchAgents" / f"{job['Label']}.plist"


@pytest.mark.parametrize("kind", service_units.KINDS)
def test_nothing_of_the_caller_but_the_socket_is_in_a_unit(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX", "/tmp/somebodys-tmux,1,2")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("PATH", f"/somebodys/path:{os.environ['PATH']}")
    text = service_units.unit(_town(tmp_path), kind, tmp_path).text
    assert "somebodys" not in text
    assert "sk-secret" not in text
    assert "GT_TMUX_SOCKET" not in text
    monkeypatch.setenv("GT_TMUX_SOCKET", "chosen")
    assert "chosen" in service_units.unit(_town(tmp_path), kind, tmp_path).text


@pytest.mark.parametrize("kind", ["systemd", "launchd"])
def test_write_makes_the_file_and_says_what_to_do(kind: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place.work))
    done = gt(place.work, "witness", "install", f"--{kind}", "--write")
    assert done.returncode == 0, done.stderr
    made = service_units.unit(place.town, kind, place.work)
    assert made.path
    assert made.path.read_text() == made.text
    assert made.enable in done.stdout


def _crontab(folder: Path, present: str | None) -> Path:
    """A crontab program that keeps its table in a file."""
    table = folder / "table"
    if present is not None:
        table.write_text(present)
    program = folder / "crontab"
    place = shlex.quote(str(table))
    program.write_text(
        f'#!/bin/sh\nif [ "$1" != -l ]; then exec cat >{place}; fi\n'
        f'cat {place} 2>/dev/null || {{ echo "no crontab for x" >&2; exit 1; }}\n'
    )
    program.chmod(0o755)
    return table


@pytest.mark.parametrize("present", [None, "", "MAILTO=me\n0 1 * * * other job\n"])
def test_write_adds_one_line_to_the_crontab_however_often(
    present: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = _town(tmp_path)
    table = _crontab(tmp_path, present)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for _ in range(2):
        service_units.write(town, service_units.unit(town, "cron"))
    assert table.read_text() == (present or "") + service_units.unit(town, "cron").text


def test_no_crontab_program_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    town = _town(tmp_path)
    made = service_units.unit(town, "cron")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WitnessError, match="no crontab program"):
        service_units.write(town, made)


def test_say_by_what(place: Place) -> None:
    done = gt(place.work, "witness", "install")
    assert done.returncode == 2
    assert "--cron, --systemd or --launchd" in done.stderr
