"""The journal's definitions: what each sidecar type of a run was when it was spawned."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from witness.journal.database import Journal


class DefinitionTable:
    """Keeps each definition once, by its digest, however many runs have it. Their text is ``witness.trust``'s."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def fix(self, run: str, type: str, digest: str, body: str) -> None:
        """Record what a type is for a run, for good: a second definition of the same type changes nothing."""
        with self._journal.transaction():
            self._journal.run("INSERT OR IGNORE INTO definitions VALUES (?, ?)", digest, body)
            self._journal.run("INSERT OR IGNORE INTO types_of_run VALUES (?, ?, ?)", run, type, digest)

    def of(self, run: str, type: str) -> str:
        """The body of a type's definition for a run; empty when none was fixed."""
        row = self._journal.run(
            "SELECT body FROM definitions JOIN types_of_run USING (digest) WHERE run = ? AND type = ?", run, type
        ).fetchone()
        return str(row[0]) if row else ""

    def digests(self, run: str) -> dict[str, str]:
        """The digest of each type of a run."""
        return dict(self._journal.run("SELECT type, digest FROM types_of_run WHERE run = ?", run).fetchall())
