"""The journal: what the Witness knows, written before it acts.

One SQLite database in WAL mode per town. Intent is recorded before the act, so that a Witness that is killed at any
instant finds on its next start what it was about to do. Witness and sidecars write here; hooks never do.
"""

from witness.journal.database import Journal
from witness.journal.records import (
    Candidate,
    Decision,
    Event,
    Group,
    GroupState,
    Intent,
    Member,
    MemberKind,
    MemberState,
    ModelRest,
    QueueState,
    RunState,
    RunStateChanges,
    SidecarState,
    Subject,
    Usage,
    Worktree,
    WorktreeState,
)

__all__ = [
    "Candidate",
    "Decision",
    "Event",
    "Group",
    "GroupState",
    "Intent",
    "Journal",
    "Member",
    "MemberKind",
    "MemberState",
    "ModelRest",
    "QueueState",
    "RunState",
    "RunStateChanges",
    "SidecarState",
    "Subject",
    "Usage",
    "Worktree",
    "WorktreeState",
]
