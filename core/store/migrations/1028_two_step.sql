-- +goose Up
-- ----------------------------------------------------------------- web/account
-- The secret of an account's authenticator app, in base32. Until a code of it was
-- entered it is not confirmed and asked for nowhere. step is the last one whose
-- code was used: each works once.
CREATE TABLE admin_totp (
    user_id   INTEGER PRIMARY KEY,
    secret    TEXT NOT NULL,
    confirmed INTEGER NOT NULL DEFAULT 0,
    step      INTEGER NOT NULL DEFAULT 0,
    at        TEXT NOT NULL
);

-- What is left of an account's recovery codes.
CREATE TABLE admin_recovery (
    user_id INTEGER NOT NULL,
    sha256  TEXT NOT NULL,
    PRIMARY KEY (user_id, sha256)
) WITHOUT ROWID;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
