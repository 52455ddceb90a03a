-- +goose Up
-- -------------------------------------------------------------- core/response
-- Responses of OpenAI's API: what was asked and answered, so that clients can read it
-- again and go on from it.
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
);
CREATE UNIQUE INDEX responses_session ON responses(session_id, number);
CREATE INDEX responses_user ON responses(user_id, created, bytes);
CREATE INDEX responses_open ON responses(user_id) WHERE state = 'open';
CREATE INDEX responses_run ON responses(run);
CREATE INDEX responses_created ON responses(created);
CREATE INDEX responses_pending ON responses(created) WHERE state <> 'ended' OR hidden = 1;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
