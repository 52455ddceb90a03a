package session

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/transcript/words"
)

// A Found is a session and where what was asked for is in it.
type Found struct {
	Session
	Hit Hit
}

// A Hit is the newest place of a session that matches all terms.
type Hit struct {
	In      string // title, tag, text
	Excerpt string // one line of about 160 characters
	Message string // of text: the message's id (Message.Line)
	Role    string // of text: user or assistant
	At      time.Time
}

// Bounds of a Search.
const (
	firstHits  = 128  // hits that are checked first; each further statement takes four times as many
	maxHits    = 2000 // of one page
	excerptLen = 160  // characters
	maxExcerpt = 1 << 20
)

// Search returns a page of sessions that have all the words of f.Search in one
// message, or in the title and tags together, the newest such place first: a
// title is as new as its last change. Nothing that was typed has a meaning of
// its own. Where nothing has the last word whole, it may be the beginning of
// one; of a title's or tag's word it may always be. The cursor is of this
// search alone, and a session that is found again while someone pages is
// neither skipped nor repeated. A page may be shorter than the limit and still
// have a next one, where few of many hits are of what the filter wants. Each
// hit has been read in the transcript.
func (s *Store) Search(ctx context.Context, f Filter) ([]Found, string, error) {
	if err := f.check(); err != nil {
		return nil, "", err
	}
	if f.Offset > 0 {
		return nil, "", core.Errorf(core.Invalid, "a search is paged by cursor, not by offset")
	}
	look := lookup{s: s, f: f, q: words.Parse(f.Search)}
	if err := look.resume(f.Cursor); err != nil {
		return nil, "", err
	}
	if len(look.q.Terms) == 0 {
		return nil, "", nil
	}
	if err := look.page(ctx); err != nil {
		return nil, "", fmt.Errorf("search sessions: %w", err)
	}
	if f.Cursor == "" && look.top == 0 && look.canBegin() {
		look.q.Begins = true
		if err := look.page(ctx); err != nil {
			return nil, "", fmt.Errorf("search sessions: %w", err)
		}
	}
	found, err := s.answers(ctx, look)
	return found, look.cursor(), err
}

// A lookup is one page being looked for.
type lookup struct {
	s   *Store
	f   Filter
	q   words.Query
	top int64 // the newest hit of the first page; 0 before it is known
	was int64 // where the page before has ended, 0 for none
	at  int64 // how far this one has come
	all bool  // there is nothing further

	hits []hitRow
}

type hitRow struct {
	ID      int64  `db:"id"`
	N       int64  `db:"n"`
	Session string `db:"session_id"`
	File    string `db:"file"`
	At      int64  `db:"at_byte"`
	Length  int64  `db:"length"`
	Fits    bool   `db:"fits"`
}

// minBegin is the shortest prefix of a term that is searched in messages.
const minBegin = 3

func (l *lookup) canBegin() bool {
	last := l.q.Terms[len(l.q.Terms)-1]
	return len([]rune(last[len(last)-1])) >= minBegin
}

// cursor and resume are each other's inverse.
func (l *lookup) cursor() string {
	if l.all {
		return ""
	}
	begins := 0
	if l.q.Begins {
		begins = 1
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "s %d %d %d", l.top, l.at, begins))
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
		if n[i], err = strconv.ParseInt(fields[i+1], 10, 64); err != nil || n[i] < 0 {
			return errCursor
		}
	}
	if n[0] < 1 || n[1] < 1 || n[1] > n[0] || n[2] > 1 {
		return errCursor
	}
	l.top, l.was, l.at, l.q.Begins = n[0], n[1], n[1], n[2] == 1
	return nil
}

// terms returns the query for the index; key is a further term of its keys.
func (l *lookup) terms(key string) []store.Term {
	var terms []store.Term
	if key != "" {
		terms = append(terms, store.Term{Columns: []string{"keys"}, Words: []string{key}})
	}
	for i, w := range l.q.Terms {
		t := store.Term{Columns: []string{"words"}, Words: w}
		if i == len(l.q.Terms)-1 {
			t.Columns, t.Begins = []string{"words", "starts"}, l.q.Begins
		}
		if !l.f.All {
			t.Columns, t.Words = []string{"keys"}, make([]string, len(w))
			for k := range w {
				t.Words[k] = ownWord(l.f.User, w[k])
			}
		}
		terms = append(terms, t)
	}
	return terms
}

// page collects the hits of one page, one for each session.
func (l *lookup) page(ctx context.Context) error {
	seen := map[int64]bool{}
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
			fits := h.Fits && !seen[h.N]
			if fits && again[h.N] {
				if fits, err = l.fresh(ctx, h.N); err != nil {
					return err
				}
			}
			if fits && len(l.hits) == l.f.Limit {
				return nil // one too many: it begins the next page
			}
			if fits {
				l.hits = append(l.hits, h)
			}
			seen[h.N], l.at = true, h.ID
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
	return rows, l.s.db.Select(ctx, &rows, query, args...)
}

// statement walks the index backwards; the filter is applied to each hit, so that the
// walk knows its position.
func (l *lookup) statement(n int) (string, []any) {
	match, args := l.s.db.Match("search", l.terms(""), 1)
	inner := conditions{args: args}
	if l.at > 0 {
		inner.and("rowid < ?", l.at)
	}
	inner.and(match)
	outer := conditions{args: append(inner.args, n)}
	limit := len(outer.args)
	l.f.choose(&outer)
	fits := "1"
	if len(outer.where) > 0 {
		fits = "CASE WHEN " + strings.Join(outer.where, " AND ") + " THEN 1 ELSE 0 END"
	}
	return fmt.Sprintf(`SELECT h.id, d.n, w.session_id, w.File, d.at_byte, d.Length, %s AS fits
		FROM (SELECT rowid AS id FROM search WHERE %s ORDER BY rowid DESC LIMIT $%d) h
		JOIN search_docs d ON d.id = h.id JOIN search_sessions w ON w.n = d.n JOIN sessions s ON s.id = w.session_id
		ORDER BY h.id DESC`, fits, strings.Join(inner.where, " AND "), limit), outer.args
}

