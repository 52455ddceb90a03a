-- +goose Up
-- --------------------------------------------------------- core/index/document
-- What was indexed by an earlier system is made again from the files: nothing read it.
DELETE FROM index_manifest;
ALTER TABLE index_manifest ADD COLUMN area TEXT NOT NULL DEFAULT 'vault'; -- or guest:<user>
ALTER TABLE index_manifest ADD COLUMN open INTEGER NOT NULL DEFAULT 0;   -- guests may read it
ALTER TABLE index_manifest ADD COLUMN size INTEGER NOT NULL DEFAULT 0;   -- bytes of the file
ALTER TABLE index_manifest ADD COLUMN modified TEXT NOT NULL DEFAULT ''; -- of the file
ALTER TABLE index_manifest ADD COLUMN fault TEXT NOT NULL DEFAULT '';    -- why it has no chunks
CREATE UNIQUE INDEX index_manifest_path ON index_manifest(source_path);
CREATE INDEX index_manifest_area ON index_manifest(area);
CREATE INDEX index_manifest_fault ON index_manifest(source_path) WHERE fault <> '';

DROP TABLE chunks;
CREATE TABLE chunks (
    n            INTEGER PRIMARY KEY,       -- rowid in document_words
    id           TEXT NOT NULL UNIQUE,      -- chunk:<content_id>:<field>:<chunk_index>
    content_id   TEXT NOT NULL,
    content_type TEXT NOT NULL,
    field        TEXT NOT NULL DEFAULT 'content',
    chunk_index  INTEGER NOT NULL,
    chunk_text   TEXT NOT NULL,
    embedding    BLOB,
    created_at   TEXT NOT NULL,
    line         INTEGER NOT NULL DEFAULT 1, -- of the file, where it begins
    UNIQUE (content_id, field, chunk_index)
);
CREATE INDEX idx_chunks_content_type ON chunks(content_type);

-- The words of chunks, each as the program folds it; the text is in chunks.
CREATE VIRTUAL TABLE document_words USING fts5(title, words, keys, content='', contentless_delete=1, tokenize='ascii', prefix='2 3 4');
INSERT INTO document_words (document_words, rank) VALUES ('rank', 'bm25(2.0, 1.0, 0.0)');

-- +goose StatementBegin
CREATE TRIGGER chunks_gone AFTER DELETE ON chunks BEGIN
    DELETE FROM document_words WHERE rowid = old.n;
END;
-- +goose StatementEnd

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
