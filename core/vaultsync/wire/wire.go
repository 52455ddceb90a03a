// Package wire is what a server and its devices exchange to keep one vault: the JSON of
// the endpoints below /api/sync, which files are synced, and how they are named.
package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strings"
)

// Limits. A server refuses what is larger, and a client leaves it out.
const (
	MaxFile  = 512 << 20 // bytes of a file
	MaxPath  = 1000      // bytes of a path
	MaxName  = 200       // bytes of an element of a path, so that a temporary or conflict name fits
	MaxFiles = 200_000   // files of a listing
	MaxBatch = 1000      // files of a request
	MaxBody  = 1 << 30   // bytes of a request
)

// An Entry is an entry of a day file of a journal.
type Entry struct {
	ID   string `json:"id"`
	Hash string `json:"hash"`
}

// A File is a file as a listing has it.
type File struct {
	Path     string  `json:"path"` // relative to the listing's root
	Hash     string  `json:"hash"` // of a deleted file what it was last
	Size     int64   `json:"size"`
	Modified float64 `json:"modified"` // Unix time in seconds
	Entries  []Entry `json:"entries,omitempty"`
}

// A Listing answers GET /api/sync/manifest and /api/sync/changes. Files and Deleted are in the
// order of the bytes of their paths.
type Listing struct {
	Root  string `json:"root"` // relative to the vault; "": the vault
	Files []File `json:"files"`
	// Deleted are files that were deleted in the last days, or since the cursor.
	Deleted     []File `json:"deleted"`
	GeneratedAt string `json:"generated_at"`
	Cursor      string `json:"cursor"`
	// Epoch is that of the cursor: another one than before means that the server was restored
	// from a backup. "": the server does not tell.
	Epoch string `json:"epoch"`
	// Complete: Files are all that there are, not only those that changed.
	Complete bool   `json:"complete"`
	Digest   string `json:"digest"` // of all files that there are
}

// A Meta describes the content that follows it in a stream, or that is in Content.
type Meta struct {
	Path     string  `json:"path"`
	BaseHash string  `json:"base_hash,omitempty"` // the content that it was edited from; "": a new file
	Hash     string  `json:"hash,omitempty"`      // of the content
	Size     int64   `json:"size"`
	Modified float64 `json:"modified,omitempty"`
	Content  *string `json:"content,omitempty"` // in JSON
	IsBinary bool    `json:"is_binary,omitempty"`
	Error    string  `json:"error,omitempty"`   // why it is not sent; no content follows
	Missing  bool    `json:"missing,omitempty"` // with Error: there is no such file any more
}

// What became of a file of a push or a deletion.
const (
	Stored    = "stored"    // it is what was sent
	Unchanged = "unchanged" // it was already
	Merged    = "merged"    // with another change
	Copied    = "conflict"  // what was sent is in a file of its own
	Deleted   = "deleted"
	Kept      = "kept" // it was changed since, so it is not deleted
)

// A Done is what became of one file.
type Done struct {
	Path      string `json:"path"`
	Outcome   string `json:"outcome"`
	Hash      string `json:"hash,omitempty"`      // of the file now; "": there is none
	Copy      string `json:"copy,omitempty"`      // the path of what was sent, for Copied
	Conflicts int    `json:"conflicts,omitempty"` // headings of conflicts that Merged has
}

// A Result answers a push or a deletion.
type Result struct {
	Pushed  int      `json:"pushed"`
	Deleted int      `json:"deleted"`
	Files   []Done   `json:"files"`
	Errors  []string `json:"errors"`
}

// A Pull asks for files.
type Pull struct {
	Root  string   `json:"root"`
	Paths []string `json:"paths"`
}

// prefix begins hashes.
const prefix = "sha256:"

// Hash returns the hash of a content.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return prefix + hex.EncodeToString(sum[:])
}

// New returns what computes a hash, for Sum.
func New() hash.Hash { return sha256.New() }

// Sum returns the hash of what was written to h.
func Sum(h hash.Hash) string { return prefix + hex.EncodeToString(h.Sum(nil)) }

// ValidHash reports whether s is a hash.
func ValidHash(s string) bool {
	digits, ok := strings.CutPrefix(s, prefix)
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

// FromHex returns the hash with these digits.
func FromHex(digits string) string { return prefix + digits }

// Hex returns the digits of a valid hash.
func Hex(s string) string { return strings.TrimPrefix(s, prefix) }

// A Digest computes what identifies a list of paths with their hashes.
type Digest struct{ h hash.Hash }

// NewDigest returns a Digest of no files.
func NewDigest() *Digest { return &Digest{New()} }

// Add adds a file. Files are added in the order of the bytes of their paths.
func (d *Digest) Add(path, hash string) {
	_, _ = io.WriteString(d.h, path+"\x00"+hash+"\n") // a hash does not fail
}

// Sum returns the digest.
func (d *Digest) Sum() string { return Sum(d.h) }

// Tracked is a reader that remembers the error of reading what the other side sends.
type Tracked struct {
	R   io.Reader
	Err error // nil also at the end
}

// Read reads from R.
func (t *Tracked) Read(p []byte) (int, error) {
	n, err := t.R.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Err = err
	}
	return n, err
}
