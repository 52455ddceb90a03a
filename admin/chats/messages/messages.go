// Package messages finds the messages of one run in a conversation.
package messages

import (
	"context"
	"slices"
	"time"

	"gatehouse/core/transcript"
)

// Reach of OfRun: pages that are read, from the newest on, and messages of each.
const (
	maxPages = 20
	perPage  = 200
)

// A Run is what a conversation has of a run.
type Run struct {
	Messages []transcript.Message // oldest first
	Next     string               // id of the message after them; "" for none
	Far      bool                 // it is further back than is read
}

// OfRun returns the messages of a run that began at started. It reads the conversation, of which page
// returns a page, from its end back to the run.
func OfRun(ctx context.Context, page func(context.Context, transcript.PageQuery) (transcript.Page, error), run string, started time.Time) (r Run, err error) {
	q := transcript.PageQuery{Limit: perPage}
	for range maxPages {
		found, err := page(ctx, q)
		if err != nil {
			return r, err
		}
		after := q.Before
		for _, m := range slices.Backward(found.Messages) {
			if m.Run == run {
				if len(r.Messages) == 0 {
					r.Next = after
				}
				r.Messages = slices.Insert(r.Messages, 0, m)
			}
			after = m.Line()
		}
		begun := len(r.Messages) > 0 || len(found.Messages) == 0
		if len(found.Messages) > 0 {
			first := &found.Messages[0]
			begun = first.Run != run && (begun || !first.At.IsZero() && first.At.Before(started))
			q.Before = first.Line()
		}
		if begun || !found.More {
			r.Far = found.Cut && !begun
			return r, nil
		}
	}
	r.Far = true
	return r, nil
}
