-- What all migrations make of an empty file. Written by create_test.go: do not edit.
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL);
CREATE TABLE sessions (
    id                TEXT PRIMARY KEY,
    title             TEXT,
    module            TEXT NOT NULL DEFAULT 'chat',
    source            TEXT NOT NULL DEFAULT 'gatehouse',
    working_directory TEXT,
    vault_root        TEXT,
    model             TEXT,
    message_count     INTEGER NOT NULL DEFAULT 0,
    archived          INTEGER NOT NULL DEFAULT 0,
    created_at        TEXT NOT NULL,
    last_accessed     TEXT NOT NULL,
    continued_from    TEXT,
    agent_type        TEXT,
    metadata          TEXT,
    user_id           INTEGER NOT NULL DEFAULT 0,        -- owner; 0 unknown: the operator only, sandboxed
    trust_level       TEXT NOT NULL DEFAULT 'sandboxed', -- a ceiling
    title_source      TEXT NOT NULL DEFAULT 'default',   -- default, model, user
    workspace         TEXT,
    project_id        TEXT
, chosen_model TEXT NOT NULL DEFAULT '', para_id TEXT NOT NULL DEFAULT '', original_id TEXT, scope TEXT NOT NULL DEFAULT '');
CREATE TABLE session_tags (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    tag        TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (session_id, tag)
);
CREATE TABLE session_contexts (
    session_id  TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    folder_path TEXT NOT NULL,
    added_at    TEXT NOT NULL,
    PRIMARY KEY (session_id, folder_path)
);
CREATE TABLE chats (
    bot        TEXT NOT NULL,
    chat       TEXT NOT NULL,               -- the connector's string, thread included
    thread     TEXT NOT NULL DEFAULT '',
    place      TEXT NOT NULL DEFAULT '',
    session_id TEXT,                        -- NULL between /new and the next message
    kind       TEXT NOT NULL DEFAULT 'dm',  -- dm, group
    busy_mode  TEXT NOT NULL DEFAULT '',    -- '' = the setting
    agent      TEXT NOT NULL DEFAULT '',
    model      TEXT NOT NULL DEFAULT '',
    name       TEXT NOT NULL DEFAULT '',    -- the group's title, cleaned
    updated_at TEXT NOT NULL,
    PRIMARY KEY (bot, chat)
);
CREATE TABLE session_aliases (
    user_id    INTEGER NOT NULL,
    alias      TEXT NOT NULL,               -- a client's own id
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    PRIMARY KEY (user_id, alias)
);
CREATE TABLE index_manifest (
    content_id   TEXT PRIMARY KEY,
    content_type TEXT NOT NULL,
    content_hash TEXT,
    title        TEXT,
    indexed_at   TEXT NOT NULL,
    chunk_count  INTEGER NOT NULL,
    source_path  TEXT,
    metadata     TEXT
, area TEXT NOT NULL DEFAULT 'vault', open INTEGER NOT NULL DEFAULT 0, size INTEGER NOT NULL DEFAULT 0, modified TEXT NOT NULL DEFAULT '', fault TEXT NOT NULL DEFAULT '', changed TEXT NOT NULL DEFAULT '', part INTEGER NOT NULL DEFAULT 0, behind INTEGER NOT NULL DEFAULT 0);
CREATE TABLE metadata (
    key        TEXT PRIMARY KEY,
    value      TEXT,
    updated_at TEXT NOT NULL
);
CREATE TABLE audit_events (
    id      INTEGER PRIMARY KEY,
    at      TEXT NOT NULL,
    user_id INTEGER NOT NULL,               -- who did it; 0 the program
    via     TEXT NOT NULL,                  -- panel, chat, api, cli, upkeep
    action  TEXT NOT NULL,                  -- pairing.approve, access.revoke, bot.stop …
    subject TEXT NOT NULL DEFAULT '',       -- id of what it was done to
    detail  TEXT                            -- JSON; ids only
);
CREATE TABLE pairing_requests (
    id                    TEXT PRIMARY KEY,
    platform              TEXT NOT NULL,
    platform_user_id      TEXT NOT NULL,
    platform_user_display TEXT NOT NULL DEFAULT '',
    platform_chat_id      TEXT NOT NULL,
    status                TEXT NOT NULL DEFAULT 'pending',
    approved_trust_level  TEXT,
    created_at            TEXT NOT NULL,
    resolved_at           TEXT,
    resolved_by           TEXT,
    bot                   TEXT NOT NULL DEFAULT '',
    scope                 TEXT NOT NULL DEFAULT 'dm',
    place                 TEXT NOT NULL DEFAULT '',
    code                  TEXT NOT NULL DEFAULT '',
    code_expires_at       TEXT NOT NULL DEFAULT '',
    expires_at            TEXT NOT NULL DEFAULT '',
    attempts              INTEGER NOT NULL DEFAULT 0,
    replied_at            TEXT NOT NULL DEFAULT '',  -- the last notice to this stranger
    first_message         TEXT NOT NULL DEFAULT ''   -- cut to 500 bytes
, blocked INTEGER NOT NULL DEFAULT 0, edits INTEGER NOT NULL DEFAULT 0, card_at TEXT NOT NULL DEFAULT '', card_stale INTEGER NOT NULL DEFAULT 0, cooled INTEGER NOT NULL DEFAULT 0, noted_at TEXT NOT NULL DEFAULT '');
CREATE TABLE users (
    id         INTEGER PRIMARY KEY,
    display    TEXT NOT NULL DEFAULT '',
    role       TEXT NOT NULL DEFAULT 'guest',  -- owner, admin, guest
    created_at TEXT NOT NULL,
    settings   TEXT
);
CREATE TABLE identities (
    platform         TEXT NOT NULL,
    platform_user_id TEXT NOT NULL,
    user_id          INTEGER NOT NULL REFERENCES users(id) ON DELETE CASCADE,
    display          TEXT NOT NULL DEFAULT '',
    created_at       TEXT NOT NULL,
    PRIMARY KEY (platform, platform_user_id)
);
CREATE TABLE access (
    id           INTEGER PRIMARY KEY,
    bot          TEXT NOT NULL,
    user_id      INTEGER NOT NULL REFERENCES users(id) ON DELETE CASCADE,
    scope        TEXT NOT NULL,
    place        TEXT NOT NULL DEFAULT '',
    trust_level  TEXT NOT NULL,
    expires_at   TEXT NOT NULL DEFAULT '',  -- '' = without end
    raised_to    TEXT NOT NULL DEFAULT '',
    raised_until TEXT NOT NULL DEFAULT '',
    chat         TEXT NOT NULL DEFAULT '',  -- the person's direct chat with this bot, where known
    "by"         TEXT NOT NULL DEFAULT '',
    at           TEXT NOT NULL,
    UNIQUE (bot, user_id, scope, place)
);
CREATE TABLE places (
    bot          TEXT NOT NULL,
    place        TEXT NOT NULL,
    name         TEXT NOT NULL DEFAULT '',
    enabled      INTEGER NOT NULL DEFAULT 0,
    level        TEXT NOT NULL DEFAULT 'sandboxed',
    mention_mode TEXT NOT NULL DEFAULT 'mention_only',
    "by"         TEXT NOT NULL DEFAULT '',
    at           TEXT NOT NULL, agent TEXT NOT NULL DEFAULT '', model TEXT NOT NULL DEFAULT '', rate_n INTEGER NOT NULL DEFAULT 0, rate_per INTEGER NOT NULL DEFAULT 0, rate_from TEXT NOT NULL DEFAULT '', rate_used INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (bot, place)
);
CREATE TABLE blocks (
    platform         TEXT NOT NULL,
    platform_user_id TEXT NOT NULL,
    bot              TEXT NOT NULL,         -- '*' = every bot
    "by"             TEXT NOT NULL DEFAULT '',
    at               TEXT NOT NULL, took TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (platform, platform_user_id, bot)
);
CREATE TABLE asks (
    id         TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,               -- permission, question, pairing, choice
    run        TEXT NOT NULL DEFAULT '',    -- the run, or the pairing request's id
    bot        TEXT NOT NULL DEFAULT '',
    chat       TEXT NOT NULL DEFAULT '',
    user_id    INTEGER NOT NULL DEFAULT 0,  -- who may answer
    payload    TEXT NOT NULL DEFAULT '{}',
    state      TEXT NOT NULL DEFAULT 'open', -- open, decided, expired, closed
    decision   TEXT NOT NULL DEFAULT '',
    decided_by TEXT NOT NULL DEFAULT '',
    decided_at TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL DEFAULT ''
, asker INTEGER NOT NULL DEFAULT 0);
CREATE TABLE usage (
    id           INTEGER PRIMARY KEY,
    at           TEXT NOT NULL,
    run          TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    user_id      INTEGER NOT NULL,
    bot          TEXT NOT NULL,
    model        TEXT NOT NULL,
    input        INTEGER NOT NULL DEFAULT 0,
    output       INTEGER NOT NULL DEFAULT 0,
    cache_read   INTEGER NOT NULL DEFAULT 0,
    cache_write  INTEGER NOT NULL DEFAULT 0,
    micro_usd    INTEGER,                   -- NULL where no price is known
    state        TEXT NOT NULL DEFAULT 'settled' -- reserved, settled
);
CREATE TABLE runs (
    id         TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    attempt    INTEGER NOT NULL,
    state      TEXT NOT NULL,               -- running, done, aborted, error
    bot        TEXT NOT NULL DEFAULT '',
    chat       TEXT NOT NULL DEFAULT '',
    user_id    INTEGER NOT NULL DEFAULT 0,
    model      TEXT NOT NULL DEFAULT '',
    started    TEXT NOT NULL,
    ended      TEXT NOT NULL DEFAULT '',
    error      TEXT NOT NULL DEFAULT ''
, fault TEXT NOT NULL DEFAULT '', waited_ms INTEGER NOT NULL DEFAULT 0, follow TEXT NOT NULL DEFAULT '');
CREATE TABLE run_events (
    run     TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    n       INTEGER NOT NULL,               -- number of the row's last event
    data    TEXT NOT NULL,                  -- the events, one JSON object a line
    PRIMARY KEY (run, attempt, n)
) WITHOUT ROWID;
CREATE TABLE api_keys (
    id           TEXT PRIMARY KEY,
    label        TEXT NOT NULL,
    sha256       TEXT NOT NULL UNIQUE,
    user_id      INTEGER NOT NULL,
    trust_level  TEXT NOT NULL,
    scopes       TEXT NOT NULL DEFAULT '',  -- space separated; '' = none
    created_at   TEXT NOT NULL,
    last_used_at TEXT NOT NULL DEFAULT ''
, expires_at TEXT NOT NULL DEFAULT '', old_sha256 TEXT NOT NULL DEFAULT '', old_expires_at TEXT NOT NULL DEFAULT '', made_by INTEGER NOT NULL DEFAULT 0);
CREATE TABLE admin_accounts (
    user_id      INTEGER PRIMARY KEY,
    name         TEXT NOT NULL UNIQUE,
    argon2id     TEXT NOT NULL,
    must_change  INTEGER NOT NULL DEFAULT 0,
    used         INTEGER NOT NULL DEFAULT 0,
    failed       INTEGER NOT NULL DEFAULT 0,
    locked_until TEXT NOT NULL DEFAULT ''
, role TEXT NOT NULL DEFAULT 'admin', created_at TEXT NOT NULL DEFAULT '', signed_in_at TEXT NOT NULL DEFAULT '', by_link INTEGER NOT NULL DEFAULT 0);
CREATE TABLE admin_sessions (
    token  TEXT PRIMARY KEY,                -- hashed
    data   BLOB NOT NULL,
    expiry TEXT NOT NULL
);
CREATE TABLE lane (
    key         TEXT PRIMARY KEY,
    ver         INTEGER NOT NULL DEFAULT 0,
    pending     INTEGER NOT NULL DEFAULT 0,
    owner       TEXT NOT NULL DEFAULT '',
    epoch       INTEGER NOT NULL DEFAULT 0,
    lease_until TEXT NOT NULL DEFAULT '',
    not_before  TEXT NOT NULL DEFAULT '',
    preview     TEXT NOT NULL DEFAULT '',   -- the platform's id of the preview now standing
    control     INTEGER NOT NULL DEFAULT 0  -- /stop, answers, callbacks: never waits behind a run
) WITHOUT ROWID;
CREATE TABLE lease (
    name          TEXT PRIMARY KEY,
    owner         TEXT NOT NULL DEFAULT '',
    epoch         INTEGER NOT NULL DEFAULT 0,
    until         TEXT NOT NULL DEFAULT '',
    blocked_until TEXT NOT NULL DEFAULT ''
);
CREATE TABLE cursors (
    name       TEXT PRIMARY KEY,
    value      TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
CREATE TABLE tool_grants (
    id         TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    user_id    INTEGER NOT NULL,
    trust      TEXT NOT NULL,
    kind       TEXT NOT NULL,               -- read, write, bash
    pattern    TEXT NOT NULL,               -- a glob, or patterns of commands
    ask        TEXT NOT NULL DEFAULT '',    -- the ask that it answered
    granted_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (session_id, user_id, trust, kind, pattern)
);
CREATE TABLE invites (
    id          TEXT PRIMARY KEY,
    hash        TEXT NOT NULL UNIQUE,        -- of the code
    bot         TEXT NOT NULL,
    trust_level TEXT NOT NULL,
    scope       TEXT NOT NULL,
    place       TEXT NOT NULL DEFAULT '',
    lasts       INTEGER NOT NULL DEFAULT 0,  -- seconds of access from its use on; 0 = without end
    expires_at  TEXT NOT NULL,
    uses_left   INTEGER NOT NULL,
    "by"        INTEGER NOT NULL,            -- the user who invites
    at          TEXT NOT NULL
);
CREATE TABLE link_codes (
    hash       TEXT PRIMARY KEY,
    user_id    INTEGER NOT NULL UNIQUE,
    bot        TEXT NOT NULL,                -- where it was asked for
    chat       TEXT NOT NULL,
    expires_at TEXT NOT NULL
, asked TEXT NOT NULL DEFAULT '');
CREATE TABLE attachments (
    path       TEXT PRIMARY KEY,            -- in the vault
    user_id    INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    run        TEXT NOT NULL,
    at         TEXT NOT NULL
, size INTEGER, page_count INTEGER, word_count INTEGER, truncated INTEGER, preview TEXT);
CREATE TABLE rollups (
    bucket TEXT NOT NULL,
    series TEXT NOT NULL,                   -- name, a stroke, and what of it: "tokens|openai/gpt-5"
    value  INTEGER NOT NULL,
    PRIMARY KEY (bucket, series)
) WITHOUT ROWID;
CREATE TABLE attachment_use (
    user_id INTEGER NOT NULL PRIMARY KEY,
    bytes   INTEGER NOT NULL
);
CREATE TABLE raises (
    id         TEXT PRIMARY KEY,
    state      TEXT NOT NULL,               -- asked, held
    bot        TEXT NOT NULL,
    chat       TEXT NOT NULL,
    user_id    INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    seconds    INTEGER NOT NULL,            -- asked for, then confirmed
    at         TEXT NOT NULL,               -- when it was asked for, then confirmed
    ends       TEXT NOT NULL,               -- when the asking, then the trust is over
    "by"       TEXT NOT NULL DEFAULT '',    -- who confirmed
    UNIQUE (session_id, state)
);
CREATE TABLE budgets (
    scope     TEXT NOT NULL,                -- user
    id        TEXT NOT NULL,                -- of the person
    period    TEXT NOT NULL,                -- day, month
    tokens    INTEGER NOT NULL DEFAULT 0,
    micro_usd INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, id, period)
);
CREATE TABLE admin_totp (
    user_id   INTEGER PRIMARY KEY,
    secret    TEXT NOT NULL,
    confirmed INTEGER NOT NULL DEFAULT 0,
    step      INTEGER NOT NULL DEFAULT 0,
    at        TEXT NOT NULL
);
CREATE TABLE admin_recovery (
    user_id INTEGER NOT NULL,
    sha256  TEXT NOT NULL,
    PRIMARY KEY (user_id, sha256)
) WITHOUT ROWID;
CREATE TABLE chunks (
    n            INTEGER PRIMARY KEY,       -- rowid in document_words
    id           TEXT NOT NULL UNIQUE,      -- chunk:<content_id>:<field>:<chunk_index>
    content_id   TEXT NOT NULL,
    content_type TEXT NOT NULL,
    field        TEXT NOT NULL DEFAULT 'content',
    chunk_index  INTEGER NOT NULL,
    chunk_text   TEXT NOT NULL,
    embedding    BLOB,
    created_at   TEXT NOT NULL,
    line         INTEGER NOT NULL DEFAULT 1, embedder INTEGER NOT NULL DEFAULT 0, length INTEGER NOT NULL DEFAULT 0, piece INTEGER NOT NULL DEFAULT 0, -- of the file, where it begins
    UNIQUE (content_id, field, chunk_index)
);
CREATE TABLE chunk_signs (
    model INTEGER NOT NULL,
    block INTEGER NOT NULL,                 -- chunks.n / 256
    slots BLOB NOT NULL,
    PRIMARY KEY (model, block)
);
CREATE TABLE para_ids (
    id         TEXT PRIMARY KEY,            -- 12 of a-z0-9; 6 or 8 from older files
    type       TEXT NOT NULL,               -- journal, chat, chat-log …
    path       TEXT NOT NULL,               -- the file in the vault; of a chat the session's id
    created_at TEXT NOT NULL,
    user_id    INTEGER NOT NULL DEFAULT 0   -- whose it is
);
CREATE TABLE schedule_agents (
    name  TEXT PRIMARY KEY,
    rule  TEXT NOT NULL,                  -- as the file had it, with its zone: times count from a change on
    since TEXT NOT NULL
);
CREATE TABLE schedule_runs (
    agent   TEXT NOT NULL,
    date    TEXT NOT NULL,                -- 2026-01-28, in the agent's time zone
    n       INTEGER NOT NULL,             -- 1, 2 …: of the date
    run     TEXT NOT NULL DEFAULT '',     -- runs.id
    session TEXT NOT NULL DEFAULT '',
    cause   TEXT NOT NULL,                -- schedule, missed, or who started it
    result  TEXT NOT NULL DEFAULT '',     -- completed, completed_no_output, skipped, error; '' while it runs
    error   TEXT NOT NULL DEFAULT '',
    output  TEXT NOT NULL DEFAULT '',     -- the file that it has written, in the vault
    model   TEXT NOT NULL DEFAULT '',
    due     TEXT NOT NULL,
    created TEXT NOT NULL,
    ended   TEXT NOT NULL DEFAULT '',
    noted   INTEGER NOT NULL DEFAULT 0,   -- its end is in the agent's state file
    PRIMARY KEY (agent, date, n)
);
CREATE TABLE reminders (
    id       INTEGER PRIMARY KEY,
    user_id  INTEGER NOT NULL,
    made     TEXT NOT NULL UNIQUE,          -- what asked for it: a message or a call of a tool
    bot      TEXT NOT NULL,
    chat     TEXT NOT NULL,
    thread   TEXT NOT NULL DEFAULT '',
    place    TEXT NOT NULL DEFAULT '',
    platform TEXT NOT NULL,                 -- of the account that asked
    sender   TEXT NOT NULL,
    text     TEXT NOT NULL,
    rule     TEXT NOT NULL DEFAULT '',      -- of one that is repeated
    zone     TEXT NOT NULL DEFAULT '',
    due      TEXT NOT NULL,
    n        INTEGER NOT NULL DEFAULT 0,    -- how often it was delivered
    created  TEXT NOT NULL
);
CREATE TABLE activity (
    run        TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    user_id    INTEGER NOT NULL,
    at         TEXT NOT NULL,               -- when the run ended
    number     INTEGER NOT NULL,            -- of the exchange in its conversation, from 1
    title      TEXT NOT NULL DEFAULT '',    -- of the conversation then
    agent      TEXT NOT NULL DEFAULT '',
    summary    TEXT NOT NULL DEFAULT '',
    day        TEXT NOT NULL,               -- of the list of activity, UTC
    log_day    TEXT NOT NULL,               -- of the chat log, in the owner's time zone
    state      TEXT NOT NULL DEFAULT 'new', -- new, written, fault
    fault      TEXT NOT NULL DEFAULT ''     -- why it is in no file
);
CREATE TABLE activity_entries (
    session_id TEXT NOT NULL,
    log_day    TEXT NOT NULL,
    user_id    INTEGER NOT NULL,
    para_id    TEXT NOT NULL,
    time       TEXT NOT NULL,               -- HH:MM, in the heading
    title      TEXT NOT NULL DEFAULT '',    -- as it was written last
    PRIMARY KEY (session_id, log_day)
);
CREATE TABLE deleted_imports (
    user_id     INTEGER NOT NULL,
    source      TEXT NOT NULL,               -- of the session
    original_id TEXT NOT NULL,               -- that it had where it came from
    at          TEXT NOT NULL,               -- when it was deleted
    PRIMARY KEY (user_id, source, original_id)
);
CREATE TABLE responses (
    id         TEXT PRIMARY KEY,            -- as clients name it
    run        TEXT NOT NULL,
    user_id    INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    number     INTEGER NOT NULL,            -- of the response in its session, from 1
    previous   TEXT NOT NULL DEFAULT '',    -- the response that it goes on from
    state      TEXT NOT NULL,               -- open, stopping, ended
    hidden     INTEGER NOT NULL DEFAULT 0,  -- 1: not to be read, and its session is deleted after its run; 2: its session goes on
    created    TEXT NOT NULL,
    bytes      INTEGER NOT NULL,            -- of request and answer
    request    TEXT NOT NULL,               -- JSON
    answer     TEXT NOT NULL DEFAULT ''     -- JSON; '' while it is open
, body TEXT NOT NULL DEFAULT '');
CREATE TABLE sync_files (
    path     TEXT PRIMARY KEY,              -- relative to the vault
    hash     TEXT NOT NULL,                 -- sha256:…; of a deleted file what it was last
    size     INTEGER NOT NULL,
    modified INTEGER NOT NULL,              -- Unix time in nanoseconds
    mark     TEXT NOT NULL,                 -- of size, times and inode; '': to be read again
    entries  TEXT NOT NULL DEFAULT '',      -- of a day file: ids and hashes, as JSON
    seq      INTEGER NOT NULL,              -- of the change, for cursors
    deleted  TEXT NOT NULL DEFAULT ''       -- when
);
CREATE TABLE sync_versions (
    path TEXT NOT NULL,
    hash TEXT NOT NULL,                     -- '': there was no file
    base TEXT NOT NULL DEFAULT '-',         -- what a device edited it from, '' for a new file; '-': the file itself had it
    seq  INTEGER NOT NULL,
    PRIMARY KEY (path, hash, base)
);
CREATE TABLE voice_pending (
    id      INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL,
    entry   TEXT NOT NULL,                  -- of the journal
    path    TEXT NOT NULL,                  -- of the recording, as the entry has it
    tries   INTEGER NOT NULL DEFAULT 0,
    due     TEXT NOT NULL,
    created TEXT NOT NULL, bot      TEXT NOT NULL DEFAULT '', chat     TEXT NOT NULL DEFAULT '', thread   TEXT NOT NULL DEFAULT '', place    TEXT NOT NULL DEFAULT '', message  TEXT NOT NULL DEFAULT '', platform TEXT NOT NULL DEFAULT '', sender   TEXT NOT NULL DEFAULT '',
    UNIQUE (entry, path)
);
CREATE VIRTUAL TABLE session_words USING fts5(words, starts, keys, content='', contentless_delete=1, tokenize='ascii');
CREATE TABLE voice_used (
    user_id INTEGER NOT NULL,
    day     TEXT NOT NULL,                  -- UTC
    millis  INTEGER NOT NULL,
    PRIMARY KEY (user_id, day)
);
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
CREATE TABLE domain_candidates (
    raw_string    TEXT PRIMARY KEY,
    nearest_node  TEXT NOT NULL,
    similarity    INTEGER NOT NULL,              -- in millionths
    query_count   INTEGER NOT NULL DEFAULT 0,
    model_sources TEXT NOT NULL DEFAULT '[]',    -- JSON
    first_seen    TEXT NOT NULL,
    last_seen     TEXT NOT NULL
);
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
CREATE TABLE context_backups (
    backup_id         TEXT PRIMARY KEY,
    model_id          TEXT NOT NULL,
    conversation_id   TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    user_id           INTEGER NOT NULL,           -- whose conversation it is
    backup_text       TEXT NOT NULL,
    token_estimate    INTEGER NOT NULL,
    thread_number     INTEGER NOT NULL,
    "trigger"         TEXT NOT NULL,              -- token_threshold, message_count, time_gap, manual, coverage_job_stale
    covers_message_id TEXT NOT NULL,              -- the last message that it covers
    created_at        TEXT NOT NULL
);
CREATE TABLE token_counters (
    counter_id      TEXT PRIMARY KEY,
    model_id        TEXT NOT NULL,
    conversation_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    user_id         INTEGER NOT NULL,             -- who wrote last: the backup is charged to them
    bot             TEXT NOT NULL DEFAULT '',
    trust           TEXT NOT NULL,                -- of the last message
    token_estimate  INTEGER NOT NULL,             -- since the last backup
    context_tokens  INTEGER NOT NULL DEFAULT 0,   -- of the last request, as its provider counted; 0 unknown
    window_tokens   INTEGER NOT NULL DEFAULT 0,   -- what a conversation may take
    message_count   INTEGER NOT NULL,             -- since the last backup
    thread_number   INTEGER NOT NULL DEFAULT 1,
    began_at        TEXT NOT NULL DEFAULT '',     -- of the first message since the last backup
    last_backup_at  TEXT NOT NULL DEFAULT '',
    due             TEXT NOT NULL DEFAULT '',     -- the trigger of the backup that is to be written
    failures        INTEGER NOT NULL DEFAULT 0,   -- in a row
    retry_at        TEXT NOT NULL DEFAULT '',     -- not before
    updated_at      TEXT NOT NULL,
    UNIQUE (model_id, conversation_id)
);
CREATE TABLE projects (
    project_id TEXT PRIMARY KEY,
    user_id    INTEGER NOT NULL,
    name       TEXT NOT NULL,
    name_key   TEXT NOT NULL,               -- the name, folded: one project of that name for each person
    created_at TEXT NOT NULL,
    UNIQUE (user_id, name_key)
);
CREATE TABLE project_chats (
    bot        TEXT NOT NULL,
    chat       TEXT NOT NULL,
    project_id TEXT NOT NULL REFERENCES projects(project_id) ON DELETE CASCADE,
    PRIMARY KEY (bot, chat)
);
CREATE TABLE app_sessions (
    session_id   TEXT PRIMARY KEY,
    status       TEXT NOT NULL,               -- running, clean, failed (it ended with an error), reported (it did not end)
    version      TEXT NOT NULL,
    pid          INTEGER NOT NULL,
    boot_id      TEXT NOT NULL,               -- of the machine; '' not known
    started_at   TEXT NOT NULL,
    heartbeat_at TEXT NOT NULL,               -- it was alive
    ended_at     TEXT NOT NULL DEFAULT '',    -- '' where it did not end
    told_at      TEXT NOT NULL DEFAULT ''     -- the owner was told that it did not; '' not
);
CREATE TABLE error_reports (
    report_id     TEXT PRIMARY KEY,           -- of type, message, place, context and version
    error_type    TEXT NOT NULL,              -- error, panic
    error_message TEXT NOT NULL,
    place         TEXT NOT NULL,              -- function and line
    traceback     TEXT NOT NULL,              -- functions and lines of a panic
    context       TEXT NOT NULL,              -- JSON: the bot, task or tool
    version       TEXT NOT NULL,
    count         INTEGER NOT NULL,
    first_at      TEXT NOT NULL,
    last_at       TEXT NOT NULL
);
CREATE TABLE recovery_prompts (
    prompt_id        TEXT PRIMARY KEY,
    model_id         TEXT NOT NULL,
    user_id          INTEGER NOT NULL,
    prompt_text      TEXT NOT NULL,
    generated_at     TEXT NOT NULL,
    corrections_hash TEXT NOT NULL,           -- of the corrections that it is made of
    UNIQUE (user_id, model_id)
);
CREATE VIRTUAL TABLE document_words USING fts5(title, words, keys, content='', contentless_delete=1, tokenize='ascii', prefix='3');
CREATE VIRTUAL TABLE guest_words USING fts5(title, words, keys, content='', contentless_delete=1, tokenize='ascii');
CREATE TABLE memory_tokens (
    day     TEXT    NOT NULL,
    user_id INTEGER NOT NULL,
    guest   INTEGER NOT NULL,
    tokens  INTEGER NOT NULL,
    PRIMARY KEY (day, user_id, guest)
);
CREATE TABLE nodes (
    id      TEXT PRIMARY KEY,     -- its host's name and the port it listens on
    process TEXT NOT NULL,        -- drawn at each start
    version TEXT NOT NULL,        -- of its program
    newest  INTEGER NOT NULL,     -- the newest migration that its program has
    address TEXT NOT NULL,        -- what it listens on
    state   TEXT NOT NULL,        -- serving, standby
    started INTEGER NOT NULL,
    seen    INTEGER NOT NULL      -- it was alive
);
CREATE TABLE "inbox" (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    bot         TEXT NOT NULL,
    update_id   TEXT NOT NULL,
    chat        TEXT NOT NULL,
    lane        TEXT NOT NULL,
    kind        TEXT NOT NULL,
    message_id  TEXT NOT NULL DEFAULT '',
    edit        TEXT NOT NULL DEFAULT '',
    sender      TEXT NOT NULL DEFAULT '',   -- the platform's id of the person
    trust       TEXT NOT NULL DEFAULT '',   -- stamped when admitted
    payload     TEXT,                       -- core.Inbound as JSON; NULL once finished
    state       TEXT NOT NULL,              -- ready, held, limited, done, refused, dead
    request     TEXT NOT NULL DEFAULT '',   -- the pairing request that holds the row
    run         TEXT NOT NULL DEFAULT '',
    attempts    INTEGER NOT NULL DEFAULT 0,
    error       TEXT NOT NULL DEFAULT '',
    sent_at     TEXT NOT NULL DEFAULT '',   -- the platform's time
    due         TEXT NOT NULL DEFAULT '',   -- limited: may run from then on
    counts      INTEGER NOT NULL DEFAULT 1, -- 0: further part of an album, free of rate limits
    received_at TEXT NOT NULL,
    burst       TEXT NOT NULL DEFAULT '', stopped TEXT NOT NULL DEFAULT '',   -- the messages that one paste was split into
    UNIQUE (bot, update_id)
);
CREATE TABLE "outbox" (
    seq                 INTEGER PRIMARY KEY AUTOINCREMENT,
    bot                 TEXT NOT NULL,
    chat                TEXT NOT NULL,
    thread              TEXT NOT NULL DEFAULT '',
    place               TEXT NOT NULL DEFAULT '',
    key                 TEXT NOT NULL,
    ordinal             INTEGER NOT NULL,
    body                TEXT NOT NULL,      -- one core.Part as JSON
    replaces            TEXT NOT NULL DEFAULT '',
    state               TEXT NOT NULL,      -- ready, sending, sent, unknown, failed
    attempts            INTEGER NOT NULL DEFAULT 0,
    not_before          TEXT NOT NULL DEFAULT '',
    platform_message_id TEXT NOT NULL DEFAULT '',
    error               TEXT NOT NULL DEFAULT '',
    created_at          TEXT NOT NULL,
    sent_at             TEXT NOT NULL DEFAULT '', declined_at TEXT NOT NULL DEFAULT '',
    UNIQUE (key, ordinal)
);
CREATE INDEX idx_sessions_module ON sessions(module);
CREATE INDEX idx_sessions_archived ON sessions(archived);
CREATE INDEX idx_sessions_source ON sessions(source);
CREATE INDEX idx_sessions_last_accessed ON sessions(last_accessed DESC, id DESC);
CREATE INDEX idx_sessions_agent_type ON sessions(agent_type);
CREATE INDEX idx_sessions_user ON sessions(user_id, last_accessed DESC, id DESC);
CREATE INDEX idx_session_tags_tag ON session_tags(tag);
CREATE INDEX idx_session_contexts_session ON session_contexts(session_id);
CREATE INDEX idx_session_contexts_folder ON session_contexts(folder_path);
CREATE UNIQUE INDEX chats_session ON chats(session_id) WHERE session_id IS NOT NULL;
CREATE INDEX audit_at ON audit_events(at, id);
CREATE UNIQUE INDEX pairing_one_pending ON pairing_requests(bot, platform_user_id, scope, place) WHERE status = 'pending';
CREATE INDEX idx_pairing_requests_status ON pairing_requests(status, created_at);
CREATE INDEX idx_pairing_requests_platform ON pairing_requests(platform, platform_user_id);
CREATE INDEX pairing_code ON pairing_requests(code) WHERE status = 'pending';
CREATE INDEX identities_user ON identities(user_id);
CREATE INDEX access_user ON access(user_id);
CREATE INDEX asks_chat ON asks(bot, chat, state);
CREATE INDEX asks_run ON asks(run) WHERE state = 'open';
CREATE INDEX usage_at ON usage(at);
CREATE INDEX usage_run ON usage(run);
CREATE INDEX runs_session ON runs(session_id, started);
CREATE INDEX runs_running ON runs(state) WHERE state = 'running';
CREATE INDEX runs_ended ON runs(ended) WHERE ended <> '';
CREATE INDEX admin_sessions_expiry ON admin_sessions(expiry);
CREATE INDEX lane_pending ON lane(control, not_before) WHERE pending = 1 AND owner = '';
CREATE INDEX lane_owned ON lane(lease_until) WHERE owner <> '';
CREATE INDEX tool_grants_user ON tool_grants(user_id);
CREATE INDEX asks_asker ON asks(asker, created_at) WHERE asker <> 0;
CREATE INDEX asks_open ON asks(kind, created_at) WHERE state = 'open';
CREATE INDEX usage_bot ON usage(bot, at);
CREATE INDEX audit_user ON audit_events(user_id, at, id);
CREATE INDEX audit_action ON audit_events(action, at, id);
CREATE INDEX audit_subject ON audit_events(subject, at, id);
CREATE INDEX attachments_user ON attachments(user_id);
CREATE INDEX runs_user ON runs(user_id);
CREATE INDEX session_aliases_session ON session_aliases(session_id);
CREATE INDEX usage_reserved ON usage(at) WHERE state = 'reserved';
CREATE INDEX pairing_requests_created ON pairing_requests(created_at DESC, id);
CREATE INDEX api_keys_old ON api_keys(old_sha256);
CREATE INDEX runs_failed ON runs(ended DESC) WHERE state = 'error';
CREATE INDEX chats_place ON chats(bot, place) WHERE place <> '';
CREATE INDEX sessions_archived ON sessions(last_accessed DESC, id DESC) WHERE coalesce(archived, 0) = 1;
CREATE INDEX audit_user_action ON audit_events(user_id, action, at, id);
CREATE INDEX usage_person ON usage(user_id, at, state, model, input, output, cache_read, cache_write, micro_usd);
CREATE INDEX index_manifest_area ON index_manifest(area);
CREATE INDEX index_manifest_fault ON index_manifest(source_path) WHERE fault <> '';
CREATE INDEX chunks_embedder ON chunks(embedder);
CREATE INDEX para_ids_path ON para_ids(path, type);
CREATE INDEX para_ids_user ON para_ids(user_id);
CREATE INDEX sessions_no_para_id ON sessions(id) WHERE para_id = '';
CREATE INDEX sessions_original ON sessions(original_id, source) WHERE original_id IS NOT NULL;
CREATE INDEX schedule_runs_open ON schedule_runs (result) WHERE result = '';
CREATE INDEX schedule_runs_run ON schedule_runs (run);
CREATE INDEX schedule_runs_unnoted ON schedule_runs (agent) WHERE noted = 0 AND result <> '';
CREATE INDEX reminders_due ON reminders(due);
CREATE INDEX reminders_user ON reminders(user_id);
CREATE INDEX runs_follow ON runs(ended, id) WHERE follow <> '';
CREATE UNIQUE INDEX activity_number ON activity(session_id, number);
CREATE INDEX activity_at ON activity(at);
CREATE INDEX activity_user ON activity(user_id);
CREATE INDEX activity_new ON activity(at) WHERE state = 'new';
CREATE INDEX activity_fault ON activity(at) WHERE state = 'fault';
CREATE INDEX activity_entries_user ON activity_entries(user_id);
CREATE UNIQUE INDEX index_manifest_path ON index_manifest(source_path) WHERE part = 0;
CREATE INDEX index_manifest_parts ON index_manifest(source_path) WHERE part = 1;
CREATE UNIQUE INDEX responses_session ON responses(session_id, number);
CREATE INDEX responses_user ON responses(user_id, created, bytes);
CREATE INDEX responses_open ON responses(user_id) WHERE state = 'open';
CREATE INDEX responses_run ON responses(run);
CREATE INDEX responses_created ON responses(created);
CREATE INDEX responses_pending ON responses(created) WHERE state <> 'ended' OR hidden = 1;
CREATE INDEX sync_files_seq ON sync_files(seq);
CREATE INDEX sync_files_deleted ON sync_files(deleted) WHERE deleted <> '';
CREATE INDEX voice_pending_due ON voice_pending(due);
CREATE INDEX voice_pending_user ON voice_pending(user_id);
CREATE INDEX index_manifest_behind ON index_manifest(behind, indexed_at) WHERE behind > 0;
CREATE TRIGGER session_chunks_gone AFTER DELETE ON chunks WHEN old.content_type = 'session' AND old.piece = 0 BEGIN
    DELETE FROM session_words WHERE rowid = old.n;
