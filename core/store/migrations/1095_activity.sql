-- +goose Up
-- ------------------------------------------------------------------ core/runs
-- What is to be done about a finished run, after it (core/activity); '' once that is
-- done, and for runs about which nothing is.
ALTER TABLE runs ADD COLUMN follow TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_follow ON runs(ended, id) WHERE follow <> '';

-- -------------------------------------------------------------- core/activity
-- One row for each exchange of the owner's that is, or is to be, in the files of Daily.
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
CREATE UNIQUE INDEX activity_number ON activity(session_id, number);
CREATE INDEX activity_at ON activity(at);
CREATE INDEX activity_user ON activity(user_id);
CREATE INDEX activity_new ON activity(at) WHERE state = 'new';
CREATE INDEX activity_fault ON activity(at) WHERE state = 'fault';

-- One row for each entry of a chat log, as long as its conversation exists.
CREATE TABLE activity_entries (
    session_id TEXT NOT NULL,
    log_day    TEXT NOT NULL,
    user_id    INTEGER NOT NULL,
    para_id    TEXT NOT NULL,
    time       TEXT NOT NULL,               -- HH:MM, in the heading
    title      TEXT NOT NULL DEFAULT '',    -- as it was written last
    PRIMARY KEY (session_id, log_day)
);
CREATE INDEX activity_entries_user ON activity_entries(user_id);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
