package found

import (
	"context"
	"fmt"
	"slices"

	"gatehouse/core/index/document"
	"gatehouse/core/index/search"
	"gatehouse/core/index/vector"
	"gatehouse/core/session"
	"gatehouse/core/store"
)

// Nearby finds conversations by their chunks.
type Nearby interface {
	ChunksOf(ctx context.Context, f session.Filter, most int) ([]int64, error)
	AmongOf(ctx context.Context, f session.Filter, chosen []int64) ([]int64, error)
	FoundAt(ctx context.Context, f session.Filter, phrases [][]string, chosen []int64) ([]session.Found, error)
}

// A Meaning finds conversations by what is meant in them.
type Meaning struct {
	Sessions Nearby
	DB       *store.DB
}

const (
	candidates = 600    // chunks whose vectors are compared exactly
	spare      = 4      // factor of candidates that are chosen by their signs: conditions drop some
	mostOnly   = 10_000 // chunks that meet tags and times; where there are more, candidates are chosen among all
)

// Near returns the conversations in which something is nearest to what q means, the
// nearest first, at most limit: those that Source.Find may find. They need not have the
// words of q, but what is in quotes and nothing that it excludes.
func (m Meaning) Near(ctx context.Context, q search.Asked, r search.Reader, limit int) ([]search.Hit, error) {
	f, ok := filterOf(q, r)
	if !ok || q.Near == nil {
		return nil, nil
	}
	v, ok := vector.Normal(q.Near.Values)
	if !ok {
		return nil, nil
	}
	f.Limit = limit
	hits, err := m.near(ctx, q, f, v)
	if err != nil {
		return nil, fmt.Errorf("search conversations: %w", err)
	}
	return hits[:min(len(hits), limit)], nil
}

func (m Meaning) near(ctx context.Context, q search.Asked, f session.Filter, v []float32) (hits []search.Hit, err error) {
	s := vector.Search{Model: q.Near.Model, Vector: v, Most: spare * candidates, May: func(key uint64) bool {
		user, trust, ok := document.OfSession(key)
		return ok && (f.All || user == f.User) && (f.Trusts == nil || slices.Contains(f.Trusts, trust))
	}}
	if len(q.Tags) > 0 || q.Project != "" || !q.After.IsZero() || !q.Before.IsZero() {
		if s.Only, err = m.Sessions.ChunksOf(ctx, f, mostOnly); err != nil {
			return nil, err
		}
	}
	chosen, err := vector.Near(ctx, m.DB, s)
	if err == nil { // the rights as they are now, before anything is ranked
		chosen, err = m.Sessions.AmongOf(ctx, f, chosen)
	}
	if err != nil || len(chosen) == 0 {
		return nil, err
	}
	best, err := document.Nearest(ctx, m.DB, q.Near.Model, v, chosen[:min(len(chosen), candidates)])
	if err != nil {
		return nil, err
	}
	list, err := m.Sessions.FoundAt(ctx, f, q.Phrases, best)
	for _, p := range list {
		hits = append(hits, hitOf(p, q.Words))
	}
	return hits, err
}
