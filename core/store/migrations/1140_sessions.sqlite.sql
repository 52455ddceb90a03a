-- +goose Up
-- ------------------------------------------------------------------ core/index
-- Conversations are contents of the type session: a row of index_manifest each, with part 1,
-- source_path their transcript and size the bytes of it that are indexed; and a row of chunks
-- for each piece of a message, in which chunk_text is '': the text is in the transcript, in the
-- line at the byte chunk_index - piece. The field title has the words of title and tags.
-- Upkeep indexes the conversations that there are, the last used ones first.
ALTER TABLE index_manifest ADD COLUMN behind INTEGER NOT NULL DEFAULT 0; -- upkeep has something to do; 2: below what is indexed
CREATE INDEX index_manifest_behind ON index_manifest(behind, indexed_at) WHERE behind > 0;
ALTER TABLE chunks ADD COLUMN length INTEGER NOT NULL DEFAULT 0; -- of the line in the transcript
ALTER TABLE chunks ADD COLUMN piece INTEGER NOT NULL DEFAULT 0;  -- of the message, from 0

-- The words of messages by the number of their first piece; newer is higher.
CREATE VIRTUAL TABLE session_words USING fts5(words, starts, keys, content='', contentless_delete=1, tokenize='ascii');

DROP TRIGGER chunks_gone;
-- +goose StatementBegin
CREATE TRIGGER chunks_gone AFTER DELETE ON chunks WHEN old.content_type <> 'session' BEGIN
    DELETE FROM document_words WHERE rowid = old.n;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER session_chunks_gone AFTER DELETE ON chunks WHEN old.content_type = 'session' AND old.piece = 0 BEGIN
    DELETE FROM session_words WHERE rowid = old.n;
END;
-- +goose StatementEnd

DROP TABLE search;
DROP TABLE search_docs;
DROP TABLE search_sessions;
DELETE FROM metadata WHERE key = 'search.walked';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
