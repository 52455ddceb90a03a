-- +goose Up
-- ---------------------------------------------------------------- core/session
-- The id that an imported session has where it comes from, also in its metadata.
ALTER TABLE sessions ADD COLUMN original_id TEXT;
UPDATE sessions SET original_id = CASE WHEN json_valid(metadata) AND json_type(metadata, '$.original_id') = 'text'
    THEN json_extract(metadata, '$.original_id') END WHERE metadata LIKE '%"original_id"%';
CREATE INDEX sessions_original ON sessions(original_id, source) WHERE original_id IS NOT NULL;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