// repeats returns the sessions of which something is where the pages before
// this one have been: fresh reports whether it was a hit.
func (l *lookup) repeats(ctx context.Context, batch []hitRow) (map[int64]bool, error) {
	if l.was == 0 || len(batch) == 0 {
		return nil, nil
	}
	c := conditions{args: []any{l.was, l.top}}
	for _, h := range batch {
		c.and("?", h.N)
	}
	var list []int64
	err := l.s.db.Select(ctx, &list, `SELECT DISTINCT n FROM search_docs WHERE +id >= $1 AND +id <= $2 AND n IN (`+strings.Join(c.where, ", ")+`)`, c.args...)
	again := make(map[int64]bool, len(list))
	for _, n := range list {
		again[n] = true
	}
	return again, err
}

// fresh reports whether no page before this one has shown the session.
func (l *lookup) fresh(ctx context.Context, n int64) (bool, error) {
	match, args := l.s.db.Match("search", l.terms(sessionKey(n)), 3)
	var shown bool
	err := l.s.db.Get(ctx, &shown, `SELECT EXISTS (SELECT 1 FROM search WHERE rowid >= $1 AND rowid <= $2 AND `+match+`)`,
		append([]any{l.was, l.top}, args...)...)
	return !shown, err
}

// answers returns the page of the hits: each session with an excerpt. If a transcript
// has changed, the hit is omitted, and Fill reads the file again.
func (s *Store) answers(ctx context.Context, l lookup) ([]Found, error) {
	rows, tags, err := s.shown(ctx, l.hits)
	if err != nil {
		return nil, err
	}
	out := make([]Found, 0, len(l.hits))
	for _, h := range l.hits {
		r, there := rows[h.Session]
		if !there || !l.f.All && r.User != l.f.User {
			continue // deleted since
		}
		sess, err := r.session()
		if err != nil {
			return nil, err
		}
		hit, ok := l.show(h, sess.Title, tags[h.Session])
		if !ok {
			if err := s.outdated(ctx, h.N); err != nil {
				return nil, err
			}
			continue
		}
		out = append(out, Found{sess, hit})
	}
	return out, nil
}

// shown reads the sessions of hits, and the tags of those found by title or tag.
func (s *Store) shown(ctx context.Context, hits []hitRow) (map[string]row, map[string][]string, error) {
	rows, tags := make(map[string]row, len(hits)), map[string][]string{}
	var all, heads conditions
	for _, h := range hits {
		all.and("?", h.Session)
		if h.At == noLine {
			heads.and("?", h.Session)
		}
	}
	if len(all.where) > 0 {
		var list []row
		if err := s.db.Select(ctx, &list, `SELECT `+columns+` FROM sessions s WHERE s.id IN (`+strings.Join(all.where, ", ")+`)`, all.args...); err != nil {
			return nil, nil, fmt.Errorf("search sessions: %w", err)
		}
		for _, r := range list {
			rows[r.ID] = r
		}
	}
	if len(heads.where) > 0 {
		var list []struct {
			ID  string `db:"session_id"`
			Tag string `db:"tag"`
		}
		err := s.db.Select(ctx, &list, `SELECT session_id, tag FROM session_tags WHERE session_id IN (`+strings.Join(heads.where, ", ")+`) ORDER BY session_id, tag`, heads.args...)
		if err != nil {
			return nil, nil, fmt.Errorf("search sessions: %w", err)
		}
		for _, t := range list {
			tags[t.ID] = append(tags[t.ID], t.Tag)
		}
	}
	return rows, tags, nil
}

// outdated has Fill read a session's transcript again.
func (s *Store) outdated(ctx context.Context, n int64) error {
	return s.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE search_sessions SET bytes = 0, behind = 1 WHERE n = $1`, n)
		return err
	})
}

// show returns the excerpt of a hit; false if the terms are not found.
func (l *lookup) show(h hitRow, title string, tags []string) (Hit, bool) {
	if h.At == noLine {
		return l.showHead(title, tags)
	}
	raw, err := l.s.lineOf(h)
	if err != nil {
		return Hit{}, false
	}
	text, line := transcript.Searched(raw)
	excerpt, ok := l.q.Excerpt(text, excerptLen)
	return Hit{In: "text", Excerpt: excerpt, Message: line.UUID, Role: line.Type, At: transcript.LineTime(&line)}, ok
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

// lineOf reads a hit's line.
func (s *Store) lineOf(h hitRow) ([]byte, error) {
	f, err := s.vault.Root().Open(h.File)
	if err != nil {
		found, ferr := s.vault.FindTranscripts(h.Session)
		if ferr != nil || len(found) == 0 {
			return nil, err
		}
		if f, err = s.vault.Root().Open(found[0]); err != nil {
			return nil, err
		}
	}
	defer f.Close()
	if h.Length > maxExcerpt { // a line with media
		raw, _, err := transcript.ReadLine(bufio.NewReaderSize(io.NewSectionReader(f, h.At, h.Length), 64<<10))
		return raw, err
	}
	raw := make([]byte, h.Length)
	_, err = f.ReadAt(raw, h.At)
	return raw, err
}
