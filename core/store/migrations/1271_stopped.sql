-- +goose Up
-- ------------------------------------------------------------------ core/queue
-- The session of which the user has stopped the turn before it began: it ends when it begins.
ALTER TABLE inbox ADD COLUMN stopped TEXT NOT NULL DEFAULT '';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
