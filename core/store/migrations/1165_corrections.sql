-- +goose Up
-- ---------------------------------------------------------------- core/memory
-- What persons have said about answers, one row for each correction.
CREATE TABLE corrections (
    correction_id          TEXT PRIMARY KEY,
    user_id                INTEGER NOT NULL,
    number                 INTEGER NOT NULL,            -- of the person, as /forget names it
    type                   TEXT NOT NULL,               -- factual_correction, persistent_instruction, preference, project_decision, failure_pattern
    scope                  TEXT NOT NULL,               -- global, project, conversation
    scope_ref              TEXT NOT NULL DEFAULT '',    -- the project or conversation
    corrective_instruction TEXT NOT NULL,               -- encrypted
    canonical_query        TEXT NOT NULL,               -- encrypted
    about                  TEXT NOT NULL DEFAULT '',    -- encrypted: the person's question before it
    domain                 TEXT NOT NULL,
    confidence             DOUBLE PRECISION NOT NULL,
    decay_class            TEXT NOT NULL,               -- A, B, C
    pinned                 INTEGER NOT NULL DEFAULT 0,
    score_delta            INTEGER NOT NULL DEFAULT 0,
    extracted_via          TEXT NOT NULL,               -- rules, semantic, explicit
    status                 TEXT NOT NULL,               -- active, superseded, pending (a card asks), deleted (can be undone)
    superseded_by          TEXT NOT NULL DEFAULT '',
    conflicts_with         TEXT NOT NULL DEFAULT '',    -- the older one that a card asks about
    card                   TEXT NOT NULL DEFAULT '',    -- implicit, review, conflict: what the open card asks
    expires_at             TEXT NOT NULL DEFAULT '',    -- of the card, or of a deleted row
    source                 TEXT NOT NULL,               -- what it was learnt from: the same again adds none
    session_id             TEXT NOT NULL DEFAULT '',
    model_id               TEXT NOT NULL DEFAULT '',    -- the model that was corrected
    uses                   INTEGER NOT NULL DEFAULT 0,
    emphasis               INTEGER NOT NULL DEFAULT 0,  -- 0–3: violations in a row
    followed               INTEGER NOT NULL DEFAULT 0,  -- answers in a row that followed it
    used_at                TEXT NOT NULL DEFAULT '',
    created_at             TEXT NOT NULL,
    updated_at             TEXT NOT NULL                -- when its text was last confirmed: decay begins here
);
CREATE UNIQUE INDEX corrections_source ON corrections(source);
CREATE UNIQUE INDEX corrections_number ON corrections(user_id, number);
CREATE INDEX corrections_expires ON corrections(expires_at) WHERE expires_at <> '';
CREATE INDEX corrections_age ON corrections(decay_class, updated_at);

-- What happened to corrections, and where they were used.
CREATE TABLE correction_events (
    id            INTEGER PRIMARY KEY,
    correction_id TEXT NOT NULL,
    user_id       INTEGER NOT NULL,
    kind          TEXT NOT NULL,             -- created, accepted, edited, pinned, unpinned, superseded, restored, deleted, used, violated, followed
    run           TEXT NOT NULL DEFAULT '',
    session_id    TEXT NOT NULL DEFAULT '',
    model_id      TEXT NOT NULL DEFAULT '',
    at            TEXT NOT NULL
);
CREATE INDEX correction_events_of ON correction_events(correction_id, id);
CREATE INDEX correction_events_user ON correction_events(user_id, id);
CREATE INDEX correction_events_run ON correction_events(run) WHERE run <> '';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
