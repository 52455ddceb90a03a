-- +goose Up
-- --------------------------------------------------------------------- pairing
-- Trust full for a time, asked for in a direct chat: waiting for the operator's
-- word (asked), or held until its end (held). What is over is in the audit log.
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

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
