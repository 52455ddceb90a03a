package index

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/fulltext"
	"gatehouse/core/transcript"
	"gatehouse/core/transcript/lines"
	"gatehouse/core/transcript/words"
)

// A Query asks for a page of hits.
type Query struct {
	Words  words.Query
	User   int64                     // whose sessions; ignored with All
	All    bool                      // everyone's: the caller has checked that the asker may
	Where  func(c *store.Conditions) // adds which sessions s are chosen
	After  time.Time                 // hits that are not older; zero is any
	Before time.Time                 // hits that are older; zero is any
	Limit  int                       // of hits
	Cursor string                    // of the page before; "" for the first

	// Heads returns titles of the sessions ids, with the tags of those in tagged.
	// A session that it leaves out is no hit.
	Heads func(ctx context.Context, ids, tagged []string) (map[string]Head, error)
}

// A Hit is the newest place of a session that matches all terms and times.
type Hit struct {
	Session string
	In      string // title, tag, text
	Excerpt string // one line of about 160 characters
	Message string // of text: the message's id (Message.Line)
	Role    string // of text: user or assistant
	At      time.Time
	Cursor  string // continues behind this hit
}

// Bounds of a Search.
const (
	firstHits  = 128  // hits that are checked first; each further statement takes four times the previous one
	maxHits    = 2000 // of one page
	excerptLen = 160  // characters
	maxExcerpt = 1 << 20
)

// Find returns a page of hits, at most one for each session, newest first, and the
// cursor of the next page, "" at the end: sessions that have all the words of
// q.Words in one message, or in the title and tags together. A title is as new as
// its last change. If no message of a session that q.Where chooses has the last word,
// it matches as a prefix; in titles and tags it always does. A session
// that gets a new hit between two pages is neither skipped nor repeated. A page may
// be shorter than the limit and still have a next one, if few of many hits are of
// sessions that q.Where chooses. Each hit was verified in the transcript. A cursor
// that Find did not return is core.Invalid.
func (x *Index) Find(ctx context.Context, q Query) ([]Hit, string, error) {
	look := lookup{x: x, f: q, q: q.Words}
	defer func() { look.file.Close() }()
	if err := look.resume(q.Cursor); err != nil {
		return nil, "", err
	}
	if len(look.q.Terms) == 0 {
		return nil, "", nil
	}
	if err := look.page(ctx); err != nil {
		return nil, "", fmt.Errorf("search sessions: %w", err)
	}
	if q.Cursor == "" && look.all && len(look.hits) == 0 && look.canBegin() {
		look.q.Begins, look.all, look.top, look.at = true, false, 0, 0
		if err := look.page(ctx); err != nil {
			return nil, "", fmt.Errorf("search sessions: %w", err)
		}
	}
	hits, err := look.answers(ctx)
	if look.all {
		return hits, "", err
	}
	return hits, look.cursor(look.at), err
}

// A lookup is one page being looked for.
type lookup struct {
	x   *Index
	f   Query
	q   words.Query
	top int64 // the number of the newest hit of the first page; 0 before it is known
	was int64 // where the page before has ended, 0 for none
	at  int64 // how far this one has come
	all bool  // there is nothing further

	hits []hitRow
	file opened
}

type hitRow struct {
	ID      int64  `db:"id"`
	Session string `db:"content_id"`
	File    string `db:"file"`
	Field   string `db:"field"`
	At      int64  `db:"at_byte"`
	Length  int64  `db:"length"`
	Piece   int    `db:"piece"`
	Used    string `db:"last_accessed"` // of the session
	Fits    bool   `db:"fits"`
}

// hitColumns fill a hitRow but for Fits; the tables are called c, m and s.
const hitColumns = `c.n AS id, c.content_id, m.source_path AS file, c.field, c.chunk_index - c.piece AS at_byte, c.length, c.piece, s.last_accessed`

// minBegin is the shortest prefix of a term that is searched in messages.
const minBegin = 3

func (l *lookup) canBegin() bool {
	last := l.q.Terms[len(l.q.Terms)-1]
	return len([]rune(last[len(last)-1])) >= minBegin
}

// cursor and resume are each other's inverse.
func (l *lookup) cursor(at int64) string {
	begins := 0
	if l.q.Begins {
		begins = 1
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "s %d %d %d", l.top, at, begins))
}

