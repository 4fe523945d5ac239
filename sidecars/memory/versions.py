"""A memory in git: joining two versions of its file, and telling git to do so.

git knows nothing of a memory's ids, so two branches that both remembered something leave conflict marks in one JSON
text. The driver joins them by id instead. Its name and command stand in the clone's own configuration, as git wants it
for everything that runs a program; which files it is for stands in the project.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sidecars.memory.join import has_conflict_marks, join, sides_of
from sidecars.memory.lenient_reader import parse, read_sidecar
from sidecars.memory.paths import SUFFIX, sidecars_folder
from sidecars.memory.record import Sidecar, dump, empty_sidecar
from witness.errors import UsageError, WitnessError
from witness.files import check_within, read_project, replace_file

_DRIVER = "gt-memory"
# %A is where git wants the result, %P names the file in what we say.
_COMMAND = "gt memory merge --files %O %A %B --name %P"
_ATTRIBUTES = f"*{SUFFIX} merge={_DRIVER}\n*.archive.jsonl merge=union\n"
_GIT_SECONDS = 30


def join_files(base: bytes, ours: bytes, theirs: bytes, agent: str, now: str) -> bytes:
    """Join two versions of a memory's file.

    Args:
        base: what both come from; empty when there is none.
        ours, theirs: the versions.
        agent: whose memory.
        now: ISO date for times that they do not give.

    Raises:
        ValueError: one of them is no memory file, or has conflict marks itself.
    """
    versions = [_read(data, agent, now) for data in (base, ours, theirs)]
    return dump(join(*versions))


def _read(data: bytes, agent: str, now: str) -> Sidecar:
    if not data.strip():
        return empty_sidecar(agent, now)
    if has_conflict_marks(data):
        raise ValueError("it has conflict marks itself")
    return read_sidecar(parse(data), agent, now).sidecar


def joined_conflict(data: bytes, agent: str, now: str) -> bytes:
    """A file with git's conflict marks as one memory file.

    Raises:
        ValueError: the marks do not fit together, or a side is no memory file.
    """
    ours, theirs = sides_of(data)
    return join_files(b"", ours, theirs, agent, now)


@dataclass(frozen=True, slots=True)
class Setup:
    """What was set up.

    Args:
        attributes: the file that names the driver for memory files.
        shown: agents whose files git sees from now on.
    """

    attributes: Path
    shown: tuple[str, ...]


def set_up(root: Path, agents: Iterable[str]) -> Setup:
    """Let git version the memories of agents, and join them by our driver.

    Args:
        root: the project's root, in a repository.
        agents: whose.

    Raises:
        UsageError: the project lies in no repository.
        WitnessError: git or a file refuses.
    """
    for key, value in (("name", "joins agents' memories by id"), ("driver", _COMMAND)):
        _git(root, "config", "--local", f"merge.{_DRIVER}.{key}", value)
    folder = sidecars_folder(root)
    try:
        check_within(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        attributes, ignore = folder / ".gitattributes", folder / ".gitignore"
        _with_lines(attributes, _ATTRIBUTES.splitlines())
        names = tuple(agents)
        shown = [f"!{name}{ending}" for name in names for ending in (SUFFIX, ".archive.jsonl")]
        _with_lines(ignore, ["*", "!.gitignore", "!.gitattributes", *shown])
    except OSError as error:
        raise WitnessError(f"{folder}: {error.strerror or error}") from error
    return Setup(attributes, names)


def _with_lines(path: Path, wanted: list[str]) -> None:
    have: list[str] = []
    with suppress(FileNotFoundError):
        have = read_project(path).decode("utf-8", "replace").splitlines()
    lines = [*have, *(line for line in wanted if line not in have)]
    if lines != have:
        replace_file(path, "".join(f"{line}\n" for line in lines), mode=0o644)


def _git(root: Path, *arguments: str) -> None:
    try:
        ran = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=_GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WitnessError(f"git cannot be run: {error}") from error
    if ran.returncode:
        said = " ".join(ran.stderr.split())[:300]
        raise UsageError(f"{root} cannot be set up: git said: {said or ran.returncode}")
