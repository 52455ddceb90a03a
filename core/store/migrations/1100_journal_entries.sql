-- +goose Up
-- --------------------------------------------------------- core/index/document
-- 1: a part of the file at source_path that is a content of its own, as an entry of a journal.
ALTER TABLE index_manifest ADD COLUMN part INTEGER NOT NULL DEFAULT 0;
DROP INDEX index_manifest_path;
CREATE UNIQUE INDEX index_manifest_path ON index_manifest(source_path) WHERE part = 0;
CREATE INDEX index_manifest_parts ON index_manifest(source_path) WHERE part = 1;
-- Files of journals are read again: each entry becomes a content of type journal.
UPDATE index_manifest SET content_hash = '' WHERE source_path LIKE 'Daily/____-__-__.md' OR source_path LIKE 'Guests/%/Daily/____-__-__.md';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
