-- +goose Up
-- ---------------------------------------------------------------- core/session
-- As for SQLite.
ALTER TABLE sessions ADD COLUMN original_id TEXT;
UPDATE sessions SET original_id = metadata::jsonb ->> 'original_id' WHERE metadata LIKE '{%"original_id"%';
CREATE INDEX sessions_original ON sessions(original_id, source) WHERE original_id IS NOT NULL;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
