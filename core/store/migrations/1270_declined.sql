-- +goose Up
-- ------------------------------------------------------------------ core/queue
-- Since when the platform has answered each try of a reply by a failure of its own; '' for a
-- reply that it has not.
ALTER TABLE outbox ADD COLUMN declined_at TEXT NOT NULL DEFAULT '';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
