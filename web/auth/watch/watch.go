// Package watch checks at intervals whether the callers of open streams would still be let in.
package watch

import (
	"context"
	"net/http"
	"sync"
	"time"

	"gatehouse/core"
)

const (
	every = 15 * time.Second // how often all callers are checked
	wait  = 5 * time.Second  // for one check of the store
)

// A Caller came by a key or, where Key is "", by an admin session.
type Caller struct {
	Key  string
	Sum  string // the digest of the key's secret that was sent
	User int64
	R    *http.Request // with its address and the session's cookie alone
	Gone func()        // called when the caller would not be let in any more
}

// A Watch checks all callers at once, with one goroutine, which is there while a caller is. It is
// safe for concurrent use.
type Watch struct {
	clock core.Clock
	check func(ctx context.Context, all []*Caller) map[*Caller]bool

	mu    sync.Mutex
	all   map[*Caller]struct{} // bounded by the open streams
	going bool
	empty chan struct{} // holds a token when the last has gone
}

// New returns a Watch without callers. check returns those of all that would be let in now.
func New(clock core.Clock, check func(ctx context.Context, all []*Caller) map[*Caller]bool) *Watch {
	return &Watch{clock: clock, check: check, all: map[*Caller]struct{}{}, empty: make(chan struct{}, 1)}
}

// Add has c checked until forget is called.
func (x *Watch) Add(c *Caller) (forget func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all[c] = struct{}{}
	if !x.going {
		x.going = true
		go x.run()
	}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if delete(x.all, c); len(x.all) == 0 {
			select {
			case x.empty <- struct{}{}:
			default:
			}
		}
	}
}

func (x *Watch) run() {
	for x.more() {
		select {
		case <-x.clock.After(every):
			x.Look()
		case <-x.empty:
		}
	}
}

func (x *Watch) more() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.going = len(x.all) > 0
	return x.going
}

// Look checks all callers now and notifies those that would not be let in.
func (x *Watch) Look() {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	x.mu.Lock()
	all := make([]*Caller, 0, len(x.all))
	for c := range x.all {
		all = append(all, c)
	}
	x.mu.Unlock()
	in := x.check(ctx, all)
	for _, c := range all {
		if !in[c] {
			c.Gone()
		}
	}
}
