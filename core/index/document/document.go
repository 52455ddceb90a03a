// Package document keeps the passages of the vault's documents and of the entries of
// journals, and finds them by their words and meaning. It owns the tables chunks,
// index_manifest, document_words and guest_words, but for the rows of conversations, which are those of
// package index; of these it keeps the vectors.
package document

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"gatehouse/core"
	"gatehouse/core/index/chunk"
	"gatehouse/core/index/search"
	"gatehouse/core/store"
)

// A Document is a file of the vault as it is indexed, or an entry of it.
type Document struct {
	File
	Title   string
	Tags    []string // without "#", lower case
	Chunks  []chunk.Chunk
	Journal bool    // it is of a journal
	Entries []Entry // of a journal's file: contents of their own; Chunks are the rest

	entry string // content id, if it is an entry
}

// id returns the content id.
func (d *Document) id() string {
	if d.entry != "" {
		return d.entry
	}
	return ID(d.Path)
}

// kind returns the content type.
func (d *Document) kind() string {
	if d.Journal {
		return search.Journal
	}
	return search.Document
}

// blank reports whether it has nothing to be found by, since its entries have it all.
func (d *Document) blank() bool { return d.Journal && d.entry == "" && d.Fault == "" }

// A File is what the index knows about a file of the vault.
type File struct {
	Path     string    `db:"source_path"`  // slash path relative to the vault
	Size     int64     `db:"size"`         // bytes
	Modified time.Time `db:"-"`            // with nanoseconds; the database has them as Stamp
	Changed  time.Time `db:"-"`            // as ctime, with nanoseconds; zero: unknown
	Indexed  time.Time `db:"-"`            // when it was put or marked; set by Files
	Hash     string    `db:"content_hash"` // of what was read; "" while the file is being indexed
	Open     bool      `db:"open"`         // guests may read it: GUEST_READ names it
	Fault    string    `db:"fault"`        // why it has no passages, for users; "" when it has
}

// ID returns the content id of the document at path: "doc:" and 16 hex digits of
// the path's SHA-256 (seed 000).
func ID(path string) string {
	sum := sha256.Sum256([]byte(path))
	return "doc:" + hex.EncodeToString(sum[:8])
}

// A Known reports whether a user is stored. What is in the directory of a user who is
// not, as of one who is being forgotten, is not indexed.
type Known func(ctx context.Context, q store.Queryer, user int64) (bool, error)

// A Store keeps documents. It is safe for concurrent use.
type Store struct {
	db    *store.DB
	known Known
	pause func(ctx context.Context)
	puts  atomic.Int64 // since the indexes of words were merged
	model atomic.Int64 // whose vectors Put keeps; 0: none are kept; anyModel until Begin or DropVectors
}

const anyModel = -1

// New returns the store of documents in db.
func New(db *store.DB, known Known) *Store {
	s := &Store{db: db, known: known, pause: func(context.Context) {}}
	s.model.Store(anyModel)
	return s
}

// Pause sets what is called between the transactions that merge the indexes of words, so
// that others come first. It is called before the store is used.
func (s *Store) Pause(f func(ctx context.Context)) { s.pause = f }

// Names in the column area.
const (
	inVault = "vault"
	ofGuest = "guest:" // and the user
)

// areaOf returns whose directory a document is in.
func areaOf(name string) string {
	if user := guestOf(name); user > 0 {
		return ofGuest + strconv.FormatInt(user, 10)
	}
	return inVault
}

// guestOf returns the user whose directory name is in, 0 for none.
func guestOf(name string) int64 { return core.GuestOf(path.Dir(name)) }

// Tokens of the column keys. No word of a text has the character of private use in front
// of a tag's, so that words are looked for in all columns.
const openKey = "o"

func guestKey(user int64) string { return "g" + strconv.FormatInt(user, 10) }

func tagKey(tag string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.ToLower(tag)))
	return "\ue000" + strconv.FormatUint(h.Sum64(), 16)
}

// reader returns the key of those below trust vault who may find the document; "" where
// no one may.
func (d *Document) reader() string {
	if d.Open { // to them in whose directory it is, too
		return openKey
	}
	if user := guestOf(d.Path); user > 0 {
		return guestKey(user)
	}
	return ""
}

// forReader returns tokens as guest_words has them. The letter behind the key's digits
// distinguishes guest 7's "1x" from guest 71's "x".
func forReader(key, tokens string) string {
	if tokens == "" {
		return ""
	}
	return key + "w" + strings.ReplaceAll(tokens, " ", " "+key+"w")
}

// tagKeys returns what is searched for in addition to words.
func (d *Document) tagKeys() string {
	keys := make([]string, len(d.Tags))
	for i, tag := range d.Tags {
		keys[i] = tagKey(tag)
	}
	return strings.Join(keys, " ")
}

// A meta is the column metadata of index_manifest.
type meta struct {
	Tags   []string `json:"tags,omitempty"`
	Folder string   `json:"folder"`
}

func (d *Document) metadata() string {
	folder := path.Dir(d.Path)
	if folder == "." {
		folder = ""
	}
	b, _ := json.Marshal(meta{d.Tags, folder}) // strings: it cannot fail
	return string(b)
}

func tagsOf(metadata string) []string {
	var m meta
	if json.Unmarshal([]byte(metadata), &m) != nil {
		return nil
	}
	return m.Tags
}
