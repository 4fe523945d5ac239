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
    # What was kept as JSON under magic keys or in prose gets columns. A table is made anew in place of "DROP COLUMN",
    # which SQLite learned late.
    """
    CREATE TABLE groups_2 (
        run TEXT PRIMARY KEY, rig TEXT NOT NULL, polecat TEXT NOT NULL, session TEXT NOT NULL, state TEXT NOT NULL,
        boot TEXT NOT NULL, spawned_at REAL NOT NULL, created REAL NOT NULL, workdir TEXT NOT NULL,
        agent TEXT NOT NULL, molecule TEXT NOT NULL, intent TEXT NOT NULL, intent_at REAL NOT NULL,
        intent_note TEXT NOT NULL, zombie TEXT NOT NULL,
        task TEXT NOT NULL, bead TEXT NOT NULL, variables TEXT NOT NULL, overrides TEXT NOT NULL,
        followed INTEGER NOT NULL, cgroup TEXT NOT NULL, worker_pid INTEGER, worker_started INTEGER,
        orphans TEXT NOT NULL, session_missing REAL, activity TEXT NOT NULL, activity_at REAL
    );
    INSERT INTO groups_2 SELECT
        run, rig, polecat, session, state, boot, spawned_at, created, workdir, agent, molecule, intent, intent_at,
        intent_note, zombie,
        COALESCE(json_extract(details, '$.task'), ''), COALESCE(json_extract(details, '$.bead'), ''),
        COALESCE(json_extract(details, '$.variables'), '{}'), COALESCE(json_extract(details, '$.overrides'), '{}'),
        COALESCE(json_extract(details, '$.followed'), 0), COALESCE(json_extract(details, '$.cgroup'), ''),
        json_extract(details, '$.worker[0]'), json_extract(details, '$.worker[1]'),
        COALESCE(json_extract(details, '$.orphans'), '[]'), json_extract(details, '$.session_missing'),
        COALESCE(json_extract(details, '$.activity'), ''), json_extract(details, '$.activity_at')
        FROM groups ORDER BY rowid;
    DROP TABLE groups;
    ALTER TABLE groups_2 RENAME TO groups;
    CREATE UNIQUE INDEX one_life ON groups (rig, polecat) WHERE state != 'NUKED';

    ALTER TABLE decisions ADD COLUMN rule TEXT NOT NULL DEFAULT '';
    ALTER TABLE decisions ADD COLUMN gate TEXT NOT NULL DEFAULT '';
    ALTER TABLE decisions ADD COLUMN words TEXT NOT NULL DEFAULT '';
    ALTER TABLE decisions ADD COLUMN subjects TEXT NOT NULL DEFAULT '[]';
    ALTER TABLE decisions ADD COLUMN named INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE decisions ADD COLUMN source TEXT NOT NULL DEFAULT '';
    ALTER TABLE decisions ADD COLUMN about TEXT NOT NULL DEFAULT '';
    ALTER TABLE decisions ADD COLUMN seen TEXT NOT NULL DEFAULT '';
    ALTER TABLE decisions ADD COLUMN acted REAL NOT NULL DEFAULT 0;
    ALTER TABLE decisions ADD COLUMN age REAL;
    ALTER TABLE decisions ADD COLUMN line TEXT NOT NULL DEFAULT '';
    ALTER TABLE decisions ADD COLUMN spoken REAL NOT NULL DEFAULT 0;
    ALTER TABLE decisions ADD COLUMN heeded TEXT NOT NULL DEFAULT '';
    UPDATE decisions SET line = id, spoken = monotonic, words = substr(message, instr(message, '] ') + 2)
        WHERE outcome = 'injected';
    UPDATE decisions SET gate = substr(reason, 1, instr(reason, ':') - 1)
        WHERE outcome = 'refused' AND instr(reason, ':') > 1;
    -- The reason of what was said or passed over began with the rule's name, and the delivery wrote its own over some.
    UPDATE decisions SET rule = CASE
            WHEN instr(reason, ', put off ') > 0 THEN substr(reason, 1, instr(reason, ', put off ') - 1)
            WHEN reason LIKE 'put off %' OR reason LIKE '%: %' OR reason LIKE 'handed over %' THEN '' ELSE reason END
        WHERE outcome IN ('injected', 'silent') AND stage != 'undelivered';
    CREATE INDEX decisions_of_line ON decisions (line);
    CREATE INDEX decisions_heeded ON decisions (sidecar, rule) WHERE heeded != '';

    CREATE TABLE sidecars (
        run TEXT NOT NULL, sidecar TEXT NOT NULL, position TEXT NOT NULL DEFAULT '', lack TEXT NOT NULL DEFAULT '',
        begun TEXT NOT NULL DEFAULT '', starts INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (run, sidecar)
    ) WITHOUT ROWID;
    INSERT INTO sidecars (run, sidecar, position) SELECT run, sidecar, position FROM cursors;
    CREATE TEMP TABLE old_facts AS SELECT substr(key, 1, instr(key, ':') - 1) AS kind,
        substr(substr(key, instr(key, ':') + 1), 1, instr(substr(key, instr(key, ':') + 1), ':') - 1) AS run,
        substr(substr(key, instr(key, ':') + 1), instr(substr(key, instr(key, ':') + 1), ':') + 1) AS sidecar, value
        FROM facts WHERE key LIKE 'lack:%:%' OR key LIKE 'begun:%:%';
    INSERT OR IGNORE INTO sidecars (run, sidecar) SELECT run, sidecar FROM old_facts;
    UPDATE sidecars SET lack = COALESCE((SELECT value FROM old_facts o
        WHERE o.kind = 'lack' AND o.run = sidecars.run AND o.sidecar = sidecars.sidecar), '');
    UPDATE sidecars SET
        begun = COALESCE((SELECT substr(value, 1, instr(value, ' ') - 1) FROM old_facts o
            WHERE o.kind = 'begun' AND o.run = sidecars.run AND o.sidecar = sidecars.sidecar), ''),
        starts = COALESCE((SELECT CAST(substr(value, instr(value, ' ') + 1) AS INTEGER) FROM old_facts o
            WHERE o.kind = 'begun' AND o.run = sidecars.run AND o.sidecar = sidecars.sidecar), 0);
    DROP TABLE old_facts;
    DROP TABLE cursors;

    CREATE TABLE queues (
        queue TEXT PRIMARY KEY, position INTEGER NOT NULL, transcript TEXT NOT NULL, receipts TEXT NOT NULL
    ) WITHOUT ROWID;
    INSERT INTO queues SELECT substr(key, 10), COALESCE(json_extract(value, '$.offset'), 0),
        COALESCE(json_extract(value, '$.transcript'), ''), COALESCE(json_extract(value, '$.open'), '[]')
        FROM facts WHERE key LIKE 'receipts:%' AND json_valid(value);

    CREATE TABLE candidates (
        rig TEXT NOT NULL, polecat TEXT NOT NULL, pid INTEGER NOT NULL DEFAULT 0, started INTEGER NOT NULL DEFAULT 0,
        ask_at REAL NOT NULL DEFAULT 0, wait REAL NOT NULL DEFAULT 0, renewed INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (rig, polecat)
    ) WITHOUT ROWID;
    INSERT INTO candidates (rig, polecat, pid, started, ask_at, wait) SELECT
        substr(key, 8, instr(key, '/') - 8), substr(key, instr(key, '/') + 1),
        COALESCE(json_extract(value, '$.agent[0]'), 0), COALESCE(json_extract(value, '$.agent[1]'), 0),
        COALESCE(json_extract(value, '$.at'), 0), COALESCE(json_extract(value, '$.wait'), 0)
        FROM facts WHERE key LIKE 'follow:%/%' AND json_valid(value);
    INSERT OR IGNORE INTO candidates (rig, polecat)
        SELECT substr(key, 9, instr(key, '/') - 9), substr(key, instr(key, '/') + 1)
        FROM facts WHERE key LIKE 'renewed:%/%';
    UPDATE candidates SET renewed = 1
        WHERE EXISTS (SELECT 1 FROM facts WHERE key = 'renewed:' || rig || '/' || polecat AND value = '1');

    CREATE TABLE town (
        one INTEGER PRIMARY KEY CHECK (one = 1), events_position TEXT NOT NULL DEFAULT '',
        rest_until REAL NOT NULL DEFAULT 0, rest_seconds REAL NOT NULL DEFAULT 0
    );
    INSERT INTO town (one, events_position, rest_until, rest_seconds) VALUES (
        1, COALESCE((SELECT value FROM facts WHERE key = 'town-events'), ''),
        COALESCE((SELECT CAST(substr(value, 1, instr(value, ' ') - 1) AS REAL) FROM facts WHERE key = 'model-rest'), 0),
        COALESCE((SELECT CAST(substr(value, instr(value, ' ') + 1) AS REAL) FROM facts WHERE key = 'model-rest'), 0)
    );
    DROP TABLE facts;
    """,
    """
    ALTER TABLE groups ADD COLUMN channel TEXT NOT NULL DEFAULT '';
    ALTER TABLE groups ADD COLUMN channel_reason TEXT NOT NULL DEFAULT '';
    ALTER TABLE groups ADD COLUMN client_version TEXT NOT NULL DEFAULT '';
    """,
    # What each sidecar type was when its polecat was spawned; most polecats share theirs.
    """
    CREATE TABLE definitions (digest TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE types_of_run (
        run TEXT NOT NULL, type TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (run, type)
    ) WITHOUT ROWID;
    """,
    "ALTER TABLE groups ADD COLUMN pane TEXT NOT NULL DEFAULT ''",
    """
    ALTER TABLE groups ADD COLUMN limits TEXT NOT NULL DEFAULT '{}';
    ALTER TABLE groups ADD COLUMN limit_cgroups TEXT NOT NULL DEFAULT '{}';
    ALTER TABLE groups ADD COLUMN limits_met TEXT NOT NULL DEFAULT '';
    """,
    "ALTER TABLE groups ADD COLUMN by_person INTEGER NOT NULL DEFAULT 0",
    """
    CREATE TABLE worktrees (
        run TEXT PRIMARY KEY, rig TEXT NOT NULL, polecat TEXT NOT NULL, path TEXT NOT NULL, repository TEXT NOT NULL,
        branch TEXT NOT NULL, base TEXT NOT NULL, state TEXT NOT NULL, since REAL NOT NULL, reason TEXT NOT NULL,
        discard INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE INDEX worktrees_that_stand ON worktrees (polecat) WHERE state != 'REMOVED'
    """,
    "ALTER TABLE groups ADD COLUMN paused_at REAL",
)
