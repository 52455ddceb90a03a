package document

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gatehouse/core"
	"gatehouse/core/index/search"
	"gatehouse/core/index/vector"
	"gatehouse/core/store"
	"gatehouse/core/store/fulltext"
)

// Limits of the search by meaning.
const (
	mostNear  = 50     // passages that it adds to a search
	mostFused = 100    // passages of the search by words whose rank counts next to it
	leastNear = 0.5    // of the best's similarity: something is always nearest
	candidate = 600    // passages whose vectors are compared exactly
	atOnce    = 64     // of their vectors that are read at a time
	mostOnly  = 10_000 // passages that meet the other conditions; where there are more, candidates are chosen among all
	fusion    = 60     // see search: the same constant
)

// near returns the passages that are nearest to what q means, the nearest first. Rights
// come before the ranking, as for words.
func (l *lookup) near(ctx context.Context) ([]found, error) {
	if l.q.Near == nil {
		return nil, nil
	}
	c := l.conditions()
	only, err := l.only(ctx, c)
	if err != nil {
		return nil, err
	}
	v, ok := vector.Normal(l.q.Near.Values)
	if !ok {
		return nil, nil
	}
	most := candidate
	if len(c.Where) > 0 && only == nil {
		most *= 4 // conditions drop some
	}
	chosen, err := vector.Near(ctx, l.s.db, vector.Search{Model: l.q.Near.Model, Vector: v, May: l.may, Only: only, Most: most})
	if err != nil || len(chosen) == 0 {
		return nil, err
	}
	if len(c.Where) > 0 && only == nil {
		if chosen, err = l.meeting(ctx, c, chosen); err != nil {
			return nil, err
		}
	}
	nearest, err := Nearest(ctx, l.s.db, l.q.Near.Model, v, chosen)
	if err != nil || len(nearest) == 0 {
		return nil, err
	}
	var rows []found
	err = l.s.db.Select(ctx, &rows, `SELECT c.n, c.content_id, m.source_path FROM chunks c JOIN index_manifest m ON m.content_id = c.content_id WHERE c.n IN (`+list(nearest)+`)`)
	core.Sort(rows, func(a, b found) int { return slices.Index(nearest, a.N) - slices.Index(nearest, b.N) })
	return rows, err
}

// may reports whether the reader may find documents with the key of nearKey.
func (l *lookup) may(key uint64) bool {
	if _, _, ok := OfSession(key); ok {
		return false
	}
	return l.r.Trust >= core.Vault || key&1 == 1 || key == nearKey(l.r.User, false) && l.r.User > 0
}

// conditions are what q asks for in addition to its words: a directory, times and tags, and what is
// in quotes or excluded; and with any of them the reader's rights, see rights.
func (l *lookup) conditions() (c store.Conditions) {
	var terms []fulltext.Term
	for _, tag := range l.q.Tags {
		terms = append(terms, l.tag(tag))
	}
	for _, w := range l.q.Phrases {
		terms = append(terms, l.word(w))
	}
	in := func(op string, terms ...fulltext.Term) {
		match, args := l.s.db.Match(l.table(), terms, len(c.Args)+1)
		c.Args = append(c.Args, args...)
		c.Where = append(c.Where, "c.n "+op+" (SELECT rowid FROM "+l.table()+" WHERE "+match+")")
	}
	if len(terms) > 0 {
		in("IN", terms...)
	}
	for _, w := range l.q.Words.Not {
		in("NOT IN", l.word(w))
	}
	l.bounds(&c)
	if rights := l.rights(); len(c.Where) > 0 && len(terms) == 0 && len(rights) > 0 {
		in("IN", rights...)
	}
	return c
}

// only returns the passages that meet conditions, ascending, where they are few; nil
// where they are many or there are no conditions.
func (l *lookup) only(ctx context.Context, c store.Conditions) ([]int64, error) {
	if len(c.Where) == 0 {
		return nil, nil
	}
	only := []int64{}
	err := l.s.db.Select(ctx, &only, fmt.Sprintf(`SELECT c.n FROM chunks c JOIN index_manifest m ON m.content_id = c.content_id WHERE c.content_type <> 'session' AND %s LIMIT %d`,
		strings.Join(c.Where, " AND "), mostOnly+1), c.Args...)
	if len(only) > mostOnly {
		return nil, err
	}
	slices.Sort(only)
	return only, err
}

