-- +goose Up
-- --------------------------------------------------------- core/index/document
-- As for SQLite, but for a plain table.
CREATE TABLE guest_words (
    rowid INTEGER NOT NULL REFERENCES chunks(n) ON DELETE CASCADE,
    title TEXT NOT NULL,
    words TEXT NOT NULL,
    keys  TEXT NOT NULL,
    PRIMARY KEY (rowid)
);
DELETE FROM document_words;
UPDATE index_manifest SET content_hash = '' WHERE content_type <> 'session';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
