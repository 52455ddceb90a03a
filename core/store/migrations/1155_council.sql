-- +goose Up
-- -------------------------------------------------------- core/council/ledger
-- Questions that a council was asked. Scores and shares are in millionths; sealed
-- columns are encrypted.
CREATE TABLE council_queries (
    query_id        TEXT PRIMARY KEY,
    user_id         INTEGER NOT NULL,
    conversation_id TEXT NOT NULL,               -- the session
    run             TEXT NOT NULL DEFAULT '',
    accuracy_level  TEXT NOT NULL,               -- that was used: fast, balanced, high, maximum
    asked_level     TEXT NOT NULL,               -- that was asked for; another where the cost was limited
    query_preview   TEXT NOT NULL DEFAULT '',    -- sealed
    domain          TEXT NOT NULL DEFAULT 'general',
    domains         TEXT NOT NULL DEFAULT '[]',  -- the distribution, JSON
    seed            INTEGER NOT NULL,            -- of orders and explorations
    state           TEXT NOT NULL,               -- open, done, failed
    callout_type    TEXT NOT NULL DEFAULT '',    -- disagreement, highstakes, correction
    confidence      TEXT NOT NULL DEFAULT '',    -- High, Medium, Uncertain
    models_used     TEXT NOT NULL DEFAULT '[]',  -- JSON
    winner          TEXT NOT NULL DEFAULT '',    -- the model whose answer is shown
    reason          TEXT NOT NULL DEFAULT '',    -- why it was chosen: a word of the program's
    explored        INTEGER NOT NULL DEFAULT 0,
    note            TEXT NOT NULL DEFAULT '',    -- of judge and reviewers, JSON, sealed
    calls           INTEGER NOT NULL DEFAULT 0,
    micro_usd       INTEGER,                     -- NULL where a price is not known
    picked          TEXT NOT NULL DEFAULT '',    -- the model whose answer the user picked
    picked_at       TEXT NOT NULL DEFAULT '',
    settled         INTEGER NOT NULL DEFAULT 0,  -- 1: the user's next turn said whether they were content
    created_at      TEXT NOT NULL,
    ended_at        TEXT NOT NULL DEFAULT ''
);
CREATE INDEX council_queries_user ON council_queries(user_id, created_at, query_id);
CREATE INDEX council_queries_conversation ON council_queries(conversation_id, created_at);
CREATE INDEX council_queries_created ON council_queries(created_at, query_id);

-- What members returned for an open question, so that a crash asks nobody twice, and
-- the answers to pick from.
CREATE TABLE council_stages (
    query_id   TEXT NOT NULL,
    stage      TEXT NOT NULL,                    -- answer, rating, judge, review, regenerate
    model_id   TEXT NOT NULL,
    state      TEXT NOT NULL,                    -- ok, failed
    content    TEXT NOT NULL DEFAULT '',         -- sealed
    error      TEXT NOT NULL DEFAULT '',
    detail     TEXT NOT NULL DEFAULT '{}',       -- tokens, cost, times: JSON
    created_at TEXT NOT NULL,
    PRIMARY KEY (query_id, stage, model_id)
);
CREATE INDEX council_stages_created ON council_stages(created_at);

-- A row for every answer, failed ones too.
CREATE TABLE model_runs (
    run_id              TEXT PRIMARY KEY,
    query_id            TEXT NOT NULL,
    user_id             INTEGER NOT NULL,
    conversation_id     TEXT NOT NULL,           -- the session
    model_id            TEXT NOT NULL,
    round               TEXT NOT NULL,           -- answer, peer_review
    raw_response        TEXT NOT NULL DEFAULT '', -- the first 500 characters, sealed
    utility_score       INTEGER,                 -- NULL for fast and single answers
    confidence_score    INTEGER,                 -- as reported
    vcg_welfare_score   INTEGER,                 -- NULL for fast and single answers
    vcg_winner          INTEGER NOT NULL DEFAULT 0,
    corrections_applied TEXT NOT NULL DEFAULT '[]', -- ids, JSON
    latency_ms          INTEGER NOT NULL DEFAULT 0, -- to the first token
    total_ms            INTEGER NOT NULL DEFAULT 0,
    input_tokens        INTEGER NOT NULL DEFAULT 0,
    output_tokens       INTEGER NOT NULL DEFAULT 0,
    micro_usd           INTEGER,                 -- NULL where no price is known
    raw_domain          TEXT NOT NULL DEFAULT '', -- as the model named it
    domain              TEXT NOT NULL DEFAULT 'general',
    state               TEXT NOT NULL,           -- ok, failed, late
    error               TEXT NOT NULL DEFAULT '',
    claim               INTEGER NOT NULL DEFAULT 0, -- answers with one number agree; 0: not known
    verdict             TEXT NOT NULL DEFAULT '', -- correct, incorrect
    verdict_by          TEXT NOT NULL DEFAULT '', -- silence, review, correction, pick
    created_at          TEXT NOT NULL
);
CREATE INDEX idx_run_model ON model_runs(model_id, created_at);
CREATE INDEX idx_run_conv ON model_runs(conversation_id);
CREATE INDEX model_runs_query ON model_runs(query_id);
CREATE INDEX model_runs_user ON model_runs(user_id, created_at);
CREATE INDEX model_runs_domain ON model_runs(domain, raw_domain);

