package search

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"gatehouse/core"
)

// fusion is the constant of reciprocal rank fusion: a hit's score is
// 1/(fusion+rank) (Cormack, Clarke and Büttcher, SIGIR 2009).
const fusion = 60

// A list is what one source has found for a page.
type list struct {
	place place
	hits  []Hit
	next  string // of the source, behind hits; "" at its end
	used  int    // of hits, by the page
}

// merge returns the limit best hits of lists, each with its score.
func merge(lists []list, limit int) []Hit {
	out := []Hit{}
	for len(out) < limit {
		best, score := -1, 0.0
		for i, l := range lists {
			if l.used == len(l.hits) {
				continue
			}
			if s := 1 / float64(fusion+l.place.Rank+l.used+1); s > score {
				best, score = i, s
			}
		}
		if best < 0 {
			break
		}
		l := &lists[best]
		hit := l.hits[l.used]
		hit.Score = score
		out = append(out, hit)
		l.used++
	}
	return out
}

// rest returns where the source's next page begins.
func (l *list) rest() place {
	p := l.place
	p.Rank += l.used
	switch {
	case l.used < len(l.hits):
		if l.used > 0 {
			p.Cursor = l.hits[l.used-1].Cursor
		}
	case l.next == "":
		p = place{End: true}
	default:
		p.Cursor = l.next
	}
	return p
}

// A place is how far the pages have come in one source.
type place struct {
	Cursor string `json:"c,omitempty"`
	Rank   int    `json:"r,omitempty"` // hits of the pages before
	End    bool   `json:"e,omitempty"`
}

// A position is what a cursor holds.
type position struct {
	Of     string           `json:"q"`           // the search's fingerprint: a cursor continues no other
	Places map[string]place `json:"p"`           // by source
	Model  int64            `json:"m,omitempty"` // by which meanings were compared; 0: they were not
	Near   []mark           `json:"n,omitempty"` // the conversations of the list of meaning, as the first page ranked them
}

func (p position) encode() string {
	b, _ := json.Marshal(p) // strings, numbers and booleans: it cannot fail
	return base64.RawURLEncoding.EncodeToString(b)
}

// resume returns the position of a cursor, the beginning for "".
func resume(cursor string, q Asked, types []string) (position, error) {
	begin := position{Of: fingerprint(q, types), Places: map[string]place{}}
	if cursor == "" {
		return begin, nil
	}
	var p position
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil || len(cursor) > maxCursor || len(p.Near) > mostNear || p.Of != begin.Of || p.Places == nil {
		return position{}, core.Errorf(core.Invalid, "the cursor is not of this search: begin again without one")
	}
	for _, at := range p.Places {
		if at.Rank < 0 || at.Rank > 1<<20 {
			return position{}, core.Errorf(core.Invalid, "the cursor is not of this search: begin again without one")
		}
	}
	return p, nil
}

func fingerprint(q Asked, types []string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %v %q %q %d %d %q", q.Words.Terms, q.Words.Not, q.Words.Begins, q.Tags, q.Folder, q.After.UnixNano(), q.Before.UnixNano(), types)
	if q.Project != "" { // cursors without one stay as they are
		fmt.Fprintf(h, " %q", q.Project)
	}
	return fmt.Sprintf("%x", h.Sum64())
}
