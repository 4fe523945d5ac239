"""What we keep on this machine: the runtime folder (who may read it, is there space) and tmux's sockets."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from witness.config.town import Town
from witness.doctor.finding import Finding, fault, note, ok, warning
from witness.errors import TmuxError, TmuxUnusableError
from witness.tmux import Tmux

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
            f"chmod -R go= {shlex.quote(str(town.runtime))}",
            lambda: _close(open_),
        )
    if not os.access(town.runtime, os.W_OK):
        yield fault("permissions", f"{town.runtime} cannot be written", "mount it writable, or chmod u+w it")
    elif not foreign and not open_:
        yield ok("permissions", f"{town.runtime} is the user's alone")


def _wrong(top: Path) -> tuple[list[Path], list[Path]]:
    """(files of other users, files that others may use) at and below ``top``.

    Below a closed folder nothing is open, whatever its own mode says: a client writes there by its own umask. ``top``
    alone does not count, so that more than one mode stands between others and what agents did.
    """
    me = os.geteuid()
    foreign, open_ = [], []
    closed: set[str] = set()
    for folder, below, files in os.walk(top):
        for path in (Path(folder), *(Path(folder) / name for name in files)):
            try:
                status = path.lstat()
            except OSError:
                continue  # gone since
            if status.st_uid != me:
                foreign.append(path)
            elif folder in closed or stat.S_ISLNK(status.st_mode):
                continue
            elif stat.S_IMODE(status.st_mode) & 0o077:
                open_.append(path)
            elif stat.S_ISDIR(status.st_mode) and path != top:
                closed.add(folder)
        if folder in closed:
            closed.update(os.path.join(folder, name) for name in below)  # noqa: PTH118 - as os.walk builds them
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


# tmux's sockets: the town's own, what is left of dead servers, and towns of the same name.


def check_sockets(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """All sockets that bear this town's name, whatever their hash."""
    folder = _socket_folder(environ)
    own = town.socket
    base = own.rpartition("-")[0] or own
    # Before the path's hash was part of it, a socket had the folder's name alone.
    pattern = re.compile(rf"{re.escape(base)}(-[0-9a-f]{{6}})?")
    try:
        candidates = sorted(path for path in folder.iterdir() if pattern.fullmatch(path.name))
    except OSError:
        candidates = []
    for path in candidates:
        alive = _answers(path)
        if alive is None:
            continue
        if path.name == own and alive:
            yield ok("sockets", f"a tmux server runs on {path}")
        elif not alive:
            remedy = f"rm {shlex.quote(str(path))}"
            yield warning("sockets", f"{path} is left of a tmux server that is dead", remedy, _remover(path))
        elif path.name == base:
            yield from _legacy(town, path)
        else:
            yield note("sockets", f"{path} is of another town of the same name; it is left alone")


def _socket_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{os.getuid()}"  # noqa: S108 - tmux's own place


def remove_dead_socket(town: Town, environ: Mapping[str, str]) -> list[Path]:
    """Remove the town's own tmux socket when no server answers on it; what was removed.

    Args:
        town: whose.
        environ: where tmux keeps its sockets.
    """
    path = _socket_folder(environ) / town.socket
    if _answers(path) is not False:
        return []
    path.unlink(missing_ok=True)
    return [path]


def _legacy(town: Town, path: Path) -> Iterator[Finding]:
    try:
        sessions = {pane.session for pane in Tmux(path.name, str(path.parent.parent)).panes()}
    except (TmuxError, TmuxUnusableError):
        return
    ours = sorted(session for session in sessions if town.parse_session(session))
    if ours:
        names = ", ".join(ours[:5])
        yield note(
            "sockets",
            f"sessions with this town's prefixes stand on the socket {path.name}, as before Gas Town named sockets by "
            f"their path: {names}",
            "they may be another town's: look, then end them by hand",
        )


def _answers(path: Path) -> bool | None:
    """Whether a server listens there; None when the file is no socket, or it cannot be told."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return None
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1.0)
            probe.connect(str(path))
    except ConnectionRefusedError:
        return False
    except OSError:
        return None
    return True


def _remover(path: Path) -> Callable[[], str]:
    def remove() -> str:
        if _answers(path) is False:  # asked again: a server may have come meanwhile
            path.unlink()
            return f"removed {path}"
        return f"{path} answers again and was left"

    return remove
