-- +goose Up
-- Times are RFC 3339 UTC text with six fractional digits, written by the
-- program; booleans are 0 and 1; JSON columns hold valid JSON or NULL.

-- ---------------------------------------------------------------- core/session
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
);
CREATE INDEX idx_sessions_module ON sessions(module);
CREATE INDEX idx_sessions_archived ON sessions(archived);
CREATE INDEX idx_sessions_source ON sessions(source);
CREATE INDEX idx_sessions_last_accessed ON sessions(last_accessed DESC, id DESC);
CREATE INDEX idx_sessions_agent_type ON sessions(agent_type);
CREATE INDEX idx_sessions_user ON sessions(user_id, last_accessed DESC, id DESC);

CREATE TABLE session_tags (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    tag        TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (session_id, tag)
);
CREATE INDEX idx_session_tags_tag ON session_tags(tag);

CREATE TABLE session_contexts (
    session_id  TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    folder_path TEXT NOT NULL,
    added_at    TEXT NOT NULL,
    PRIMARY KEY (session_id, folder_path)
);
CREATE INDEX idx_session_contexts_session ON session_contexts(session_id);
CREATE INDEX idx_session_contexts_folder ON session_contexts(folder_path);

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
CREATE UNIQUE INDEX chats_session ON chats(session_id) WHERE session_id IS NOT NULL;

CREATE TABLE session_aliases (
    user_id    INTEGER NOT NULL,
    alias      TEXT NOT NULL,               -- a client's own id
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    PRIMARY KEY (user_id, alias)
);

-- ------------------------------------------------------------------ later: rag
CREATE TABLE chunks (
    id           TEXT PRIMARY KEY,
    content_id   TEXT NOT NULL,
    content_type TEXT NOT NULL,
    field        TEXT NOT NULL DEFAULT 'content',
    chunk_index  INTEGER NOT NULL,
    chunk_text   TEXT NOT NULL,
    embedding    BLOB,
    created_at   TEXT NOT NULL,
    UNIQUE (content_id, field, chunk_index)
);
CREATE INDEX idx_chunks_content_id ON chunks(content_id);
CREATE INDEX idx_chunks_content_type ON chunks(content_type);

CREATE TABLE index_manifest (
    content_id   TEXT PRIMARY KEY,
    content_type TEXT NOT NULL,
    content_hash TEXT,
    title        TEXT,
    indexed_at   TEXT NOT NULL,
    chunk_count  INTEGER NOT NULL,
    source_path  TEXT,
    metadata     TEXT
);

-- ------------------------------------------------------------------ core/store
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
CREATE INDEX audit_at ON audit_events(at, id);

-- --------------------------------------------------------------------- pairing
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
);
CREATE UNIQUE INDEX pairing_one_pending ON pairing_requests(bot, platform_user_id, scope, place) WHERE status = 'pending';
CREATE INDEX idx_pairing_requests_status ON pairing_requests(status, created_at);
CREATE INDEX idx_pairing_requests_platform ON pairing_requests(platform, platform_user_id);
CREATE INDEX pairing_code ON pairing_requests(code) WHERE status = 'pending';

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
CREATE INDEX identities_user ON identities(user_id);

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
CREATE INDEX access_user ON access(user_id);

CREATE TABLE places (
    bot          TEXT NOT NULL,
    place        TEXT NOT NULL,
    name         TEXT NOT NULL DEFAULT '',
    enabled      INTEGER NOT NULL DEFAULT 0,
    level        TEXT NOT NULL DEFAULT 'sandboxed',
    mention_mode TEXT NOT NULL DEFAULT 'mention_only',
    "by"         TEXT NOT NULL DEFAULT '',
    at           TEXT NOT NULL,
    PRIMARY KEY (bot, place)
);

CREATE TABLE blocks (
    platform         TEXT NOT NULL,
    platform_user_id TEXT NOT NULL,
    bot              TEXT NOT NULL,         -- '*' = every bot
    "by"             TEXT NOT NULL DEFAULT '',
    at               TEXT NOT NULL,
    PRIMARY KEY (platform, platform_user_id, bot)
);

