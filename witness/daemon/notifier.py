"""The process that tells people (``witness.notify``): kept running by the Witness while the settings ask for it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

from witness.clock import Clock
from witness.config.town import Town
from witness.files import open_log

# Seconds between two starts: one that cannot run is no reason to start a process every moment.
_PAUSE = 10.0
_END_SECONDS = 2.0


class NotifierProcess:
    """At most one process of the town's notifier, a child of the caller's.

    Args:
        town: whose.
        clock: time.
    """

    def __init__(self, town: Town, clock: Clock) -> None:
        self._town, self._clock = town, clock
        self._child: subprocess.Popen[bytes] | None = None
        self._started = -_PAUSE

    def keep(self, *, wanted: bool) -> None:
        """Start it where it is wanted and does not run, end it where it is not wanted; never waits.

        Raises:
            OSError: it cannot be started.
        """
        if self._child is not None and self._child.poll() is not None:
            self._child = None
        if wanted and self._child is None and self._clock.monotonic() - self._started >= _PAUSE:
            self._started = self._clock.monotonic()
            log = self._town.runtime / "notify.log"
            with os.fdopen(open_log(log, below=self._town.root), "ab") as output:
                self._child = subprocess.Popen(
                    [sys.executable, "-P", "-m", "witness.notify", str(self._town.root)], stdin=subprocess.DEVNULL,
                    stdout=output, stderr=output, cwd="/", start_new_session=True,
                )  # fmt: skip
        elif not wanted and self._child is not None:
            self._child.terminate()

    def close(self) -> None:
        """End it, and wait for that."""
        if self._child is None:
            return
        self._child.terminate()
        try:
            self._child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(_END_SECONDS)
