-- +goose Up
-- --------------------------------------------------------- core/memory/backup
-- Handoff notes that models wrote of conversations; only added. The text is encrypted.
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
CREATE INDEX idx_backup_conv ON context_backups(conversation_id, created_at);
CREATE INDEX idx_backup_model ON context_backups(model_id, conversation_id, thread_number);
CREATE INDEX idx_backup_user ON context_backups(user_id);

-- What was said since the last backup, for each model that answered in a conversation.
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
CREATE INDEX idx_counter_conv ON token_counters(conversation_id);
CREATE INDEX idx_counter_due ON token_counters(due) WHERE due <> '';
CREATE INDEX idx_counter_user ON token_counters(user_id);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