func (l *lookup) resume(cursor string) error {
	if cursor == "" {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	fields := strings.Fields(string(raw))
	if err != nil || len(fields) != 4 || fields[0] != "s" {
		return errCursor
	}
	var n [3]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(fields[i+1], 10, 64); err != nil {
			return errCursor
		}
	}
	if n[0] == 0 || n[1] == 0 || n[1] > n[0] || n[2] < 0 || n[2] > 1 {
		return errCursor
	}
	l.top, l.was, l.at, l.q.Begins = n[0], n[1], n[1], n[2] == 1
	return nil
}

// terms returns the query for the index; key is a further term of its keys.
func (l *lookup) terms(key string) []fulltext.Term {
	var terms []fulltext.Term
	if key != "" {
		terms = append(terms, fulltext.Term{Columns: []string{"keys"}, Words: []string{key}})
	}
	for i, w := range l.q.Terms {
		t := fulltext.Term{Columns: []string{"words"}, Words: w}
		if i == len(l.q.Terms)-1 {
			t.Columns, t.Begins = []string{"words", "starts"}, l.q.Begins
		}
		terms = append(terms, l.own(t))
	}
	for _, w := range l.q.Not {
		terms = append(terms, l.own(fulltext.Term{Columns: []string{"words"}, Words: w, Not: true}))
	}
	return terms
}

// own returns the term as it is in the keys of the user's sessions, if only those are
// searched.
func (l *lookup) own(t fulltext.Term) fulltext.Term {
	if l.f.All {
		return t
	}
	all := t.Words
	t.Columns, t.Words = []string{"keys"}, make([]string, len(all))
	for k := range all {
		t.Words[k] = ownWord(l.f.User, all[k])
	}
	return t
}

// page collects the hits of one page, one for each session.
func (l *lookup) page(ctx context.Context) error {
	seen := map[string]bool{} // at most maxHits
	for looked, n := 0, firstHits; looked < maxHits; n *= 4 {
		n = min(n, maxHits-looked)
		batch, err := l.batch(ctx, n)
		if err != nil {
			return err
		}
		if l.top == 0 && len(batch) > 0 {
			l.top = batch[0].ID
		}
		again, err := l.repeats(ctx, batch)
		if err != nil {
			return err
		}
		for _, h := range batch {
			if l.f.timed() && ctx.Err() != nil { // no statement of its own would say so
				return ctx.Err()
			}
			fits := h.Fits && !seen[h.Session] && l.covers(&h)
			covered := fits
			if fits && again[h.Session] {
				if fits, err = l.fresh(ctx, h.Session); err != nil {
					return err
				}
			}
			if fits && len(l.hits) == l.f.Limit {
				return nil // one too many: it begins the next page
			}
			if fits {
				l.hits = append(l.hits, h)
			}
			seen[h.Session], l.at = covered || seen[h.Session], h.ID
		}
		if looked += n; len(batch) < n {
			l.all = true
			return nil
		}
	}
	return nil
}

// batch reads the next n hits.
func (l *lookup) batch(ctx context.Context, n int) (rows []hitRow, err error) {
	query, args := l.statement(n)
	return rows, l.x.db.Select(ctx, &rows, query, args...)
}

// statement walks the index backwards; the filter is applied to each hit, so that the
// walk knows its position.
func (l *lookup) statement(n int) (string, []any) {
	match, args := l.x.db.Match("session_words", l.terms(""), 1)
	inner := store.Conditions{Args: args}
	if l.at != 0 {
		inner.And("rowid < ?", l.at)
	}
	inner.And(match)
	outer := store.Conditions{Args: append(inner.Args, n)}
	limit := len(outer.Args)
	l.f.Where(&outer)
	fits := "1"
	if len(outer.Where) > 0 {
		fits = "CASE WHEN " + strings.Join(outer.Where, " AND ") + " THEN 1 ELSE 0 END"
	}
	return fmt.Sprintf(`SELECT %s, %s AS fits
		FROM (SELECT rowid AS id FROM session_words WHERE %s ORDER BY rowid DESC LIMIT $%d) h
		JOIN chunks c ON c.n = h.id JOIN index_manifest m ON m.content_id = c.content_id JOIN sessions s ON s.id = c.content_id
		ORDER BY h.id DESC`, hitColumns, fits, strings.Join(inner.Where, " AND "), limit), outer.Args
}

