-- +goose Up
-- ---------------------------------------------------------------- core/report
-- Runs of the gateway. One that is running at the next start did not end properly.
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
CREATE INDEX idx_app_sessions_started ON app_sessions(started_at);

-- Kinds of faults in the log, without what their messages were about.
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
CREATE INDEX idx_error_reports_last ON error_reports(last_at);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