END;
CREATE INDEX council_queries_user ON council_queries(user_id, created_at, query_id);
CREATE INDEX council_queries_conversation ON council_queries(conversation_id, created_at);
CREATE INDEX council_queries_created ON council_queries(created_at, query_id);
CREATE INDEX council_stages_created ON council_stages(created_at);
CREATE INDEX idx_run_model ON model_runs(model_id, created_at);
CREATE INDEX idx_run_conv ON model_runs(conversation_id);
CREATE INDEX model_runs_query ON model_runs(query_id);
CREATE INDEX model_runs_user ON model_runs(user_id, created_at);
CREATE INDEX model_runs_domain ON model_runs(domain, raw_domain);
CREATE INDEX idx_audit_model ON audit_log(model_id, created_at);
CREATE INDEX idx_audit_event ON audit_log(event_type, created_at);
CREATE INDEX audit_log_user ON audit_log(user_id);
CREATE INDEX idx_dn_parent ON domain_nodes(parent_id);
CREATE INDEX idx_dn_depth ON domain_nodes(depth);
CREATE INDEX domain_candidates_seen ON domain_candidates(last_seen);
CREATE VIEW council_conversations AS
    SELECT id AS conversation_id, user_id, title, project_id, created_at, last_accessed AS updated_at FROM sessions;
