"""The life of one sidecar process: look, consider, answer, sleep till the next event or poll."""

from __future__ import annotations

import selectors
import sys
from collections.abc import Callable

from witness.assignment import Assignment
from witness.errors import JournalError, JournalMovedError, UsageError

ENDED = 0
BAD_CONFIGURATION = 3
LIMITED = 4
# Any other code is a crash, which is answered by a new start: the new one opens the new journal.
MOVED = 5


def run(assignment: Assignment, ready: Callable[[], None]) -> int:
    """Observe one polecat until it ends.

    Args:
        assignment: whom, as what, and through which files.
        ready: called once, when it observes.

    Returns:
        The exit code: 0 the polecat ended, 3 bad configuration, 4 limited (the journal cannot be used just now).
    """
    from sidecars.observer.factory import assemble

    try:
        if not assignment.agent.known:
            raise UsageError(f"the assignment of {assignment.name} names no agent to observe")
        parts = assemble(assignment)
    except UsageError as error:
        sys.stderr.write(f"sidecar {assignment.name}: {error}\n")
        return BAD_CONFIGURATION
    from sidecars.observer.watcher import SidecarRunner

    try:
        with SidecarRunner(parts, assignment) as vigil, selectors.DefaultSelector() as selector:
            for source in vigil.sources():
                selector.register(source, selectors.EVENT_READ)
            ready()
            vigil.tell_changes()
            while not vigil.agent_ended:
                vigil.look()
                vigil.rest(selector)
            vigil.finish()
    except JournalMovedError as error:
        sys.stderr.write(f"sidecar {assignment.name}: {error}\n")
        return MOVED
    except JournalError as error:
        sys.stderr.write(f"sidecar {assignment.name}: {error}\n")
        return LIMITED
    return ENDED
