-- +goose Up
-- --------------------------------------------------------------------- pairing
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

-- By such a code a person says that two accounts are theirs.
CREATE TABLE link_codes (
    hash       TEXT PRIMARY KEY,
    user_id    INTEGER NOT NULL UNIQUE,
    bot        TEXT NOT NULL,                -- where it was asked for
    chat       TEXT NOT NULL,
    expires_at TEXT NOT NULL
);

-- What a group is answered with: an agent, a model, and how often.
ALTER TABLE places ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE places ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE places ADD COLUMN rate_n INTEGER NOT NULL DEFAULT 0;     -- messages in rate_per seconds; 0 = no bound
ALTER TABLE places ADD COLUMN rate_per INTEGER NOT NULL DEFAULT 0;
ALTER TABLE places ADD COLUMN rate_from TEXT NOT NULL DEFAULT '';    -- when the present count began
ALTER TABLE places ADD COLUMN rate_used INTEGER NOT NULL DEFAULT 0;

-- ------------------------------------------------------------------ core/queue
-- What the platform has parted and people meant as one message.
ALTER TABLE inbox ADD COLUMN burst TEXT NOT NULL DEFAULT '';
