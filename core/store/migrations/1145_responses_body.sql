-- +goose Up
-- -------------------------------------------------------------- core/response
-- The SHA-256 of a request that came with an Idempotency-Key, by which one with the same
-- key is known to be a repeat; '' for a request without.
ALTER TABLE responses ADD COLUMN body TEXT NOT NULL DEFAULT '';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
