"""A spawn that is told to end half-way ends what it has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from witness.launch.pane import read_started
from witness.names import MARKER_VARIABLE
from witness.process.table import Markers, read_table
from witness.testing import make_town, supervised

pytestmark = pytest.mark.xdist_group("tmux")


def wait_for_line(path: Path) -> None:
    with path.open() as fifo:
        assert fifo.readline()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_stays_of_a_spawn_that_is_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    town = make_town(tmp_path / "town")
    (town.root / "settings").mkdir()
    (town.root / "settings" / "witness.yaml").write_text("spawn_settle: 50s\n")
    os.mkfifo(tmp_path / "begun")
    with supervised(town) as witness:
        # The agent tells that it runs; the spawn then waits for as long as it says to see whether it goes on running.
        agent = f"sh -c 'echo begun >{tmp_path}/begun; sleep 600'"
        command = [sys.executable, "-m", "witness.cli", "polecat", "spawn", "x", "--agent", agent]
        spawn = subprocess.Popen(command, cwd=town.root / "repo", stderr=subprocess.PIPE, text=True)
        wait_for_line(tmp_path / "begun")
        spawn.send_signal(number)
        _, said = spawn.communicate(timeout=40)
        assert spawn.returncode == (130 if number == signal.SIGINT else 128 + number), said
        assert said.strip() == ""
        assert witness.polecats() == []
        last = witness.find("x", ended=True)
        assert read_started(town.run_dir(last.id.run))
        assert last.id.marker not in Markers().read(read_table()).values(), f"somebody carries its {MARKER_VARIABLE}"
