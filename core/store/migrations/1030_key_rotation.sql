-- +goose Up
-- -------------------------------------------------------------------- web/auth
-- The secret that a key had before its newest one, as long as it is valid.
ALTER TABLE api_keys ADD COLUMN old_sha256 TEXT NOT NULL DEFAULT '';     -- '' = none
ALTER TABLE api_keys ADD COLUMN old_expires_at TEXT NOT NULL DEFAULT '';
CREATE INDEX api_keys_old ON api_keys(old_sha256);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
