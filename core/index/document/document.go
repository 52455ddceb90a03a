// Package document keeps the passages of the vault's documents and finds them by
// their words. It owns the tables chunks, index_manifest and document_words.
package document

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"gatehouse/core/index/chunk"
)

// A Document is a file of the vault as it is indexed.
type Document struct {
	File
	Title  string
	Tags   []string // without "#", lower case
	Chunks []chunk.Chunk
}

// A File is what the index knows about a file of the vault.
type File struct {
	Path     string    `db:"source_path"`  // slash path relative to the vault
	Size     int64     `db:"size"`         // bytes
	Modified time.Time `db:"-"`            // with nanoseconds; the database has them as Stamp
	Hash     string    `db:"content_hash"` // of what was read; "" while the file is being indexed
	Open     bool      `db:"open"`         // guests may read it: GUEST_READ names it
	Fault    string    `db:"fault"`        // why it has no passages, for people; "" when it has
}

// ID returns the content id of the document at path: "doc:" and 16 hex digits of
// the path's SHA-256 (seed 000).
func ID(path string) string {
	sum := sha256.Sum256([]byte(path))
	return "doc:" + hex.EncodeToString(sum[:8])
}
