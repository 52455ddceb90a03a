// Package found makes conversations a source of the search.
package found

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/index/search"
	"gatehouse/core/session"
	"gatehouse/core/transcript/words"
)

// Sessions finds conversations.
type Sessions interface {
	Search(ctx context.Context, f session.Filter) ([]session.Found, string, error)
	List(ctx context.Context, f session.Filter) ([]session.Session, string, error)
}

// A Source is the search.Source of conversations.
type Source struct{ Sessions Sessions }

const (
	mostRounds = 4  // pages of the sessions' search for one page of hits: one may be short
	mostMarks  = 32 // of one excerpt
)

// Find returns conversations of the reader up to their trust, or all of the reader with
// r.AnyTrust, or all of all users with r.Everyone, the newest hit first. Without words it
// returns those that have all tags and belong to the project. A conversation is in no directory: where q asks for one,
// there are none.
func (s Source) Find(ctx context.Context, q search.Asked, r search.Reader, limit int, cursor string) ([]search.Hit, string, error) {
	f, ok := filterOf(q, r)
	if !ok {
		return nil, "", nil
	}
	f.Limit, f.Cursor = limit, cursor
	if len(q.Words.Terms) == 0 {
		if len(q.Words.Not) > 0 {
			return nil, "", nil // a list knows no words
		}
		return s.list(ctx, f)
	}
	var hits []search.Hit
	for range mostRounds {
		page, next, err := s.Sessions.Search(ctx, f)
		if err != nil {
			return nil, "", err
		}
		for _, p := range page {
			hits = append(hits, hitOf(p, q.Words))
			if f.Cursor = p.Hit.Cursor; len(hits) == limit {
				return hits, f.Cursor, nil // a next page may be empty
			}
		}
		if f.Cursor = next; next == "" {
			break
		}
	}
	return hits, f.Cursor, nil
}

// filterOf returns which conversations r may find; false where there are none.
func filterOf(q search.Asked, r search.Reader) (session.Filter, bool) {
	f := session.Filter{User: r.User, All: r.Everyone, Words: q.Words, Tags: q.Tags, Project: q.Project, Since: q.After, Until: q.Before}
	if q.Folder != "" || r.User == 0 && !r.Everyone {
		return f, false
	}
	if !r.Everyone && !r.AnyTrust { // a turn does not read what was written at a higher trust
		for t := core.Sandboxed; t <= r.Trust; t++ {
			f.Trusts = append(f.Trusts, t)
		}
		return f, f.Trusts != nil
	}
	return f, true
}

// list returns conversations without looking for words.
func (s Source) list(ctx context.Context, f session.Filter) ([]search.Hit, string, error) {
	if len(f.Tags) == 0 && f.Project == "" {
		return nil, "", nil // all conversations are no answer
	}
	list, next, err := s.Sessions.List(ctx, f)
	hits := make([]search.Hit, 0, len(list))
	for _, one := range list {
		hits = append(hits, search.Hit{Type: search.Session, ID: one.ID, Title: one.Title, User: one.User, In: "tag", At: one.LastAccessed, Cursor: session.After(one)})
	}
	return hits, next, err
}

func hitOf(p session.Found, q words.Query) search.Hit {
	q.Begins = true // also where the last word was found whole, as in titles
	hit := search.Hit{
		Type: search.Session, ID: p.ID, Title: p.Title, User: p.User, Message: p.Hit.Message, Role: p.Hit.Role, In: p.Hit.In,
		Excerpt: p.Hit.Excerpt, Marks: q.Marks(p.Hit.Excerpt, mostMarks), At: p.Hit.At, Cursor: p.Hit.Cursor,
	}
	if hit.At.IsZero() {
		hit.At = p.LastAccessed
	}
	return hit
}

var _ search.Source = Source{}
