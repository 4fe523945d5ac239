"""What an agent, or anybody, can write is a hint: nobody dies for it alone, and nobody is spared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.programs import alive
from tests.real.conftest import SETTINGS, Place, kill_and_wait
from tests.supervise.command import gt
from tests.waiting import until
from witness.api import Witness
from witness.ipc.serving import serving_process
from witness.launch import town_witness
from witness.names import MARKER_VARIABLE
from witness.process import ProcessId
from witness.process.table import identify, is_alive
from witness.tmux import Tmux

AGENT = ["sleep", "60"]


@contextmanager
def somebody(**environment: str) -> Iterator[ProcessId]:
    """A process of the user's own."""
    child = subprocess.Popen(["sleep", "60"], env={"PATH": os.environ["PATH"], **environment}, start_new_session=True)
    try:
        process = identify(child.pid)
        assert process
        yield process
    finally:
        child.kill()
        child.wait()


def test_a_forged_report_ends_nobody(place: Place) -> None:
    run = place.spawn("x", AGENT).group.run
    with somebody() as victim:
        numbers = [victim.pid, victim.started]
        path = place.town.run_dir(run) / "started.json"
        path.write_text(json.dumps({"reaper": numbers, "keeper": numbers, "agent": numbers}))
        (result,) = place.witness.nuke(["x"])
        assert not result.result or not result.result.survivors
        assert is_alive(victim)
    assert not place.marked()


def test_a_living_pid_in_a_file_is_no_witness(place: Place) -> None:
    with somebody() as other:
        (place.town.make_runtime() / "witness.json").write_text(
            json.dumps({"pid": other.pid, "started": other.started})
        )
        assert town_witness.witness_process(place.town) is None
        assert "runs in" in gt(place.work, "witness", "status").stdout
        place.spawn("x", AGENT, daemon=True)
        process = town_witness.witness_process(place.town)
        assert process
        assert process != other
        # While one runs, too, the file says nothing.
        (place.town.runtime / "witness.json").write_text(json.dumps({"pid": other.pid, "started": other.started}))
        assert town_witness.witness_process(place.town) == process


def test_a_polecat_cannot_make_itself_one_of_us(place: Place) -> None:
    """It writes its own pid into the files of the Witness and the fork server."""
    (place.work / "issue.md").write_text("---\nfiles: [a/**]\n---\n")
    place.spawn("x", ["sh", "-c", "sleep 60 & exec sleep 60"], sidecars="scope:issue.md", daemon=True)
    agent = place.members("x")["agent"].process
    assert agent
    for name in ("forkserver.json", "witness.json"):
        (place.town.runtime / name).write_text(json.dumps({"pid": agent.pid, "started": agent.started}))
    done = gt(place.work, "polecat", "nuke", "x", "--json")
    assert done.returncode == 0, done.stderr
    assert not is_alive(agent)
    assert not place.marked()


SERVES = """
import fcntl, socket, sys
held = open("x.lock", "w")
if sys.argv[1] == "locks":
    fcntl.flock(held, fcntl.LOCK_EX)
server = socket.socket(socket.AF_UNIX)
server.bind("x.sock")
server.listen()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("does", "marker", "believed"), [("locks", "", True), ("locks not", "", False), ("locks", "main/x/r1", False)]
)
def test_who_serves_our_socket_is_ours_with_the_lock_and_outside_of_every_polecat(
    tmp_path: Path, does: str, marker: str, believed: bool
) -> None:
    environment = {"PATH": os.environ["PATH"]} | ({MARKER_VARIABLE: marker} if marker else {})
    with subprocess.Popen(
        [sys.executable, "-S", "-c", SERVES, does],
        cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        assert server.stdin
        assert server.stdout
        assert server.stdout.readline() == "ready\n"
        found = serving_process(tmp_path, "x.sock", "x.lock")
        server.stdin.close()
    assert (found.pid if found else 0) == (server.pid if believed else 0)


def test_a_stray_export_ends_nobody(place: Place) -> None:
    """A window that the user opens on the town's server, and a process of a shell with the variable in it."""
    group = place.spawn("x", AGENT).group
    tmux = Tmux(*place.town.tmux_place)
    tmux.run("set-environment", "-g", MARKER_VARIABLE, group.marker)
    tmux.run("new-session", "-d", "-s", "mine", "sleep", "60")
    pane = next(each for each in tmux.panes() if each.session == "mine")
    mine = identify(pane.pid)
    assert mine
    with somebody(**{MARKER_VARIABLE: group.marker}) as exported:
        assert not place.witness.patrol().errors
        place.witness.nuke(["x"])
        assert is_alive(mine)
        assert is_alive(exported)
        report = place.witness.patrol()
        assert not report.zombies, "they are no orphans of the run either"
        assert is_alive(mine)
        assert is_alive(exported)
    kill_and_wait((mine.pid, mine.started))


def test_a_child_with_another_marker_ends_with_its_group(place: Place) -> None:
    script = f"{MARKER_VARIABLE}=main/other/none sleep 61 & echo $! > child; exec sleep 60"
    place.spawn("x", ["sh", "-c", script])
    until(lambda: (place.work / "child").exists() and (place.work / "child").read_text() != "", "no child")
    child = identify(int((place.work / "child").read_text()))
    assert child
    place.witness.patrol()
    run = place.witness.find("x").id.run
    assert child in place.witness.journal.groups.seen(run)
    place.witness.nuke(["x"])
    assert not alive((child.pid, child.started))


def test_a_journal_that_is_taken_away_is_made_anew_from_what_lives(make_place: Callable[..., Place]) -> None:
    place = make_place(settings=SETTINGS + "patrol_interval: 100ms\nbackoff_base: 10ms\n")
    (place.work / "issue.md").write_text("---\nfiles: [a/**]\n---\n")
    spawned = place.spawn("x", AGENT, sidecars="scope:issue.md", daemon=True)
    place.witness.close()
    for path in place.town.runtime.glob("witness.db*"):
        path.unlink()
    log = place.town.runtime / "witness.log"
    until(lambda: "recorded anew from what lives: main/x" in log.read_text(), "the Witness did not say so")
    place.witness = Witness(place.town)
    first = place.members("x")["scope"].process
    assert place.members("x")["agent"].process == spawned.agent
    place.kill(first)
    until(lambda: place.members("x")["scope"].process not in (None, first), "it is not supervised")
