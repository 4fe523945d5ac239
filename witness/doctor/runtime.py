"""The runtime folder: who may read it, and whether it can be written."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from witness.config.town import Town
from witness.doctor.finding import Finding, fault, ok, warning

# Below this SQLite and the spool may fail at any moment.
_LOW_BYTES = 64 * 1024 * 1024
_LISTED = 3


def check_permissions(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Everything in the runtime folder is the user's alone: it holds prompts, paths and what agents did."""
    if not town.runtime.exists():
        yield ok("permissions", "nothing has run here yet")
        return
    foreign, open_ = _wrong(town.runtime)
    if foreign:
        names = ", ".join(map(str, foreign[:_LISTED]))
        yield fault(
            "permissions", f"{len(foreign)} files are another user's: {names}", "sudo chown them, or run as that user"
        )
    if open_:
        names = ", ".join(map(str, open_[:_LISTED]))
        more = f" and {len(open_) - _LISTED} more" if len(open_) > _LISTED else ""
        yield warning(
            "permissions",
            f"others may read or write {names}{more}",
            f"chmod -R go= {town.runtime}",
            lambda: _close(open_),
        )
    if not os.access(town.runtime, os.W_OK):
        yield fault("permissions", f"{town.runtime} cannot be written", "mount it writable, or chmod u+w it")
    elif not foreign and not open_:
        yield ok("permissions", f"{town.runtime} is the user's alone")


def _wrong(top: Path) -> tuple[list[Path], list[Path]]:
    """(files of other users, files that others may use) at and below ``top``."""
    me = os.geteuid()
    foreign, open_ = [], []
    for folder, _, files in os.walk(top):
        for path in (Path(folder), *(Path(folder) / name for name in files)):
            try:
                status = path.lstat()
            except OSError:
                continue  # gone since
            if status.st_uid != me:
                foreign.append(path)
            elif stat.S_IMODE(status.st_mode) & 0o077 and not stat.S_ISLNK(status.st_mode):
                open_.append(path)
    return foreign, open_


def _close(paths: list[Path]) -> str:
    for path in paths:
        try:
            path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~0o077, follow_symlinks=False)
        except (FileNotFoundError, NotImplementedError):
            continue
    return f"closed {len(paths)} files to others"


def check_disk(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Room for the journal and the spool."""
    free = shutil.disk_usage(town.root).free
    if free < _LOW_BYTES:
        yield fault("disk", f"{free // (1024 * 1024)} MiB are free at {town.root}", "make room")
