-- +goose Up
-- --------------------------------------------------------- core/index/document
-- The indexes of prefixes of two, three and four characters took a third of the time to
-- fill the table, and two thirds of its size: the one of three does nearly as well. The
-- program merges the index itself, in short transactions: a merge within an INSERT keeps
-- messages waiting. The words are made again from the files, by the next pass over the vault.
DROP TABLE document_words;
CREATE VIRTUAL TABLE document_words USING fts5(title, words, keys, content='', contentless_delete=1, tokenize='ascii', prefix='3');
INSERT INTO document_words (document_words, rank) VALUES ('rank', 'bm25(2.0, 1.0, 0.0)');
INSERT INTO document_words (document_words, rank) VALUES ('automerge', 0);
INSERT INTO document_words (document_words, rank) VALUES ('crisismerge', 64);

-- The same of chunks that guests may read, each word with its readers in front: what a
-- guest searches reads, counts and ranks by no other row.
CREATE VIRTUAL TABLE guest_words USING fts5(title, words, keys, content='', contentless_delete=1, tokenize='ascii');
INSERT INTO guest_words (guest_words, rank) VALUES ('rank', 'bm25(2.0, 1.0, 0.0)');
INSERT INTO guest_words (guest_words, rank) VALUES ('automerge', 0);
INSERT INTO guest_words (guest_words, rank) VALUES ('crisismerge', 64);

DROP TRIGGER chunks_gone;
-- +goose StatementBegin
CREATE TRIGGER chunks_gone AFTER DELETE ON chunks WHEN old.content_type <> 'session' BEGIN
    DELETE FROM document_words WHERE rowid = old.n;
    DELETE FROM guest_words WHERE rowid = old.n;
END;
-- +goose StatementEnd
UPDATE index_manifest SET content_hash = '' WHERE content_type <> 'session';

-- ------------------------------------------------------------------ core/index
INSERT INTO session_words (session_words, rank) VALUES ('automerge', 0);
INSERT INTO session_words (session_words, rank) VALUES ('crisismerge', 64);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