-- ------------------------------------------------------------- core/permission
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
);
CREATE INDEX asks_chat ON asks(bot, chat, state);
CREATE INDEX asks_run ON asks(run) WHERE state = 'open';

-- ------------------------------------------------------------------ core/usage
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
CREATE INDEX usage_at ON usage(at);
CREATE INDEX usage_run ON usage(run);

-- ----------------------------------------------------------- core/orchestrator
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
);
CREATE INDEX runs_session ON runs(session_id, started);
CREATE INDEX runs_running ON runs(state) WHERE state = 'running';
CREATE INDEX runs_ended ON runs(ended) WHERE ended <> '';

CREATE TABLE run_events (
    run     TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    n       INTEGER NOT NULL,               -- number of the row's last event
    data    TEXT NOT NULL,                  -- the events, one JSON object a line
    PRIMARY KEY (run, attempt, n)
) WITHOUT ROWID;

-- -------------------------------------------------------------------- web/auth
CREATE TABLE api_keys (
    id           TEXT PRIMARY KEY,
    label        TEXT NOT NULL,
    sha256       TEXT NOT NULL UNIQUE,
    user_id      INTEGER NOT NULL,
    trust_level  TEXT NOT NULL,
    scopes       TEXT NOT NULL DEFAULT '',  -- space separated; '' = none
    created_at   TEXT NOT NULL,
    last_used_at TEXT NOT NULL DEFAULT ''
);

CREATE TABLE admin_accounts (
    user_id      INTEGER PRIMARY KEY,
    name         TEXT NOT NULL UNIQUE,
    argon2id     TEXT NOT NULL,
    must_change  INTEGER NOT NULL DEFAULT 0,
    used         INTEGER NOT NULL DEFAULT 0,
    failed       INTEGER NOT NULL DEFAULT 0,
    locked_until TEXT NOT NULL DEFAULT ''
);

CREATE TABLE admin_sessions (
    token  TEXT PRIMARY KEY,                -- hashed
    data   BLOB NOT NULL,
    expiry TEXT NOT NULL
);
CREATE INDEX admin_sessions_expiry ON admin_sessions(expiry);

-- ------------------------------------------------------------------ core/queue
CREATE TABLE inbox (
    seq         INTEGER PRIMARY KEY,
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
    UNIQUE (bot, update_id)
);
CREATE UNIQUE INDEX inbox_message ON inbox(bot, chat, message_id, edit) WHERE kind = 'message' AND message_id <> '';
CREATE INDEX inbox_lane ON inbox(lane, seq) WHERE state IN ('ready', 'limited');
CREATE INDEX inbox_request ON inbox(request, seq) WHERE state = 'held';
CREATE INDEX inbox_dead ON inbox(seq) WHERE state = 'dead';
CREATE INDEX inbox_sender ON inbox(bot, sender, sent_at) WHERE kind = 'message' AND counts = 1;
CREATE INDEX inbox_run ON inbox(run) WHERE run <> '';
CREATE INDEX inbox_received ON inbox(received_at) WHERE state IN ('done', 'refused');

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
CREATE INDEX lane_pending ON lane(control, not_before) WHERE pending = 1 AND owner = '';
CREATE INDEX lane_owned ON lane(lease_until) WHERE owner <> '';

CREATE TABLE lease (
    name          TEXT PRIMARY KEY,
    owner         TEXT NOT NULL DEFAULT '',
    epoch         INTEGER NOT NULL DEFAULT 0,
    until         TEXT NOT NULL DEFAULT '',
    blocked_until TEXT NOT NULL DEFAULT ''
);

CREATE TABLE outbox (
    seq                 INTEGER PRIMARY KEY,
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
    sent_at             TEXT NOT NULL DEFAULT '',
    UNIQUE (key, ordinal)
);
CREATE INDEX outbox_open ON outbox(bot, chat, seq) WHERE state IN ('ready', 'sending');
CREATE INDEX outbox_unknown ON outbox(seq) WHERE state IN ('unknown', 'failed');
CREATE INDEX outbox_sent ON outbox(sent_at) WHERE state = 'sent';

CREATE TABLE cursors (
    name       TEXT PRIMARY KEY,
    value      TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

-- +goose Down
SELECT 'the baseline is not taken back: restore the copy kept beside the database';
