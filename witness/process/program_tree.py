"""Ending a program that a judge or the distiller has started, with all that it started itself."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import Any

# By which everything that one judgement has started is known again.
TOKEN_VARIABLE = "GT_WITNESS_JUDGE"  # noqa: S105
# From SIGKILL to the end; a process in uninterruptible sleep may take for ever.
_GONE_SECONDS = 1.0


def end_tree(program: subprocess.Popen[Any], token: str) -> None:
    """End everything that the program has started, also what has left its session or lost its parent.

    The program itself is reaped last, so that its process group cannot become somebody else's meanwhile.
    """
    import psutil

    killed = []
    if not has_ended(program):
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.pid != program.pid and process.environ().get(TOKEN_VARIABLE) == token:
                    process.kill()
                    killed.append(process)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()
    # A kill is asked for, not done: gone is who has been seen to be gone.
    psutil.wait_procs(killed, timeout=_GONE_SECONDS)


def has_ended(program: subprocess.Popen[Any]) -> bool:
    """Whether it has ended by itself; it is not reaped by the question."""
    try:
        return os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True