CREATE UNIQUE INDEX corrections_source ON corrections(source);
CREATE UNIQUE INDEX corrections_number ON corrections(user_id, number);
CREATE INDEX corrections_expires ON corrections(expires_at) WHERE expires_at <> '';
CREATE INDEX corrections_age ON corrections(decay_class, updated_at);
CREATE INDEX correction_events_of ON correction_events(correction_id, id);
CREATE INDEX correction_events_user ON correction_events(user_id, id);
CREATE INDEX correction_events_run ON correction_events(run) WHERE run <> '';
CREATE INDEX idx_backup_conv ON context_backups(conversation_id, created_at);
CREATE INDEX idx_backup_model ON context_backups(model_id, conversation_id, thread_number);
CREATE INDEX idx_backup_user ON context_backups(user_id);
CREATE INDEX idx_counter_conv ON token_counters(conversation_id);
CREATE INDEX idx_counter_due ON token_counters(due) WHERE due <> '';
CREATE INDEX idx_counter_user ON token_counters(user_id);
CREATE INDEX project_chats_project ON project_chats(project_id);
CREATE INDEX idx_conv_project ON sessions(project_id) WHERE project_id IS NOT NULL;
CREATE INDEX idx_app_sessions_started ON app_sessions(started_at);
CREATE INDEX idx_error_reports_last ON error_reports(last_at);
CREATE INDEX idx_recovery_generated ON recovery_prompts(generated_at);
CREATE INDEX idx_attach_conv ON attachments(session_id);
CREATE TRIGGER chunks_gone AFTER DELETE ON chunks WHEN old.content_type <> 'session' BEGIN
    DELETE FROM document_words WHERE rowid = old.n;
    DELETE FROM guest_words WHERE rowid = old.n;
