// Package search finds what a person wrote, was told or keeps in the vault: in
// conversations and in documents, in one ranking. Who owns a kind of content is a
// Source; the sources apply the rights of the reader before they rank.
package search

import (
	"context"
	"time"

	"gatehouse/core"
	"gatehouse/core/transcript/words"
)

// Types of content.
const (
	Session  = "session"
	Document = "document"
)

// Limits of a Query.
const (
	DefaultLimit = 20  // hits of a page
	MaxLimit     = 100 // hits of a page
	MaxText      = 256 // characters
)

// A Query is what a user looks for. Only Text is needed.
type Query struct {
	Text   string // words, and the operators that Parse describes
	Types  []string
	Tags   []string  // each of them
	Folder string    // a slash path relative to the vault; with everything below it
	After  time.Time // not older than
	Before time.Time // older than
	Limit  int       // hits, up to MaxLimit; 0: DefaultLimit
	Cursor string    // Page.Next of the page before; "" for the first
}

// A Reader is who asks, and what they may read.
type Reader struct {
	User     int64
	Trust    core.Trust
	Everyone bool                   // conversations of all users: the caller has checked that they may
	MayRead  func(name string) bool // files of the vault; nil: Search asks Options.MayRead
}

// A Hit is the best passage of one conversation or document.
type Hit struct {
	Type    string // Session or Document
	ID      string // content id: the session's, or the document's
	Title   string
	Path    string    // of a document: slash path relative to the vault
	Line    int       // of a document: where the passage begins, from 1
	User    int64     // of a session: whose
	Message string    // of a session: the message; "" for a hit in title or tags
	Role    string    // of a session: who wrote the message, user or assistant
	In      string    // of a session: title, tag or text
	Excerpt string    // one line of about 160 characters
	Marks   [][2]int  // where in Excerpt the words are: first character and the one after the last
	Score   float64   // for comparison within one search; higher is better
	At      time.Time // of the message, or when the document was changed; zero when unknown
}

// A Page is a page of hits, the best first.
type Page struct {
	Hits []Hit
	Next string // the next page's cursor; "" at the end
}

// An Asked is a Query that was parsed and checked.
type Asked struct {
	Words  words.Query // what a passage must have; without terms nothing is found
	Tags   []string
	Folder string
	After  time.Time
	Before time.Time
}

// A Source finds contents of one type. It returns at most limit hits that r may
// read, one for each content, the best first, and the cursor of what follows them,
// "" at the end. A cursor that it did not return is core.Invalid.
type Source interface {
	Find(ctx context.Context, q Asked, r Reader, limit int, cursor string) (hits []Hit, next string, err error)
}

// Options for New.
type Options struct {
	Sources []Source
	MayRead func(trust core.Trust, user int64, name string) bool // files of the vault
}

// A Finder searches all sources. It is safe for concurrent use.
type Finder struct{ o Options }

// New returns a Finder.
func New(o Options) *Finder { return &Finder{o} }
