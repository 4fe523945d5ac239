"""The real ``gt``: the next one on PATH. What is not ours is handed to it, unchanged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

NAME = "gt"
# What a start script of ours holds: pip's and pipx's name the module, a person's wrapper names the program.
_OURS = (b"witness.cli", b"gt-witness")
# A start script has some hundred bytes; Gas Town's program has many megabytes and need not be read.
_SCRIPT_BYTES = 8192


def find_real_gt(environ: Mapping[str, str] | None = None) -> Path | None:
    """The first ``gt`` on PATH that is not this program, under whatever name or link it was started.

    Args:
        environ: where PATH is read; the process's own environment when None.
    """
    path = (os.environ if environ is None else environ).get("PATH", os.defpath)
    for folder in path.split(os.pathsep):
        candidate = Path(folder or ".") / NAME
        if candidate.is_file() and os.access(candidate, os.X_OK) and not _is_ours(candidate):
            return candidate
    return None


def _is_ours(candidate: Path) -> bool:
    try:
        if sys.argv and candidate.samefile(sys.argv[0]):
            return True
    except OSError:
        pass  # started by `python -m`: there is no start script to compare with
    try:
        with candidate.open("rb") as file:
            head = file.read(_SCRIPT_BYTES)
    except OSError:
        return False
    # A wrapper that leads back to us would hand over in a circle for ever.
    return head.startswith(b"#!") and any(mark in head for mark in _OURS)


def hand_over(real: Path, args: Sequence[str]) -> NoReturn:
    """Become the real ``gt``: same process, arguments, environment, streams; so its exit and its signals are its own.

    Raises:
        OSError: it cannot be started.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores these, and what is ignored stays so in the next program
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    os.execve(real, [NAME, *args], _given_environment())  # noqa: S606 - no shell is wanted


def _given_environment() -> dict[str, str]:
    """Our environment without what Python itself put there: under the C locale it sets LC_CTYPE."""
    environment = dict(os.environ)
    try:
        given = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return environment
    if "LC_CTYPE" in environment and not any(entry.startswith(b"LC_CTYPE=") for entry in given):
        del environment["LC_CTYPE"]
    return environment


def run_real_gt(real: Path, args: Sequence[str], *, quiet: bool = False) -> int:
    """Run the real ``gt`` as a child, on our own streams, and wait for its end.

    Whoever interrupts or ends us means the child: signals are passed on, and its end decides.

    Args:
        real: the program.
        args: its arguments.
        quiet: send what it prints to our stderr, because our stdout is for JSON alone.

    Returns:
        Its exit code; 128 + n when signal n ended it.

    Raises:
        OSError: it cannot be started.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    child = subprocess.Popen(
        [NAME, *args], executable=real, env=_given_environment(), stdout=sys.stderr if quiet else None
    )

    def pass_on(number: int, _: FrameType | None) -> None:
        if number != signal.SIGINT:  # the terminal sends that one to the child as well
            child.send_signal(number)

    kept = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        code = child.wait()
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code
