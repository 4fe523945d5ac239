"""Whether we run inside of a polecat, and how to start something outside of it.

Whatever a process in a polecat starts falls to that polecat's reapers in the end, and ends with it. The tmux server
that holds the polecat stands above them: what it starts is free of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from witness.config.town import Town
from witness.errors import WitnessError
from witness.names import MARKER_VARIABLE, GroupId
from witness.tmux import Tmux

_RUNTIME = "GT_WITNESS_RUNTIME"


def tmux_around(environ: Mapping[str, str] | None = None) -> Tmux | None:
    """The tmux that holds the polecat that we run in; None outside of polecats.

    Args:
        environ: the only place to look; None for our own environment and that of our ancestors, since an agent may
            call us with a bare one.
    """
    for place in (environ,) if environ is not None else (os.environ, *_environments_above()):
        if GroupId.from_marker(place.get(MARKER_VARIABLE, "")) and place.get(_RUNTIME):
            # $TMUX may name a tmux that the agent has started itself, and that ends with it.
            try:
                return Tmux(*Town.at(Path(place[_RUNTIME]).parent.parent).tmux_place)
            except WitnessError:
                return None
    return None


def _environments_above() -> Iterator[dict[str, str]]:
    """What our ancestors were started with, as far as the system shows it."""
    pid, seen = os.getppid(), {0, 1}
    while pid not in seen:
        seen.add(pid)
        try:
            raw = Path(f"/proc/{pid}/environ").read_bytes()
            pid = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return
        yield dict(part.split("=", 1) for part in os.fsdecode(raw).split("\0") if "=" in part)