-- What outcomes said about models, in counts, of all users together.
CREATE TABLE model_counters (
    model_id      TEXT PRIMARY KEY,
    score         INTEGER NOT NULL,              -- 0 to 100
    correct_count INTEGER NOT NULL DEFAULT 0,
    wrong_count   INTEGER NOT NULL DEFAULT 0,
    latency_ms    INTEGER NOT NULL DEFAULT 0,    -- a moving mean, to the first token
    bins          TEXT NOT NULL DEFAULT '[]',    -- of the calibration, JSON
    updated_at    TEXT NOT NULL
);
CREATE TABLE model_domains (
    model_id TEXT NOT NULL,
    domain   TEXT NOT NULL,                      -- '' is the model as a whole
    wins     INTEGER NOT NULL DEFAULT 0,         -- in millionths
    runs     INTEGER NOT NULL DEFAULT 0,         -- in millionths
    PRIMARY KEY (model_id, domain)
);

-- Changes of a model's score.
CREATE TABLE audit_log (
    audit_id          TEXT PRIMARY KEY,
    user_id           INTEGER NOT NULL,
    query_id          TEXT NOT NULL DEFAULT '',
    model_id          TEXT NOT NULL,
    event_type        TEXT NOT NULL,             -- score_update
    score_before      INTEGER NOT NULL,
    score_after       INTEGER NOT NULL,
    verdict           TEXT NOT NULL,             -- correct, incorrect, peer_review_flagged_incorrect
    correction_stored INTEGER NOT NULL DEFAULT 0,
    query_preview     TEXT NOT NULL DEFAULT '',  -- 80 characters, sealed
    payload           TEXT NOT NULL DEFAULT '{}',
    created_at        TEXT NOT NULL
);
CREATE INDEX idx_audit_model ON audit_log(model_id, created_at);
CREATE INDEX idx_audit_event ON audit_log(event_type, created_at);
CREATE INDEX audit_log_user ON audit_log(user_id);

CREATE TABLE domain_nodes (
    node_id      TEXT PRIMARY KEY,
    parent_id    TEXT,                           -- NULL of a root
    depth        INTEGER NOT NULL,
    display_name TEXT NOT NULL,
    aliases      TEXT NOT NULL DEFAULT '[]',     -- JSON
    embedding    BLOB,
    query_count  INTEGER NOT NULL DEFAULT 0,
    is_l0_root   INTEGER NOT NULL DEFAULT 0,
    last_seen    TEXT NOT NULL DEFAULT ''
);
CREATE INDEX idx_dn_parent ON domain_nodes(parent_id);
CREATE INDEX idx_dn_depth ON domain_nodes(depth);

CREATE TABLE domain_candidates (
    raw_string    TEXT PRIMARY KEY,
    nearest_node  TEXT NOT NULL,
    similarity    INTEGER NOT NULL,              -- in millionths
    query_count   INTEGER NOT NULL DEFAULT 0,
    model_sources TEXT NOT NULL DEFAULT '[]',    -- JSON
    first_seen    TEXT NOT NULL,
    last_seen     TEXT NOT NULL
);
CREATE INDEX domain_candidates_seen ON domain_candidates(last_seen);

-- Conversations with the columns that a council's tables refer to.
CREATE VIEW council_conversations AS
    SELECT id AS conversation_id, user_id, title, project_id, created_at, last_accessed AS updated_at FROM sessions;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
