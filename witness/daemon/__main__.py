"""``python -m witness.daemon TOWN [--linger] [--foreground]``: become the town's Witness.

Without ``--foreground`` it puts itself into the background and returns 0 once it takes requests.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

from witness.config.town import Town
from witness.daemon.loop import Daemon, say
from witness.errors import TownLockedError, WitnessError
from witness.ipc.background import go_to_background
from witness.launch.town_witness import running_witness, stop_witness, town_lock, witness_process
from witness.process.title import keep_title_safe

# A one-shot patrol that holds the town when we come is over in moments, a stubborn group included.
_PATROL_SECONDS = 20.0


def main(argv: list[str]) -> int:
    """Run; 0 when it was told to stop, or another Witness runs already."""
    town = Town.at(Path(argv[0]))
    linger = "--linger" in argv
    if "--foreground" in argv:
        return serve(town, linger=linger, tell=True)
    ready = go_to_background()
    if isinstance(ready, bool):
        return 0 if ready or witness_process(town) else 1
    return serve(town, linger=linger, ready=ready)


def serve(town: Town, *, linger: bool, ready: Callable[[], None] = lambda: None, tell: bool = False) -> int:
    """Hold the town and supervise it.

    Args:
        town: which.
        linger: see ``Daemon``.
        ready: called when requests are taken.
        tell: write what happens to standard error.
    """
    os.umask(0o077)  # whatever the Witness writes is the user's alone
    keep_title_safe("gt-witness")
    if tell:
        take_over(town)
    try:
        with town_lock(town, patience=_PATROL_SECONDS):
            daemon = Daemon(town, linger=linger, told=say if tell else None)
            daemon.open()
            ready()
            # What was loaded to get here stays for ever; a collection that walks it all would hold up a respawn.
            gc.freeze()
            daemon.run()
    except TownLockedError:
        # The caller asked for a Witness and has one.
        if tell:
            raise
        ready()
    return 0


def take_over(town: Town) -> None:
    """Let a Witness in the background leave, for the one that a service manager keeps; its polecats live on."""
    if running_witness(town).get("foreground") is False:
        stop_witness(town)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except WitnessError as error:
        sys.stderr.write(f"gt-witness: {error}\n")
        sys.exit(error.exit_code)
