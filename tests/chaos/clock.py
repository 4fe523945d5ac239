"""The date that jumps: every process of the town has the small library of ``clock.c`` before libc."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

_OFFSET = "CHAOS_CLOCK"
_SOURCE = Path(__file__).with_name("clock.c")


def with_own_date(argv: list[str]) -> bool:
    """Start this very program anew with a date of its own; comes back, with whether it has one, when it has tried.

    Args:
        argv: the whole command line of the program.
    """
    if _OFFSET in os.environ:
        return bool(os.environ[_OFFSET])
    folder = Path(tempfile.mkdtemp(prefix="gt-chaos-clock-"))
    library, offset = folder / "clock.so", folder / "offset"
    compiler = shutil.which("cc")
    built = compiler and subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(_SOURCE), "-ldl"], check=False
    )
    if built and built.returncode == 0:
        offset.write_bytes(struct.pack("q", 0))
        os.execve(sys.executable, argv, {**os.environ, _OFFSET: str(offset), "LD_PRELOAD": str(library)})  # noqa: S606
    shutil.rmtree(folder)
    return False


def jump(seconds: int) -> int:
    """Move the date of everybody, further or back; returns by how much it is off now."""
    with Path(os.environ[_OFFSET]).open("r+b") as file:
        now = struct.unpack("q", file.read(8))[0] + seconds
        file.seek(0)
        file.write(struct.pack("q", now))
    return int(now)


def forget() -> None:
    """Remove the library and the file again."""
    if _OFFSET in os.environ:
        shutil.rmtree(Path(os.environ[_OFFSET]).parent, ignore_errors=True)
