"""Whatever an agent puts in the place of a file that it can write is its own run's trouble: the town works on."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.conftest import Place, kill_and_wait
from witness.journal import GroupState

# What a look may take beside an undisturbed one, on a machine that does other things as well.
_SECONDS = 2.0


def _empty(path: Path) -> None:
    path.touch()


def _link(path: Path) -> None:
    theirs = path.parent / f"{path.name}.theirs"
    theirs.write_text("kept")
    path.symlink_to(theirs)


def _linked_folder(path: Path) -> None:
    theirs = path.parent / f"{path.name}.folder"
    theirs.mkdir()
    (theirs / "kept").write_text("kept")
    path.symlink_to(theirs)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


def _wrong_types(path: Path) -> None:
    path.write_text(
        '{"reaper": [1], "keeper": {}, "agent": "x", "error": 3, "code": [], "pid": 1e999, "started": null,'
        ' "t": "x", "file": 1, "stage": [], "state": [[]], "timestamp": 7, "group": 1, "message": {}}\n'
    )


def _deep(path: Path) -> None:
    path.write_text("[" * 100_000)


def _foreign(path: Path) -> None:
    path.write_text("{}")
    os.chown(path, 65534, 65534)


POISON: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: None,
    "empty": _empty,
    "folder": Path.mkdir,
    "link": _link,
    "link to a folder": _linked_folder,
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "FIFO": os.mkfifo,
    "1 GB sparse": _sparse,
    "wrong types": _wrong_types,
    "deep": _deep,
    "foreign": _foreign,
}
# By the file: what it is below the town, with {run} and {session}.
FILES = [
    ".runtime/witness/runs/{run}/started.json",
    ".runtime/witness/runs/{run}/exit.json",
    ".runtime/witness/runs/{run}/beats/scope",
    ".runtime/witness/runs/{run}/beats",
    ".runtime/witness/runs/{run}/exits/scope.json",
    ".runtime/witness/runs/{run}/sidecars/scope.json",
    ".runtime/witness/runs/{run}/sidecars",
    ".runtime/witness/runs/{run}/logs",
    ".runtime/witness/runs/{run}/spool/events.jsonl",
    ".runtime/witness/runs/{run}/spool",
    ".runtime/witness/witness.json",
    ".runtime/witness/nursery.json",
    ".runtime/witness/tmux.json",
    ".runtime/nudge_queue/{session}",
    ".runtime/nudge_queue/{session}/1-a.json",
    ".runtime/nudge_queue/{session}/deliveries.jsonl",
    ".runtime/nudge_queue/{session}/done",
    ".runtime/nudge_queue/{session}/.lock",
    ".runtime/nudge_queue/{session}/dead-letter",
    ".runtime/nudge_queue/{session}/malformed",
    ".runtime/heartbeats/{session}.json",
    "settings/witness.yaml",
    "settings/config.json",
]
# What must be told, in a line that names it: (part of the file's path, kinds).
_PLAIN = ("folder", "link", "link to a device", "FIFO", "1 GB sparse", "wrong types", "deep")
TOLD = {
    "exits/scope.json": _PLAIN,
    "beats/scope": ("folder", "link", "link to a device", "FIFO", "1 GB sparse", "wrong types", "deep"),
    "settings/witness.yaml": ("folder", "link to a device", "FIFO", "1 GB sparse", "wrong types", "deep"),
}


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)


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
    helper = place.witness._reconciler.nursery.process()  # where its record is spoilt, nobody else finds it
    path = place.town.root / file.format(run=group.id.run, session=group.session)
    for kind in kinds:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove(path)
        POISON[kind](path)
        if "exits" in file and (sidecar := place.members("x")["scope"].process):
            place.kill(sidecar)  # what a sidecar ended with is read when it has
            due = True
        else:
            due = "exits" not in file
        began = time.monotonic()
        report = place.witness.patrol()
        listed = [each.id.polecat for each, _ in place.witness.polecats()]
        seconds = time.monotonic() - began
        if seconds > _SECONDS:
            wrong.append(f"{kind}: {seconds:.1f} s")
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
    if time.monotonic() - began > _SECONDS + 1:  # the grace of its settings
        wrong.append(f"nuke: {time.monotonic() - began:.1f} s")
    states = [place.witness.find(name, ended=True).state for name in ("x", "other")]
    if states != [GroupState.NUKED, GroupState.NUKED]:
        wrong.append(f"nuke: {states} {ended}")
    if helper:
        kill_and_wait((helper.pid, helper.started))
    if place.marked():
        wrong.append(f"left: {place.marked()}")
    assert not wrong, "\n".join(wrong)
