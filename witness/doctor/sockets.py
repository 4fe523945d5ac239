"""tmux's sockets: the town's own, what is left of dead servers, and towns of the same name."""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from witness.config.town import Town
from witness.doctor.finding import Finding, note, ok, warning
from witness.errors import TmuxError, TmuxUnusableError
from witness.tmux import Tmux


def check_sockets(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """All sockets that bear this town's name, whatever their hash."""
    folder = Path(environ.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{os.getuid()}"  # noqa: S108 - tmux's own place
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
            yield warning("sockets", f"{path} is left of a tmux server that is dead", f"rm {path}", _remover(path))
        elif path.name == base:
            yield from _legacy(town, path)
        else:
            yield note("sockets", f"{path} is of another town of the same name; it is left alone")


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
