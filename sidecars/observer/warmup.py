"""One sidecar of each shipped type, lived through in an empty folder before any real one is forked.

What runs for the first time in a process fills caches and specialises its own code, which in a fork copies the pages
that it stands in. After a rehearsal in the nursery a hundred children share those pages.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from sidecars.observer.factory import assemble
from sidecars.observer.watcher import SidecarRunner
from sidecars.syntax.shell import read_shell
from witness.assignment import Assignment
from witness.names import GroupId
from witness.process import ProcessId

# Loads the shell's grammar and the table of programs.
_LINE = "cd src && sed -i 's/a/b/' \"$file\" a.py | tee log.txt"
_TYPES = ("scope", "tools", "conventions")


def warm_up(me: ProcessId) -> None:
    """Assemble one sidecar of each type and let it look once. A failure is told on stderr; it hinders nobody.

    Args:
        me: the calling process, which is looked upon as the agent.
    """
    read_shell(_LINE)
    with tempfile.TemporaryDirectory(prefix="gt-witness-") as name:
        folder = Path(name)
        (folder / "beats").mkdir()
        for kind in _TYPES:
            try:
                assignment = Assignment.from_json(_assignment(kind, folder, me).to_json())
                with SidecarRunner(assemble(assignment), assignment) as vigil:
                    vigil.look()
            except Exception as error:  # noqa: BLE001 - whatever it is, the real ones will say it in their own logs
                sys.stderr.write(f"the rehearsal of {kind} failed: {type(error).__name__}: {error}\n")


def _assignment(kind: str, folder: Path, me: ProcessId) -> Assignment:
    return Assignment(
        group=GroupId("main", "rehearsal", str(os.getpid())),
        name=kind,
        type=kind,
        argument="",
        session="",
        socket="",
        town="",
        workdir=str(folder),
        run_dir=str(folder),
        journal=str(folder / "journal.db"),
        queue=str(folder / "queue"),
        agent=me,
        task="Mend the parser.",
    )
