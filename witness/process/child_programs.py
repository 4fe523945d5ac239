"""Programs that are started beside an agent: their environment, and their end with all that they started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

# Variables of another life: of the client, the pane and the polecat from which we may have been called. Gas Town's own
# would make any `gt` that a helper calls refresh the heartbeat of a dead polecat.
_OTHER_LIVES = (
    "GT_",
    "TMUX",
    "CLAUDECODE",
    "CLAUDE_CODE_",
    "BD_ACTOR",
    "BEADS_AGENT_NAME",
    "POLECAT_SLOT",
    "NODE_OPTIONS",
)
# Switches of the client that a user sets on purpose and a polecat needs as well.
_KEPT = ("CLAUDE_CODE_DISABLE_", "CLAUDE_CODE_USE_", "CLAUDE_CODE_MAX_", "CLAUDE_CODE_EFFORT_LEVEL", "GT_TMUX_SOCKET")
# By which everything that one judgement has started is known again.
TOKEN_VARIABLE = "GT_WITNESS_JUDGE"  # noqa: S105
# From SIGKILL to the end; a process in uninterruptible sleep may take for ever.
_GONE_SECONDS = 1.0


def filtered_environ(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The caller's environment without what belongs to another life."""
    environ = os.environ if environ is None else environ
    return {
        name: value for name, value in environ.items() if not name.startswith(_OTHER_LIVES) or name.startswith(_KEPT)
    }


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
