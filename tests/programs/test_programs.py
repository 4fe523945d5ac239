"""The awkward programs stand, live, and outlive a TERM to their leader; none outlives its limit."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.programs import BY_NAME, PROGRAMS, Program, alive, missing, recording


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_stands_and_survives_the_end_of_its_leader(program: Program, tmp_path: Path) -> None:
    if missing(program):
        pytest.skip(missing(program))
    with recording(tmp_path) as record:
        leader = subprocess.Popen(program.argv(record.path), start_new_session=True)
        try:
            stood = record.wait_stands()
            assert len(stood) >= program.least
            assert leader.pid in {pid for pid, _ in record.living()}
            # What a terminal does when it is closed, and what kill does: the leader alone is told.
            os.kill(leader.pid, signal.SIGTERM)
            if program.name not in ("stubborn", "late"):
                leader.wait(10)
            assert record.living(), "TERM to the leader alone ends everything: nothing awkward about it"
        finally:
            leader.kill()
            leader.wait(10)


@pytest.mark.parametrize("name", ["stopped", "twins-apart", "chain", "daemon-renamed", "headless"])
def test_life_is_limited(name: str, tmp_path: Path) -> None:
    with recording(tmp_path) as record:
        leader = subprocess.Popen(BY_NAME[name].argv(record.path, life=1.5), start_new_session=True)
        record.wait_stands()
        leader.wait(10)
        for identity in record.living():
            with suppress(ProcessLookupError):
                ended = os.pidfd_open(identity[0])
                assert select.select([ended], [], [], 10)[0], identity
                os.close(ended)
        assert not record.survivors()


def test_defunct_is_dead() -> None:
    child = subprocess.Popen(["true"])
    ticks = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert "Z" in Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]
    assert not alive((child.pid, ticks))
    child.wait()


def test_another_process_of_the_same_pid_is_not_meant() -> None:
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    assert alive((os.getpid(), ticks))
    assert not alive((os.getpid(), ticks + 1))
