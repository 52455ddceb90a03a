package session

import (
	"context"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/core/index"
	"gatehouse/core/store"
	"gatehouse/core/transcript/words"
)

// A Hit is where in a session the search terms were found.
type Hit = index.Hit

// A Found is a session that a search has found, and where.
type Found struct {
	Session
	Hit Hit
}

// Search returns a page of sessions that match f.Search or f.Words, in the order of index.Find,
// and the cursor of the next page. The cursor is valid for this search only.
func (s *Store) Search(ctx context.Context, f Filter) ([]Found, string, error) {
	q, rows, err := s.asked(&f)
	if err != nil {
		return nil, "", err
	}
	hits, next, err := s.Find(ctx, q)
	if err != nil {
		return nil, "", err
	}
	found, err := founds(hits, *rows)
	return found, next, err
}

// asked returns the query of a filter, and where its Heads leaves the sessions' rows.
func (s *Store) asked(f *Filter) (index.Query, *map[string]row, error) {
	if err := f.check(); err != nil {
		return index.Query{}, nil, err
	}
	if f.Offset > 0 {
		return index.Query{}, nil, core.Errorf(core.Invalid, "a search is paged by cursor, not by offset")
	}
	terms := f.Words
	if f.Search != "" {
		terms = words.Parse(f.Search)
	}
	q := index.Query{Words: terms, User: f.User, All: f.All, Where: f.choose, After: f.Since, Before: f.Until, Limit: f.Limit, Cursor: f.Cursor}
	rows := &map[string]row{}
	q.Heads = func(ctx context.Context, ids, tagged []string) (heads map[string]index.Head, err error) {
		*rows, heads, err = s.heads(ctx, f, ids, tagged)
		return heads, err
	}
	return q, rows, nil
}

func founds(hits []Hit, rows map[string]row) ([]Found, error) {
	found := make([]Found, 0, len(hits))
	for _, h := range hits {
		r := rows[h.Session]
		sess, err := r.session()
		if err != nil {
			return nil, err
		}
		found = append(found, Found{sess, h})
	}
	return found, nil
}

// ChunksOf returns the numbers of the chunks of all sessions that f chooses, as index.Chunks.
func (s *Store) ChunksOf(ctx context.Context, f Filter, most int) ([]int64, error) {
	q, _, err := s.asked(&f)
	if err != nil {
		return nil, err
	}
	return s.Chunks(ctx, q, most)
}

// AmongOf returns those of the chunks with the numbers chosen that are of sessions which f
// chooses, in their order.
func (s *Store) AmongOf(ctx context.Context, f Filter, chosen []int64) ([]int64, error) {
	q, _, err := s.asked(&f)
	if err != nil {
		return nil, err
	}
	return s.Among(ctx, q, chosen)
}

// FoundAt returns those of the sessions that f chooses of which the chosen chunks are, in
// their order, one hit each, as index.At.
func (s *Store) FoundAt(ctx context.Context, f Filter, phrases [][]string, chosen []int64) ([]Found, error) {
	q, rows, err := s.asked(&f)
	if err != nil {
		return nil, err
	}
	hits, err := s.At(ctx, q, phrases, chosen)
	if err != nil {
		return nil, err
	}
	return founds(hits, *rows)
}

// heads reads the sessions ids, as far as the filter's user may see them, and the tags
// of those in tagged.
func (s *Store) heads(ctx context.Context, f *Filter, ids, tagged []string) (map[string]row, map[string]index.Head, error) {
	rows, heads := make(map[string]row, len(ids)), make(map[string]index.Head, len(ids))
	if len(ids) > 0 {
		var list []row
		in, args := inList(ids)
		if err := s.db.Select(ctx, &list, `SELECT `+columns+` FROM sessions s WHERE s.id IN (`+in+`)`, args...); err != nil {
			return nil, nil, fmt.Errorf("search sessions: %w", err)
		}
		for _, r := range list {
			if f.All || r.User == f.User {
				rows[r.ID], heads[r.ID] = r, index.Head{User: r.User, Title: r.Title}
			}
		}
	}
	if len(tagged) > 0 {
		var list []struct {
			ID  string `db:"session_id"`
			Tag string `db:"tag"`
		}
		in, args := inList(tagged)
		err := s.db.Select(ctx, &list, `SELECT session_id, tag FROM session_tags WHERE session_id IN (`+in+`) ORDER BY session_id, tag`, args...)
		if err != nil {
			return nil, nil, fmt.Errorf("search sessions: %w", err)
		}
		for _, t := range list {
			if h, ok := heads[t.ID]; ok {
				h.Tags = append(h.Tags, t.Tag)
				heads[t.ID] = h
			}
		}
	}
	return rows, heads, nil
}

// inList returns a list of placeholders for ids, and their values.
func inList(ids []string) (string, []any) {
	var c store.Conditions
	for _, id := range ids {
		c.And("?", id)
	}
	return strings.Join(c.Where, ", "), c.Args
}

// Head returns what of a session can be found other than its messages; core.NotFound
// without the session.
func (s *Store) Head(ctx context.Context, q store.Queryer, id string) (index.Head, error) {
	d, err := s.Detail(ctx, q, id)
	return index.Head{User: d.User, Title: d.Title, Tags: d.Tags}, err
}

// TranscriptName returns where the session's transcript is written, a slash path
// relative to the vault; "" for an unknown session.
func (s *Store) TranscriptName(id string) string {
	sess, err := s.ByID(context.Background(), s.db, id)
	if err != nil {
		return ""
	}
	d, err := s.vault.Dir(s.Rebase(sess))
	if err != nil {
		return ""
	}
	name, err := s.vault.Transcript(d.Path, id)
	if err != nil {
		return ""
	}
	return name
}

// indexHead indexes a session's title and tags as tx sees them.
func (s *Store) indexHead(ctx context.Context, tx *store.Tx, id string) error {
	h, err := s.Head(ctx, tx, id)
	if err != nil {
		return err
	}
	return s.SetHead(ctx, tx, id, h)
}