// repeats returns the sessions of which something is where the pages before
// this one have been: fresh reports whether it was a hit.
func (l *lookup) repeats(ctx context.Context, batch []hitRow) (map[string]bool, error) {
	if l.was == 0 || len(batch) == 0 {
		return nil, nil
	}
	c := store.Conditions{Args: []any{l.was, l.top}}
	for _, h := range batch {
		c.And("?", h.Session)
	}
	var list []string
	err := l.x.db.Select(ctx, &list, `SELECT DISTINCT content_id FROM chunks WHERE +n >= $1 AND +n <= $2 AND content_id IN (`+strings.Join(c.Where, ", ")+`)`, c.Args...)
	again := make(map[string]bool, len(list))
	for _, id := range list {
		again[id] = true
	}
	return again, err
}

// fresh reports whether no page before this one has shown the session.
func (l *lookup) fresh(ctx context.Context, id string) (bool, error) {
	match, args := l.x.db.Match("session_words", l.terms(sessionKey(id)), 3)
	if l.f.timed() {
		return l.freshThen(ctx, match, args)
	}
	var shown bool
	err := l.x.db.Get(ctx, &shown, `SELECT EXISTS (SELECT 1 FROM session_words WHERE rowid >= $1 AND rowid <= $2 AND `+match+`)`,
		append([]any{l.was, l.top}, args...)...)
	return !shown, err
}

// answers returns the hits of the page with an excerpt each. If a transcript has
// changed, the hit is omitted, and Fill reads the file again.
func (l *lookup) answers(ctx context.Context) ([]Hit, error) {
	heads, err := l.f.headsOf(ctx, l.hits)
	if err != nil {
		return nil, err
	}
	out := make([]Hit, 0, len(l.hits))
	for _, h := range l.hits {
		head, there := heads[h.Session]
		if !there {
			continue // deleted since
		}
		hit, ok := l.show(h, head)
		if !ok {
			if err := l.x.outdated(ctx, h.Session); err != nil {
				return nil, err
			}
			continue
		}
		hit.Session, hit.Cursor = h.Session, l.cursor(h.ID)
		out = append(out, hit)
	}
	return out, nil
}

// headsOf returns what Heads does for hits.
func (q *Query) headsOf(ctx context.Context, hits []hitRow) (map[string]Head, error) {
	var ids, tagged []string
	for _, h := range hits {
		ids = append(ids, h.Session)
		if h.Field == ofHead {
			tagged = append(tagged, h.Session)
		}
	}
	return q.Heads(ctx, ids, tagged)
}

// outdated has Fill read a session's transcript again.
func (x *Index) outdated(ctx context.Context, id string) error {
	return x.db.Tx(ctx, func(tx *store.Tx) error { return x.Reread(ctx, tx, id) })
}

// show returns the excerpt of a hit; false if the terms are not found.
func (l *lookup) show(h hitRow, head Head) (Hit, bool) {
	if h.Field == ofHead {
		return l.showHead(head.Title, head.Tags)
	}
	raw, err := l.x.lineOf(h)
	if err != nil {
		return Hit{}, false
	}
	text, line := transcript.Searched(raw)
	excerpt, ok := l.q.Excerpt(text, excerptLen)
	return Hit{In: "text", Excerpt: excerpt, Message: line.UUID, Role: line.Type, At: lines.LineTime(&line)}, ok
}

// showHead returns a hit in title and tags, where a prefix is enough.
func (l *lookup) showHead(title string, tags []string) (Hit, bool) {
	q := l.q
	q.Begins = true
	if text, ok := q.Excerpt(title, excerptLen); ok {
		return Hit{In: "title", Excerpt: text}, true
	}
	if _, _, ok := q.Find(headText(title, tags)); !ok {
		return Hit{}, false
	}
	last := words.Query{Terms: q.Terms[len(q.Terms)-1:], Begins: true}
	for _, tag := range tags {
		if _, _, ok := last.Find(tag); ok {
			return Hit{In: "tag", Excerpt: tag}, true
		}
	}
	return Hit{In: "tag", Excerpt: strings.Join(tags, ", ")}, true
}

var errCursor = core.Errorf(core.Invalid, "the cursor is not one of this list's")
