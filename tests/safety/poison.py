"""What an agent can put in the place of a file, and which files those are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path


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
    ".runtime/witness/forkserver.json",
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


def remove(path: Path) -> None:
    """Take away whatever stands there; a link goes itself."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)
