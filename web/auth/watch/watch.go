// Package watch checks at intervals whether the callers of open streams would still be let in.
package watch

import (
	"context"
	"net/http"
	"slices"
	"strings"
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
	// Scopes are those of the key of which what is open needs one; none: it needs none.
	Scopes []string
	R      *http.Request // with its address and the session's cookie alone
	Gone   func()        // called at most once, when the caller would not be let in any more
}

// Keeps reports whether a key that has these scopes now, separated by spaces, has one of which
// what is open needs one.
func (c *Caller) Keeps(scopes string) bool {
	has := strings.Fields(scopes)
	return len(c.Scopes) == 0 || slices.ContainsFunc(c.Scopes, func(s string) bool { return slices.Contains(has, s) })
}

// Checks ask the store about callers. An error is no revocation: then no one is gone.
type Checks struct {
	// Keys returns those of all that came by a key and would be let in now.
	Keys func(ctx context.Context, all []*Caller) (map[*Caller]bool, error)
	// Session reports whether a caller that came by a session would be let in now.
	Session func(ctx context.Context, c *Caller) (bool, error)
}

// A Watch checks all callers at once, with one goroutine, which is there while a caller is. It is
// safe for concurrent use.
type Watch struct {
	clock  core.Clock
	checks Checks

	mu    sync.Mutex
	all   map[*Caller]struct{} // bounded by the open streams
	going bool
	empty chan struct{} // holds a token when the last has gone
}

// New returns a Watch without callers.
func New(clock core.Clock, c Checks) *Watch {
	return &Watch{clock: clock, checks: c, all: map[*Caller]struct{}{}, empty: make(chan struct{}, 1)}
}

// Add has c checked until it is gone or forget is called.
func (x *Watch) Add(c *Caller) (forget func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all[c] = struct{}{}
	if !x.going {
		x.going = true
		go x.run()
	}
	return func() { x.remove(c) }
}

// remove ends the checks of c and reports whether it was checked.
func (x *Watch) remove(c *Caller) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, checked := x.all[c]; !checked {
		return false
	}
	if delete(x.all, c); len(x.all) == 0 {
		select {
		case x.empty <- struct{}{}:
		default:
		}
	}
	return true
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

// Look checks all callers now. Those that would not be let in are notified, once, and checked no
// more.
func (x *Watch) Look() {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	x.mu.Lock()
	all := make([]*Caller, 0, len(x.all))
	for c := range x.all {
		all = append(all, c)
	}
	x.mu.Unlock()
	if len(all) == 0 {
		return
	}
	keys, failed := x.checks.Keys(ctx, all)
	sessions := map[string]bool{} // by cookie, as far as asked
	for _, c := range all {
		in := failed != nil || keys[c]
		if c.R != nil {
			in = x.session(ctx, c, sessions)
		}
		if !in && x.remove(c) {
			c.Gone()
		}
	}
}

// session reports whether a session goes on, by known where its cookie was asked for.
func (x *Watch) session(ctx context.Context, c *Caller, known map[string]bool) bool {
	cookie := c.R.Header.Get("Cookie")
	in, asked := known[cookie]
	if !asked {
		valid, err := x.checks.Session(ctx, c)
		in = err != nil || valid
		known[cookie] = in
	}
	return in
}