// meeting returns those of the chosen passages that meet conditions.
func (l *lookup) meeting(ctx context.Context, c store.Conditions, chosen []int64) (out []int64, err error) {
	err = l.s.db.Select(ctx, &out, `SELECT c.n FROM chunks c JOIN index_manifest m ON m.content_id = c.content_id WHERE c.n IN (`+list(chosen)+`) AND `+strings.Join(c.Where, " AND "), c.Args...)
	return out, err
}

// A compared is a passage with its similarity to what is searched for.
type compared struct {
	N      int64  `db:"n"`
	Vector []byte `db:"embedding"`
	near   float64
}

// Nearest compares the vectors of the chosen passages exactly with v, of length 1, and returns
// the nearest, up to 50. It reads a part of the vectors at a time, up to 1 MB, on each of
// two connections.
func Nearest(ctx context.Context, db *store.DB, model int64, v []float32, chosen []int64) ([]int64, error) {
	ordered := slices.Sorted(slices.Values(chosen)) // as they are stored
	half := min(len(ordered), (len(ordered)/2+atOnce-1)/atOnce*atOnce)
	var other []compared
	var otherErr error
	var reading sync.WaitGroup
	if half < len(ordered) {
		reading.Go(func() { other, otherErr = nearest(ctx, db, model, v, ordered[half:]) })
	}
	all, err := nearest(ctx, db, model, v, ordered[:half])
	reading.Wait()
	if err = errors.Join(err, otherErr); err != nil {
		return nil, err
	}
	all = best(append(all, other...))
	var numbers []int64
	for _, x := range all {
		if x.near <= 0 || x.near < all[0].near*leastNear {
			break
		}
		numbers = append(numbers, x.N)
	}
	return numbers, nil
}

// nearest returns the nearest of passages, the nearest first.
func nearest(ctx context.Context, db *store.DB, model int64, v []float32, numbers []int64) (all []compared, err error) {
	args := make([]any, atOnce+1)
	args[atOnce] = model
	for part := range slices.Chunk(numbers, atOnce) {
		for i := range atOnce {
			args[i] = part[min(i, len(part)-1)] // the last several times, so that the statement is prepared once
		}
		var more []compared
		if err := db.Select(ctx, &more, vectorsByNumber, args...); err != nil {
			return nil, err
		}
		for _, x := range more {
			all = append(all, compared{N: x.N, near: vector.Similarity(v, x.Vector)})
		}
		all = best(all)
	}
	return all, nil
}

// best returns up to mostNear of all, the nearest first.
func best(all []compared) []compared {
	slices.SortFunc(all, func(a, b compared) int { return cmp.Or(cmp.Compare(b.near, a.near), cmp.Compare(a.N, b.N)) })
	return all[:min(len(all), mostNear)]
}

var vectorsByNumber = `SELECT n, embedding FROM chunks WHERE n IN (` + placeholders(atOnce) + `) AND embedder = $` + strconv.Itoa(atOnce+1)

// fuse joins the rankings by words and by meaning by reciprocal rank fusion: the
// documents of both, one row for each, and behind them the further rows by words.
func fuse(byWords, byMeaning []found) []found {
	if len(byMeaning) == 0 {
		return byWords
	}
	scores := map[string]float64{} // at most mostFused + mostNear
	var out []found
	add := func(rows []found) {
		ranked := map[string]bool{}
		for _, r := range rows {
			if ranked[r.Content] {
				continue
			}
			ranked[r.Content] = true
			if scores[r.Content] == 0 {
				out = append(out, r)
			}
			scores[r.Content] += 1 / float64(fusion+len(ranked))
		}
	}
	first := byWords[:min(len(byWords), mostFused)]
	add(first)
	add(byMeaning)
	core.Sort(out, func(a, b found) int { return cmp.Compare(scores[b.Content], scores[a.Content]) })
	return append(out, byWords[len(first):]...)
}

var _ search.Source = (*Store)(nil)
