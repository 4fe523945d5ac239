"""The sign of life that the Witness reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from witness.clock import Clock
from witness.files import make_folder, open_regular


class Heartbeat:
    """Rewrites one small file of fixed width in place; a context manager."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._file = -1

    def __enter__(self) -> Self:
        run_dir = self._path.parent.parent
        make_folder(self._path.parent, below=run_dir)
        # Rewritten in place: through a link, or a second name, it would be somebody else's file.
        self._file = open_regular(self._path, below=run_dir, flags=os.O_WRONLY | os.O_CREAT)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def beat(self) -> None:
        """Write the present instant."""
        os.pwrite(self._file, f"{self._clock.monotonic():020.6f}\n".encode(), 0)
