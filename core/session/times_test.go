package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/core/index/search"
	"gatehouse/core/session"
	"gatehouse/core/session/found"
)

var (
	december = time.Date(2025, 12, 10, 12, 0, 0, 0, time.UTC)
	newYear  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	february = time.Date(2026, 2, 10, 12, 0, 0, 0, time.UTC)
)

// at sets the clock.
func (h *house) at(when time.Time) { h.clock.Advance(when.Sub(h.clock.Now())) }

// A conversation goes on: its newest message about something is not the one that is asked for.
func TestAConversationIsFoundByWhatWasWrittenAtATime(t *testing.T) {
	for _, by := range []string{"words", "meaning"} {
		t.Run("by "+by, func(t *testing.T) {
			w := talking(t)
			w.at(december)
			s := w.resolve(chat(5, "c1")).Session
			w.says(s, "r1", "What happened at the house?", "The gutters were repaired by a roofer.")
			w.at(february)
			w.says(s, "r2", "And in spring?", "The gutters were repaired again, in February.")
			asked := "gutters repaired"
			if by == "meaning" {
				w.embed()
				asked = "repairing guttering"
			}
			for name, c := range map[string]struct {
				q    search.Query
				want string
			}{
				"before the newest":   {search.Query{Before: newYear}, "The gutters were repaired by a roofer."},
				"after the oldest":    {search.Query{After: newYear}, "The gutters were repaired again, in February."},
				"between both":        {search.Query{After: december.Add(time.Hour), Before: newYear}, ""},
				"at the oldest":       {search.Query{After: december, Before: newYear}, "The gutters were repaired by a roofer."},
				"before both":         {search.Query{Before: december}, ""},
				"after both":          {search.Query{After: february.Add(time.Hour)}, ""},
				"around both of them": {search.Query{After: december, Before: february.Add(time.Hour)}, "The gutters were repaired again, in February."},
			} {
				c.q.Text = asked
				hits := w.meant(five, c.q)
				got := ""
				for _, h := range hits {
					got += h.Excerpt
				}
				if by == "meaning" && name == "around both of them" && len(hits) == 1 {
					continue // either message is as near
				}
				if got != c.want {
					t.Errorf("%s: %q, want %q", name, got, c.want)
				}
			}
		})
	}
}

// The pages of a search within times show each conversation once, also one that has newer
// messages of another time.
func TestASearchWithinTimesIsPagedWithoutGapOrRepeat(t *testing.T) {
	h := open(t)
	h.at(december)
	var all []session.Session
	for i := range 5 {
		s := h.resolve(chat(5, fmt.Sprint("c", i))).Session
		h.says(s, fmt.Sprint("old", i), "About the house", "The gutters were repaired.")
		h.says(s, fmt.Sprint("older", i), "Again", "The gutters were repaired once more.")
		all = append(all, s)
	}
	h.at(february)
	for i, s := range all {
		h.says(s, fmt.Sprint("new", i), "And now?", "The gutters were repaired in February.")
	}
	source, seen, cursor := found.Source{Sessions: h.Store}, map[string]int{}, ""
	for range 20 {
		q, _ := search.Parse("gutters repaired")
		q.Before = newYear
		hits, next, err := source.Find(t.Context(), q, five, 2, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, hit := range hits {
			if seen[hit.ID]++; !hit.At.Before(newYear) {
				t.Errorf("a hit of %s", hit.At)
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if len(seen) != len(all) || cursor != "" {
		t.Errorf("%d conversations are found of %d", len(seen), len(all))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s is shown %d times", id, n)
		}
	}
}

// leaving is a client that leaves after it was looked for a number of times.
type leaving struct {
	context.Context
	after *atomic.Int64
}

func (l leaving) Err() error {
	if l.after.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// Each hit is read in its transcript.
func TestASearchWithinTimesEndsWithItsClient(t *testing.T) {
	h := open(t)
	h.at(december)
	s := h.resolve(chat(5, "c")).Session
	h.says(s, "r", "About the house", "The gutters were repaired.")
	h.at(february)
	for i := range 300 {
		h.says(s, fmt.Sprint("r", i), "About the house", "The gutters were repaired.")
	}
	q, _ := search.Parse("gutters repaired")
	source := found.Source{Sessions: h.Store}
	const many = 1 << 30
	var after atomic.Int64
	after.Store(many)
	if hits, _, err := source.Find(leaving{t.Context(), &after}, q, five, 2, ""); err != nil || len(hits) != 1 {
		t.Fatal(hits, err)
	}
	looks := many - after.Load() // of the statements and rows
	q.Before = newYear           // the oldest of them, which is looked at last
	after.Store(looks + 150)     // fewer than there are hits
	if _, _, err := source.Find(leaving{t.Context(), &after}, q, five, 2, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, after %d looks, %d of which for the statements", err, looks+150-after.Load(), looks)
	}
}
