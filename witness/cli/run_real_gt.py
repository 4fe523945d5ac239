"""Running the real ``gt`` as a child, where its outcome decides what we do next."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType

from witness.cli.exec_real_gt import NAME, given_environment


def run_real_gt(real: str, args: Sequence[str], *, quiet: bool = False) -> int:
    """Run the real ``gt`` on our own streams, and wait for its end.

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
    stdout = sys.stderr if quiet else None
    child = subprocess.Popen([NAME, *args], executable=real, env=given_environment(), stdout=stdout)

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
