"""A session tells what its tests left and ends it, and lets them end what they started when it is ended early."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil

_ROOT = Path(__file__).parents[1]


def _session(tmp_path: Path, *lines: str) -> subprocess.Popen[str]:
    """A session of its own with one test."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text("\n".join(["import os, signal, subprocess, pytest", *lines]) + "\n")
    plugins = ["-p", "tests.conftest", "-p", "no:cacheprovider"]
    place = ["-c", str(tmp_path / "pytest.ini"), "--rootdir", str(tmp_path), "--basetemp", str(tmp_path / "base")]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, *place, str(tmp_path / "test_it.py")]
    return subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_process_that_stays_is_named_with_its_test_and_ended(tmp_path: Path) -> None:
    session = _session(
        tmp_path,
        "def test_it():",
        "    left.append(subprocess.Popen(['sleep', '60'], start_new_session=True))",
        "left = []",
    )
    said, _ = session.communicate(timeout=50)
    assert session.returncode == 1, said
    found = re.search(r"left behind:\n  (\d+) sleep 60 \(of .*test_it.py::test_it", said)
    assert found, said
    assert not psutil.pid_exists(int(found[1])) or psutil.Process(int(found[1])).status() == psutil.STATUS_ZOMBIE


def test_a_session_that_is_told_to_end_lets_its_fixtures_end_what_they_started(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "up")
    session = _session(
        tmp_path,
        "@pytest.fixture",
        "def child():",
        "    process = subprocess.Popen(['sleep', '60'])",
        "    yield process",
        "    process.kill(); process.wait()",
        "def test_it(child):",
        f"    open({str(tmp_path / 'up')!r}, 'w').write(str(child.pid))",
        "    signal.pause()",
    )
    child = int((tmp_path / "up").read_text())
    session.send_signal(signal.SIGTERM)
    said, _ = session.communicate(timeout=50)
    assert session.returncode == 2, said
    assert not psutil.pid_exists(child)
