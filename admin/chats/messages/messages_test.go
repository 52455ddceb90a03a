package messages_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gatehouse/admin/chats/messages"
	"gatehouse/core/transcript"
)

// A conversation is messages of runs, one a minute.
type conversation struct {
	all   []transcript.Message
	cut   bool // there is more before than can be read
	pages int  // that were read
}

func (c *conversation) say(run string, n int) {
	for range n {
		i := len(c.all)
		c.all = append(c.all, transcript.Message{UUID: fmt.Sprint("m", i), Run: run, At: begin.Add(time.Duration(i) * time.Minute)})
	}
}

func (c *conversation) page(_ context.Context, q transcript.PageQuery) (p transcript.Page, err error) {
	c.pages++
	end := len(c.all)
	for i := range c.all {
		if c.all[i].UUID == q.Before {
			end = i
		}
	}
	from := max(0, end-q.Limit)
	return transcript.Page{Messages: c.all[from:end], More: from > 0, Cut: c.cut}, nil
}

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestOfRun(t *testing.T) {
	for name, x := range map[string]struct {
		before, of, after int
		cut               bool
		started           time.Time // zero: with the run's first message
		found             int
		next              string
		far               bool
		pages             int
	}{
		"at the end":                   {before: 900, of: 4, found: 4, pages: 1},
		"at the beginning":             {of: 4, after: 900, found: 4, next: "m4", pages: 5},
		"over two pages":               {before: 10, of: 50, after: 180, found: 50, next: "m60", pages: 2},
		"the only one":                 {of: 4, found: 4, pages: 1},
		"up to the edge of a page":     {before: 300, of: 200, found: 200, pages: 2},
		"further than is read":         {of: 4, after: 5000, far: true, pages: 20},
		"before what can be read":      {after: 100, cut: true, started: begin.Add(-time.Hour), far: true, pages: 1},
		"it said nothing":              {before: 1000, started: begin.Add(990 * time.Minute), pages: 1},
		"the conversation was emptied": {started: begin, pages: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := &conversation{cut: x.cut}
			c.say("before", x.before)
			started := begin.Add(time.Duration(x.before) * time.Minute)
			if !x.started.IsZero() {
				started = x.started
			}
			c.say("mine", x.of)
			c.say("after", x.after)
			r, err := messages.OfRun(t.Context(), c.page, "mine", started)
			if err != nil || len(r.Messages) != x.found || r.Next != x.next || r.Far != x.far || c.pages != x.pages {
				t.Errorf("%d messages, next %q, far %v, %d pages, %v", len(r.Messages), r.Next, r.Far, c.pages, err)
			}
			for i, m := range r.Messages {
				if want := fmt.Sprint("m", x.before+i); m.UUID != want {
					t.Fatalf("message %d is %s, want %s", i, m.UUID, want)
				}
			}
		})
	}
}
