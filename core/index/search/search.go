// Package search finds what a user wrote, received or keeps in the vault: in
// conversations, documents and journals, in one ranking. Who owns a kind of content is a
// Source; the sources apply the rights of the reader before they rank.
package search

import (
	"context"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/transcript/words"
)

// Types of content.
const (
	Session  = "session"
	Document = "document"
	Journal  = "journal" // an entry of one
)

// Limits of a Query.
const (
	DefaultLimit = 20  // hits of a page
	MaxLimit     = 100 // hits of a page
	MaxText      = 256 // characters
	maxTags      = 8
	maxCursor    = 1024 // bytes
)

// A Query is what a user looks for. Only Text is needed.
type Query struct {
	Text   string   // words, and the operators that Parse describes
	Types  []string // of these alone, also where Text has type:
	Tags   []string // each of them
	Folder string   // a slash path relative to the vault; with everything below it
	// Project is the id of one: its conversations alone are found, since documents are of none.
	Project string
	After   time.Time // not older than
	Before  time.Time // older than
	Limit   int       // hits, up to MaxLimit; 0: DefaultLimit
	Cursor  string    // Page.Next of the page before; "" for the first
}

// A Reader is who asks, and what they may read.
type Reader struct {
	User       int64
	Trust      core.Trust             // conversations of a higher one are not found, except with Everyone or AnyTrust
	Everyone   bool                   // conversations of all users: the caller has checked that they may
	AnyTrust   bool                   // own conversations of every trust, for a caller who can list and read them
	NoSessions bool                   // no conversations, also where the text of the query asks for them
	MayRead    func(name string) bool // files of the vault; nil: Search asks Options.MayRead
}

// A Hit is the best passage of one conversation, document or entry of a journal.
type Hit struct {
	Type    string // Session, Document or Journal
	ID      string // content id: the session's, the document's, or the entry's para-ID
	Title   string
	Path    string    // of a document, or the entry's file: slash path relative to the vault
	Line    int       // of Path: where the passage begins, from 1
	User    int64     // of a session: whose
	Message string    // of a session: the message; "" for a hit in title or tags
	Role    string    // of a session: who wrote the message, user or assistant
	In      string    // of a session: title, tag or text
	Excerpt string    // one line of about 160 characters
	Marks   [][2]int  // where in Excerpt the words are: first character and the one after the last
	Score   float64   // for comparison within one search; higher is better
	At      time.Time // of the message or entry, or when the document was changed; zero when unknown

	Cursor string // the source continues behind this hit; set by the source
}

// A Page is a page of hits, the best first.
type Page struct {
	Hits []Hit
	Next string // the next page's cursor; "" at the end
}

// An Asked is a Query that was parsed and checked.
type Asked struct {
	Words   words.Query // what a passage must have; without terms any passage does, the newest first
	Text    string      // the words as they were written, without operators
	Phrases [][]string  // those of Words' terms that were in quotes
	Near    *Near       // what the words mean, for sources that can rank by it; nil: no one knows
	Types   []string    // of Documents' types: those that are searched, sorted
	Tags    []string
	Folder  string
	Project string // id
	After   time.Time
	Before  time.Time
}

// A Near is a text as a model embeds it.
type Near struct {
	Model  int64 // the number of the model
	Values []float32
}

// A Source finds contents of one type, or of q.Types. It returns at most limit hits that r may
// read, one for each content, the best first, and the cursor of what follows them,
// "" at the end. A cursor that it did not return is core.Invalid.
type Source interface {
	Find(ctx context.Context, q Asked, r Reader, limit int, cursor string) (hits []Hit, next string, err error)
}

// A Meaning finds conversations by what a query with Near means: at most limit that r may
// read, one hit for each, the nearest first.
type Meaning interface {
	Near(ctx context.Context, q Asked, r Reader, limit int) ([]Hit, error)
}

