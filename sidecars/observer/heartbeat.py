"""The sign of life that the Witness reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from witness.clock import Clock


class Heartbeat:
    """Rewrites one small file of fixed width in place; a context manager."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._file = -1

    def __enter__(self) -> Self:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def beat(self) -> None:
        """Write the present instant."""
        os.pwrite(self._file, f"{self._clock.monotonic():020.6f}\n".encode(), 0)