END;
CREATE INDEX memory_tokens_user ON memory_tokens (user_id);
CREATE UNIQUE INDEX inbox_message ON inbox(bot, chat, message_id, edit) WHERE kind = 'message' AND message_id <> '';
CREATE INDEX inbox_lane ON inbox(lane, seq) WHERE state IN ('ready', 'limited');
CREATE INDEX inbox_request ON inbox(request, seq) WHERE state = 'held';
CREATE INDEX inbox_dead ON inbox(seq) WHERE state = 'dead';
CREATE INDEX inbox_sender ON inbox(bot, sender, sent_at) WHERE kind = 'message' AND counts = 1;
CREATE INDEX inbox_run ON inbox(run) WHERE run <> '';
CREATE INDEX inbox_received ON inbox(received_at) WHERE state IN ('done', 'refused');
CREATE INDEX inbox_commands ON inbox(bot, sender, sent_at) WHERE kind = 'command' AND counts = 1;
CREATE INDEX outbox_open ON outbox(bot, chat, seq) WHERE state IN ('ready', 'sending');
CREATE INDEX outbox_unknown ON outbox(seq) WHERE state IN ('unknown', 'failed');
CREATE INDEX outbox_sent ON outbox(sent_at) WHERE state = 'sent';
CREATE INDEX inbox_presses ON inbox(bot, sender, sent_at) WHERE kind IN ('callback', 'edit') AND counts = 1;
INSERT INTO sqlite_sequence VALUES ('inbox', 0);
INSERT INTO sqlite_sequence VALUES ('outbox', 0);
INSERT INTO session_words(session_words, rank) VALUES ('automerge', 0);
INSERT INTO session_words(session_words, rank) VALUES ('crisismerge', 64);
INSERT INTO document_words(document_words, rank) VALUES ('automerge', 0);
INSERT INTO document_words(document_words, rank) VALUES ('crisismerge', 64);
INSERT INTO document_words(document_words, rank) VALUES ('rank', 'bm25(2.0, 1.0, 0.0)');
INSERT INTO guest_words(guest_words, rank) VALUES ('automerge', 0);
INSERT INTO guest_words(guest_words, rank) VALUES ('crisismerge', 64);
INSERT INTO guest_words(guest_words, rank) VALUES ('rank', 'bm25(2.0, 1.0, 0.0)');