// Options for New. MayRead and at least one source are needed.
type Options struct {
	Sessions  Source                                                   // nil: conversations are not searched
	Meaning   Meaning                                                  // nil: conversations are found by their words alone
	Documents Source                                                   // finds journals too; nil: neither is searched
	MayRead   func(trust core.Trust, user int64, name string) bool     // files of the vault
	Near      func(ctx context.Context, user int64, text string) *Near // what a user's text means; nil, and where it returns nil: words alone are compared
}

// A Finder searches all sources. It is safe for concurrent use.
type Finder struct{ o Options }

// New returns a Finder.
func New(o Options) *Finder { return &Finder{o} }

// Search returns a page of what r may read and q asks for. The text of q is read by
// Parse. Each source ranks its own hits (conversations: the newest first; documents and entries
// of journals: by their words and meaning); these rankings, and that of the conversations
// nearest in meaning, are joined by reciprocal rank fusion. What is new or changes
// between two pages does not repeat a conversation.
// A limit, type or cursor that is not valid is core.Invalid.
func (f *Finder) Search(ctx context.Context, q Query, r Reader) (Page, error) {
	asked, types, err := q.parsed()
	if err != nil {
		return Page{}, err
	}
	limit := q.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	if limit < 0 || limit > MaxLimit {
		return Page{}, core.Errorf(core.Invalid, "the limit is a number from 1 to %d", MaxLimit)
	}
	if r.MayRead == nil {
		r.MayRead = func(name string) bool { return f.o.MayRead(r.Trust, r.User, name) }
	}
	at, err := resume(q.Cursor, asked, types)
	if err != nil {
		return Page{}, err
	}
	near := f.o.Meaning != nil && !r.NoSessions && slices.Contains(types, Session)
	asked.Near = f.near(ctx, &at, q, asked, r.User, near)
	names := f.sources(types)
	lists, err := f.lists(ctx, names, asked, r, limit, at, near)
	if err == nil && near {
		var meant list
		meant, err = f.meant(ctx, &at, q.Cursor == "", asked, r, &lists[slices.Index(names, Session)])
		names, lists = append(names, meaning), append(lists, meant)
	}
	if err != nil {
		return Page{}, err
	}
	page := Page{Hits: merge(lists, limit)}
	more := false
	for i, t := range names {
		at.Places[t] = lists[i].rest()
		more = more || !at.Places[t].End
	}
	if more {
		page.Next = at.encode()
	}
	return page, nil
}

// lists returns what each of the sources with these names has found for a page.
func (f *Finder) lists(ctx context.Context, names []string, q Asked, r Reader, limit int, at position, near bool) (lists []list, err error) {
	for _, name := range names {
		l, most := list{place: at.Places[name]}, limit
		if name == Session && near {
			most += mostNear // some are in the list of meaning
		}
		if source := f.source(name); source != nil && !l.place.End && !(name == Session && r.NoSessions) {
			l.hits, l.next, err = source.Find(ctx, q, r, most, l.place.Cursor)
		}
		if err != nil {
			return nil, err
		}
		lists = append(lists, l)
	}
	return lists, nil
}

// near returns what q means, as the first page of the search has compared it: the
// ranking is the same on all its pages. Where that is not known any more, the search goes
// on by words: a document may then be on two pages.
func (f *Finder) near(ctx context.Context, at *position, q Query, asked Asked, user int64, sessions bool) *Near {
	first := q.Cursor == ""
	documents := f.o.Documents != nil && len(asked.Types) > 0
	if f.o.Near == nil || !documents && !sessions || len(asked.Words.Terms) == 0 || !first && at.Model == 0 {
		return nil
	}
	near := f.o.Near(ctx, user, asked.Text)
	if near == nil || !first && near.Model != at.Model {
		at.Model = 0 // the further pages compare words alone too
		return nil
	}
	at.Model = near.Model
	return near
}

// sources returns the names of the sources that have contents of types.
func (f *Finder) sources(types []string) (names []string) {
	for _, name := range [...]string{Document, Session} {
		if slices.Contains(types, name) || name == Document && slices.Contains(types, Journal) {
			names = append(names, name)
		}
	}
	return names
}

func (f *Finder) source(kind string) Source {
	if kind == Session {
		return f.o.Sessions
	}
	return f.o.Documents
}
