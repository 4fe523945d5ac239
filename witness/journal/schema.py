"""The journal's tables: numbered steps, each applied once."""

from __future__ import annotations

STEPS: tuple[str, ...] = (
    """
    CREATE TABLE groups (
        run TEXT PRIMARY KEY, rig TEXT NOT NULL, polecat TEXT NOT NULL, session TEXT NOT NULL, state TEXT NOT NULL,
        boot TEXT NOT NULL, spawned_at REAL NOT NULL, created REAL NOT NULL, workdir TEXT NOT NULL,
        agent TEXT NOT NULL, molecule TEXT NOT NULL, intent TEXT NOT NULL, intent_at REAL NOT NULL,
        intent_note TEXT NOT NULL, zombie TEXT NOT NULL, details TEXT NOT NULL
    );
    -- At most one living run per name, whoever races whom.
    CREATE UNIQUE INDEX one_life ON groups (rig, polecat) WHERE state != 'NUKED';
    CREATE TABLE members (
        run TEXT NOT NULL REFERENCES groups (run), name TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
        pid INTEGER, started INTEGER, type TEXT NOT NULL, argument TEXT NOT NULL, since REAL NOT NULL,
        retry_at REAL NOT NULL, crashes TEXT NOT NULL, restarts INTEGER NOT NULL, note TEXT NOT NULL,
        PRIMARY KEY (run, name)
    );
    CREATE TABLE seen (
        run TEXT NOT NULL, pid INTEGER NOT NULL, started INTEGER NOT NULL, PRIMARY KEY (run, pid, started)
    ) WITHOUT ROWID;
    CREATE TABLE events (
        id INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, run TEXT NOT NULL, member TEXT NOT NULL,
        data TEXT NOT NULL
    );
    CREATE INDEX events_of_run ON events (run, id);
    CREATE TABLE decisions (
        id TEXT PRIMARY KEY, run TEXT NOT NULL, sidecar TEXT NOT NULL, time REAL NOT NULL, monotonic REAL NOT NULL,
        outcome TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL, evidence TEXT NOT NULL,
        confidence TEXT NOT NULL, event TEXT NOT NULL, nudge TEXT NOT NULL, stage TEXT NOT NULL,
        model TEXT NOT NULL, calls INTEGER NOT NULL, input_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
        cache_written_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, dollars REAL NOT NULL,
        seconds REAL NOT NULL
    );
    CREATE INDEX decisions_of_run ON decisions (run, sidecar, time);
    CREATE INDEX decisions_by_time ON decisions (time);
    CREATE TABLE cursors (
        run TEXT NOT NULL, sidecar TEXT NOT NULL, position TEXT NOT NULL, PRIMARY KEY (run, sidecar)
    ) WITHOUT ROWID;
    CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    """,
)
