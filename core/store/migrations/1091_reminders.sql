-- +goose Up
-- -------------------------------------------------------- core/schedule/remind
-- Messages that people asked to get at a time, in the chat where they asked. What was
-- delivered once and is not repeated is gone.
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
CREATE INDEX reminders_due ON reminders(due);
CREATE INDEX reminders_user ON reminders(user_id);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
