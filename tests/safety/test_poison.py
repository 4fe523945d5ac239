"""Whatever an agent puts in the place of a file that it can write is its own run's trouble: the town works on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from tests.real.conftest import Place, kill_and_wait
from tests.safety.poison import FILES, POISON, remove
from witness.delivery import queue_files
from witness.journal import GroupState
from witness.launch import town_witness
from witness.supervise.reconcile import PatrolReport

# What a look may take. A busy machine makes one look late; what waits for a file is late always.
_SECONDS, _LOOKS = 1.0, 3


# What must be told, in a line that names it: (part of the file's path, kinds).
_PLAIN = ("folder", "link", "link to a device", "FIFO", "1 GB sparse", "wrong types", "deep")
TOLD = {
    "exits/scope.json": _PLAIN,
    "beats/scope": ("folder", "link", "link to a device", "FIFO", "1 GB sparse", "wrong types", "deep"),
    "settings/witness.yaml": ("folder", "link to a device", "FIFO", "1 GB sparse", "wrong types", "deep"),
}


def _look(place: Place) -> tuple[PatrolReport, list[str], float]:
    """A patrol's report, the polecats that are listed after it, and how many seconds both took."""
    began = time.monotonic()
    report = place.witness.patrol()
    listed = [each.id.polecat for each, _ in place.witness.polecats()]
    return report, listed, time.monotonic() - began


@pytest.mark.timeout(120)
@pytest.mark.parametrize("file", FILES)
def test_the_town_works_on(make_place: Callable[..., Place], file: str) -> None:
    place = make_place(file.replace("/", "-").replace("{", "").replace("}", ""))
    (place.work / "issue.md").write_text("---\nfiles: [a/**]\n---\n")
    place.spawn("other", ["sleep", "600"])
    kinds = [kind for kind in POISON if kind != "foreign" or os.geteuid() == 0]
    wrong: list[str] = []
    place.spawn("x", ["sleep", "600"], sidecars="scope:issue.md")
    group = place.witness.find("x")
    helper = place.fork_server()  # where its record is spoilt, nobody else finds it
    path = place.town.root / file.format(run=group.id.run, session=group.session)
    for kind in kinds:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove(path)
        POISON[kind](path)
        if "exits" in file and (sidecar := place.members("x")["scope"].process):
            place.kill(sidecar)  # what a sidecar ended with is read when it has
            due = True
        else:
            due = "exits" not in file
        report, listed, seconds = _look(place)
        if seconds > _SECONDS and (least := min(_look(place)[2] for _ in range(_LOOKS - 1))) > _SECONDS:
            wrong.append(f"{kind}: {least:.1f} s")
        if "other" not in listed:
            wrong.append(f"{kind}: {listed}")
        lines = [line for line in report.errors if "\n" in line]
        if lines:
            wrong.append(f"{kind}: more than a line: {lines}")
        for part, told in TOLD.items():
            if due and file.endswith(part) and kind in told and not any(path.name in line for line in report.errors):
                wrong.append(f"{kind}: nothing told of {path.name}: {report.errors}")
        for kept in (path.parent / f"{path.name}.theirs", path.parent / f"{path.name}.folder" / "kept"):
            if kept.exists() and kept.read_text() != "kept":
                wrong.append(f"{kind}: {kept.name} was written")
        if kind == "link to a folder" and path.parent.exists() and path.parent.is_dir():
            theirs = path.parent / f"{path.name}.folder"
            if theirs.exists() and sorted(each.name for each in theirs.iterdir()) != ["kept"]:
                wrong.append(f"{kind}: {[each.name for each in theirs.iterdir()]} in the folder that it leads to")
    began = time.monotonic()
    ended = place.witness.nuke(["x", "other"])
    if time.monotonic() - began > _SECONDS + 2:  # the grace of its settings
        wrong.append(f"nuke: {time.monotonic() - began:.1f} s")
    states = [place.witness.find(name, ended=True).state for name in ("x", "other")]
    if states != [GroupState.NUKED, GroupState.NUKED]:
        wrong.append(f"nuke: {states} {ended}")
    if helper:
        kill_and_wait((helper.pid, helper.started))
    if place.marked():
        wrong.append(f"left: {place.marked()}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", ["folder", "link to a folder", "FIFO"])
def test_an_end_is_finished_whatever_stands_in_the_runs_folder(make_place: Callable[..., Place], kind: str) -> None:
    """What a living run alone needs is taken away at its end; where that cannot be, nothing else is left undone."""
    place = make_place()
    spawned = place.spawn("x", ["sleep", "600"])
    run_dir = place.town.run_dir(spawned.group.run)
    for name in ("launch.json", "started.fifo", "screen.txt"):
        remove(run_dir / name)
        POISON[kind](run_dir / name)
    place.witness.nudge("x", "nobody will hear this")
    (ended,) = place.witness.nuke(["x"])
    assert ended.result
    assert place.witness.find("x", ended=True).state is GroupState.NUKED
    assert queue_files.waiting(str(place.town.queue_dir(spawned.session))) == []


@pytest.mark.parametrize("kind", ["folder", "link to a folder", "FIFO", "wrong types"])
def test_a_witness_and_its_fork_server_start_whatever_stands_in_their_places(
    make_place: Callable[..., Place], kind: str
) -> None:
    place = make_place()
    (place.work / "issue.md").write_text("---\nfiles: [a/**]\n---\n")
    for name in ("witness.sock", "witness.json", "forkserver.sock", "forkserver.json"):
        place.town.make_runtime()
        remove(place.town.runtime / name)
        POISON[kind](place.town.runtime / name)
    spawned = place.spawn("x", ["sleep", "600"], daemon=True, sidecars="scope:issue.md")
    assert town_witness.witness_process(place.town)
    assert spawned.sidecars[0].process
    assert place.witness.find("x").state is GroupState.RUNNING
    assert place.witness.stop()
    assert not (place.town.runtime / "witness.sock").exists()
