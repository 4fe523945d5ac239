"""The life of one sidecar process: look, consider, answer, sleep till the next event or poll."""

from __future__ import annotations

import os
import selectors
import sys
from collections.abc import Callable
from pathlib import Path

from witness.assignment import Assignment
from witness.errors import JournalError, JournalMovedError, UsageError
from witness.names import GroupId
from witness.process import ProcessId

ENDED = 0
BAD_CONFIGURATION = 3
LIMITED = 4
# Any other code is a crash, which is answered by a new start: the new one opens the new journal.
MOVED = 5


def run(assignment: Assignment, ready: Callable[[], None]) -> int:
    """Observe one polecat until it ends.

    Args:
        assignment: which agent, as what, and through which files.
        ready: called once, when it observes.

    Returns:
        The exit code: 0 the polecat ended, 3 bad configuration, 4 limited (the journal cannot be used just now).
    """
    from sidecars.observer.factory import assemble

    try:
        if not assignment.agent.known:
            raise UsageError(f"the assignment of {assignment.name} names no agent to observe")
        parts = assemble(assignment, starts=True)
    except UsageError as error:
        sys.stderr.write(f"sidecar {assignment.name}: {error}\n")
        return BAD_CONFIGURATION
    except JournalError as error:
        sys.stderr.write(f"sidecar {assignment.name}: {error}\n")
        return MOVED if isinstance(error, JournalMovedError) else LIMITED
    from sidecars.observer.watcher import SidecarRunner

    try:
        with SidecarRunner(parts, assignment) as runner, selectors.DefaultSelector() as selector:
            for source in runner.sources():
                selector.register(source, selectors.EVENT_READ)
            ready()
            runner.tell_changes()
            while not runner.agent_ended:
                runner.look()
                runner.rest(selector)
            runner.finish()
    except JournalMovedError as error:
        sys.stderr.write(f"sidecar {assignment.name}: {error}\n")
        return MOVED
    except JournalError as error:
        sys.stderr.write(f"sidecar {assignment.name}: {error}\n")
        return LIMITED
    return ENDED


# One sidecar of each shipped type, lived through in an empty folder before any real one is forked.
#
# What runs for the first time in a process fills caches and specialises its own code, which in a fork copies the
# pages that it stands in. After a warm-up in the fork server a hundred children share those pages.

# Loads the shell's grammar and the table of programs.
_LINE = "cd src && sed -i 's/a/b/' \"$file\" a.py | tee log.txt"
_TYPES = ("scope", "tools", "conventions")


def warm_up(me: ProcessId) -> None:
    """Assemble one sidecar of each type and let it look once. A failure is told on stderr; it hinders nobody.

    Args:
        me: the calling process, which is looked upon as the agent.
    """
    import tempfile

    from sidecars.observer.factory import assemble
    from sidecars.observer.watcher import SidecarRunner
    from sidecars.syntax.shell import read_shell

    read_shell(_LINE)
    with tempfile.TemporaryDirectory(prefix="gt-witness-") as name:
        folder = Path(name)
        (folder / "beats").mkdir()
        for kind in _TYPES:
            try:
                assignment = Assignment.from_json(_assignment(kind, folder, me).to_json())
                with SidecarRunner(assemble(assignment, starts=True), assignment) as runner:
                    runner.look()
            except Exception as error:  # noqa: BLE001 - whatever it is, the real ones will say it in their own logs
                sys.stderr.write(f"the warm-up of {kind} failed: {type(error).__name__}: {error}\n")


def _assignment(kind: str, folder: Path, me: ProcessId) -> Assignment:
    return Assignment(
        group=GroupId("main", "warm-up", str(os.getpid())),
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
