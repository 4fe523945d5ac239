"""What sidecars, queues and the follower leave in the journal for their successors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from witness.journal.records import Candidate, ModelRest, QueueState, SidecarState
from witness.process import ProcessId

if TYPE_CHECKING:
    from witness.journal.database import Journal


class SidecarTable:
    """The state of each sidecar in a run; a respawned one goes on where its predecessor stopped."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def get(self, run: str, sidecar: str) -> SidecarState:
        """A sidecar's state; the empty one where it has left none."""
        row = self._journal.run(
            "SELECT position, lack, begun, starts FROM sidecars WHERE run = ? AND sidecar = ?", run, sidecar
        ).fetchone()
        return SidecarState(*row) if row else SidecarState()

    def set_position(self, run: str, sidecar: str, position: str) -> None:
        """Remember the spool position after the last event that was judged."""
        self._journal.run(
            "INSERT INTO sidecars (run, sidecar, position) VALUES (?, ?, ?)"
            " ON CONFLICT (run, sidecar) DO UPDATE SET position = excluded.position",
            run, sidecar, position,
        )  # fmt: skip

    def set_lack(self, run: str, sidecar: str, lack: str) -> None:
        """Remember what it has to do without, so that it is told once."""
        self._journal.run(
            "INSERT INTO sidecars (run, sidecar, lack) VALUES (?, ?, ?)"
            " ON CONFLICT (run, sidecar) DO UPDATE SET lack = excluded.lack",
            run, sidecar, lack,
        )  # fmt: skip

    def count_start(self, run: str, sidecar: str) -> int:
        """Count one more start at the position where the sidecar stands.

        Returns:
            How many starts in a row began there, this one included.
        """
        with self._journal.transaction():
            state = self.get(run, sidecar)
            starts = state.starts + 1 if state.starts and state.begun == state.position else 1
            self._journal.run(
                "INSERT INTO sidecars (run, sidecar, begun, starts) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (run, sidecar) DO UPDATE SET begun = excluded.begun, starts = excluded.starts",
                run, sidecar, state.position, starts,
            )  # fmt: skip
        return starts


class QueueTable:
    """How far the delivery ledger of each session's queue was read."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def get(self, queue: str) -> QueueState | None:
        """A queue's state, None where nothing of it was read."""
        row = self._journal.run("SELECT position, transcript, receipts FROM queues WHERE queue = ?", queue).fetchone()
        return QueueState(row[0], row[1], tuple(json.loads(row[2]))) if row else None

    def set(self, queue: str, state: QueueState) -> None:
        """Write a queue's state."""
        self._journal.run(
            "INSERT OR REPLACE INTO queues VALUES (?, ?, ?, ?)",
            queue, state.position, state.transcript, json.dumps(state.receipts),
        )  # fmt: skip

    def drop(self, queue: str) -> None:
        """Forget a queue; its session's next run begins with an empty ledger."""
        self._journal.run("DELETE FROM queues WHERE queue = ?", queue)


class TownTable:
    """What the town remembers: how far Gas Town's events were read, what it might follow, the model's rest."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @property
    def events_position(self) -> str:
        """How far Gas Town's events were read, empty when not at all."""
        return str(self._journal.run("SELECT events_position FROM town").fetchone()[0])

    @events_position.setter
    def events_position(self, position: str) -> None:
        self._journal.run("UPDATE town SET events_position = ?", position)

    @property
    def model_rest(self) -> ModelRest:
        """The rest that every sidecar keeps from the model."""
        return ModelRest(*self._journal.run("SELECT rest_until, rest_seconds FROM town").fetchone())

    @model_rest.setter
    def model_rest(self, rest: ModelRest) -> None:
        self._journal.run("UPDATE town SET rest_until = ?, rest_seconds = ?", rest.until, rest.seconds)

    def candidate(self, rig: str, polecat: str) -> Candidate:
        """What is known of a polecat that might be followed."""
        row = self._journal.run(
            "SELECT pid, started, ask_at, wait, renewed FROM candidates WHERE rig = ? AND polecat = ?", rig, polecat
        ).fetchone()
        if row is None:
            return Candidate()
        pid, started, ask_at, wait, renewed = row
        return Candidate(ProcessId(pid, started) if pid else None, ask_at, wait, bool(renewed))

    def set_candidate(self, rig: str, polecat: str, candidate: Candidate) -> None:
        """Write what is known of it."""
        agent = candidate.agent or ProcessId(0, 0)
        self._journal.run(
            "INSERT OR REPLACE INTO candidates VALUES (?, ?, ?, ?, ?, ?, ?)",
            rig, polecat, agent.pid, agent.started, candidate.ask_at, candidate.wait, candidate.renewed,
        )  # fmt: skip
