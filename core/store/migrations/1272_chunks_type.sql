-- +goose Up
-- ------------------------------------------------------------------ core/index
-- Each chunk cost an entry in it, and only the rebuilding of the search index read it, which
-- now goes through the table once.
DROP INDEX idx_chunks_content_type;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
