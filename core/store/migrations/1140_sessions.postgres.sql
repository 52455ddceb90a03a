-- +goose Up
-- ------------------------------------------------------------------ core/index
-- As for SQLite, but for the table session_words: a plain one, with the words between spaces.
ALTER TABLE index_manifest ADD COLUMN behind INTEGER NOT NULL DEFAULT 0;
CREATE INDEX index_manifest_behind ON index_manifest(behind, indexed_at) WHERE behind > 0;
ALTER TABLE chunks ADD COLUMN length INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chunks ADD COLUMN piece INTEGER NOT NULL DEFAULT 0;

CREATE TABLE session_words (
    rowid  INTEGER NOT NULL REFERENCES chunks(n) ON DELETE CASCADE,
    words  TEXT NOT NULL,
    starts TEXT NOT NULL,
    keys   TEXT NOT NULL,
    PRIMARY KEY (rowid)
);

DROP TABLE search;
DROP TABLE search_docs;
DROP TABLE search_sessions;
DELETE FROM metadata WHERE key = 'search.walked';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
