package connectorstest

import (
	"errors"
	"strings"
	"sync"

	"gatehouse/connectors"
	"gatehouse/core"
)

// A record is a Flight that keeps what it was notified of.
type record struct {
	mu    sync.Mutex
	calls []string
	err   error // of Writing
}

func (r *record) Writing() error { return r.add("writing") }
func (r *record) Written()       { _ = r.add("written") }

func (r *record) add(call string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	return r.err
}

func unrecorded(b *bench) {
	if _, ok := b.conn.(connectors.Follower); !ok {
		b.Fatal("the connector notifies no Flight: its sends would all count as begun")
	}
	b.meet()
	send := func(text string, r *record) core.Delivery {
		return b.conn.Send(b.Context(), core.Outgoing{Address: b.dm, Part: core.Part{Text: text}, Flight: r})
	}
	for _, text := range []string{"one", "two"} { // the second one over a connection that exists
		r := &record{}
		if d := send(text, r); d.Outcome != core.Sent || strings.Join(r.calls, " ") != "writing written" {
			b.Errorf("%s: %+v, notified %v", text, d, r.calls)
		}
	}
	if d := send("three", &record{err: errors.New("no record")}); d.Outcome != core.NotSent {
		b.Errorf("without a record: %+v", d)
	}
	b.p.Down()
	r := &record{}
	d := send("four", r)
	if d.Outcome == core.Unknown { // an idle connection was closed
		r = &record{}
		d = send("four", r)
	}
	if d.Outcome != core.NotSent || len(r.calls) > 0 {
		b.Errorf("without a connection: %+v, notified %v", d, r.calls)
	}
	b.p.Up()
	b.seen(b.dm, "one", "two")
}
