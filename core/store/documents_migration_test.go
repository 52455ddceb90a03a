package store_test

import "testing"

// Their words are in the new tables only after their files were read again.
func TestDocumentsAreIndexedAgainAfterTheMigration(t *testing.T) {
	const words = `USING fts5(title, words, keys, content='', contentless_delete=1, tokenize='ascii')`
	db := migrated(t, "1210_document_words.sqlite.sql",
		`CREATE TABLE index_manifest (content_id TEXT PRIMARY KEY, content_type TEXT, content_hash TEXT)`,
		`CREATE TABLE chunks (n INTEGER PRIMARY KEY, content_type TEXT)`,
		`CREATE VIRTUAL TABLE document_words `+words,
		`CREATE VIRTUAL TABLE session_words `+words,
		`CREATE TRIGGER chunks_gone AFTER DELETE ON chunks BEGIN DELETE FROM document_words WHERE rowid = old.n; END`,
		`INSERT INTO index_manifest VALUES ('s', 'session', 'h'), ('d', 'document', 'h'), ('j', 'journal', 'h')`,
		`INSERT INTO chunks VALUES (1, 'document')`,
		`INSERT INTO document_words (rowid, words) VALUES (1, 'tea')`,
	)
	if _, err := db.Exec(`DELETE FROM chunks`); err != nil { // as reading them again does, though no table of words has them
		t.Fatal(err)
	}
	var found string
	err := db.QueryRow(`SELECT group_concat(content_id || content_hash, ' ') FROM (SELECT * FROM index_manifest ORDER BY content_id)`).Scan(&found)
	if err != nil || found != "d j sh" {
		t.Errorf("hashes: %q, %v", found, err)
	}
}
