-- +goose Up
-- ------------------------------------------------------------- core/permission
-- What a person may do unasked in a session at a trust level, until it is
-- taken back. A row is gone once it is.
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
CREATE INDEX tool_grants_user ON tool_grants(user_id);

-- For whom a tool call or question asks: what a guest may have open, and in a day.
ALTER TABLE asks ADD COLUMN asker INTEGER NOT NULL DEFAULT 0;
CREATE INDEX asks_asker ON asks(asker, created_at) WHERE asker <> 0;
CREATE INDEX asks_open ON asks(kind, created_at) WHERE state = 'open';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
