package search

import (
	"cmp"
	"context"
	"hash/fnv"
	"slices"
	"strconv"

	"gatehouse/core"
)

// meaning is the name of the list of conversations that are near in meaning.
const meaning = "near"

// mostNear limits the conversations of a search that are found by their meaning. The
// cursor has all of them.
const mostNear = 20

// A mark identifies a conversation in a cursor.
type mark = uint32

func markOf(id string) mark {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return h.Sum32()
}

// meant returns the list of the conversations that are near in meaning, and takes them out
// of talks, those that were found by their words. The first page decides for all pages what
// is in the list and in which order, so that no conversation is on two of them.
func (f *Finder) meant(ctx context.Context, at *position, first bool, q Asked, r Reader, talks *list) (list, error) {
	l := list{place: at.Places[meaning]}
	shown, _ := strconv.Atoi(l.place.Cursor) // "" on the first page
	if shown = min(max(0, shown), len(at.Near)); l.place.End {
		shown = len(at.Near)
	}
	if q.Near == nil {
		at.Near = at.Near[:shown] // the others are found by their words, if at all
	} else if !l.place.End && (first || len(at.Near) > 0) {
		var err error
		if l.hits, err = f.o.Meaning.Near(ctx, q, r, mostNear); err != nil {
			return l, err
		}
	}
	if first {
		l.hits = fused(l.hits, talks.hits)
		for _, h := range l.hits {
			at.Near = append(at.Near, markOf(h.ID))
		}
	}
	places := make(map[mark]int, len(at.Near)) // at most mostNear
	for i, m := range at.Near {
		places[m] = i + 1
	}
	talks.hits = slices.DeleteFunc(talks.hits, func(h Hit) bool { return places[markOf(h.ID)] > 0 })
	l.hits = slices.DeleteFunc(l.hits, func(h Hit) bool { return places[markOf(h.ID)] <= shown })
	core.Sort(l.hits, func(a, b Hit) int { return cmp.Compare(places[markOf(a.ID)], places[markOf(b.ID)]) })
	for i := range l.hits {
		l.hits[i].Cursor = strconv.Itoa(places[markOf(l.hits[i].ID)])
	}
	return l, nil
}

// fused returns what is near in meaning by reciprocal rank fusion with what was found by its
// words. A conversation that is in both is shown with its words.
func fused(near, worded []Hit) []Hit {
	scores := make(map[string]float64, len(near)) // at most mostNear
	for i, h := range near {
		scores[h.ID] = 1 / float64(fusion+i+1)
		if k := slices.IndexFunc(worded, func(w Hit) bool { return w.ID == h.ID }); k >= 0 {
			scores[h.ID] += 1 / float64(fusion+k+1)
			near[i] = worded[k]
		}
	}
	core.Sort(near, func(a, b Hit) int { return cmp.Compare(scores[b.ID], scores[a.ID]) })
	return near
}
