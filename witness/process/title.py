"""The names that our processes show in a list of processes.

Gas Town's ``gt orphans procs kill`` takes every process whose parent is 1 and whose command line holds "claude", in
whatever case. Ours lie in the background and name the town's folder, which may be ``~/claude/town``: there they show a
title in which the word is no word.
"""

from __future__ import annotations

import re
import sys

_WORD = re.compile("claude", re.IGNORECASE)


def safe_title(text: str) -> str:
    """``text`` without the word that Gas Town's search for orphans goes by."""
    return _WORD.sub(lambda found: f"{found[0][:2]}.{found[0][3:]}", text)


def set_title(text: str) -> None:
    """Show ``text`` as this process's command line.

    Args:
        text: as ``gt-sidecar gastown/Toast/1 scope``.
    """
    import setproctitle

    setproctitle.setproctitle(safe_title(text))


def keep_title_safe(name: str) -> None:
    """Leave this process's command line as it is, unless Gas Town would take it for an orphan of the client.

    Args:
        name: what it is, as ``gt-witness``.
    """
    line = " ".join(sys.orig_argv)
    if _WORD.search(line):
        set_title(f"{name} {' '.join(sys.orig_argv[1:])}")
