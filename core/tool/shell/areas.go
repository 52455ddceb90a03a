package shell

import (
	"context"
	"slices"
	"strings"
	"sync"

	"gatehouse/core"
)

// areas lets commands work in directories of the vault so that no two of them may
// write the same file: while one command is being shut in, or what it left is
// looked through, another one could exchange names there.
//
// The directories form a tree. A claim on a directory and a claim on one below it
// exclude each other, with one exception: a wider claim does not wait for
// narrower ones that are held already but leaves their directories out, so that
// no one below can keep the whole vault busy. Claims are granted in the order in
// which they came. It is safe for concurrent use.
type areas struct {
	mu      sync.Mutex
	held    []*claim // at most one for each run
	waiting []*claim // in the order in which they came; at most maxRuns
}

// A claim is a directory with all below it, but for what is left out.
type claim struct {
	area   string
	except []string // directories below area; set when the claim is granted
	ready  chan struct{}
}

// claim waits until area is free and returns which directories below it are left
// out. The caller calls release once.
func (a *areas) claim(ctx context.Context, area string) (except []string, release func(), err error) {
	c := &claim{area: area, ready: make(chan struct{})}
	a.mu.Lock()
	if len(a.waiting) >= maxRuns {
		a.mu.Unlock()
		return nil, nil, core.Errorf(core.Busy, "too many commands wait for the same folders: try again later")
	}
	a.waiting = append(a.waiting, c)
	a.grant()
	a.mu.Unlock()
	release = sync.OnceFunc(func() { a.drop(c) })
	select {
	case <-c.ready:
		return c.except, release, nil
	case <-ctx.Done():
		release()
		return nil, nil, context.Cause(ctx)
	}
}

// drop ends a claim that is held or waits.
func (a *areas) drop(c *claim) {
	a.mu.Lock()
	defer a.mu.Unlock()
	same := func(other *claim) bool { return other == c }
	a.held = slices.DeleteFunc(a.held, same)
	a.waiting = slices.DeleteFunc(a.waiting, same)
	a.grant()
}

// grant holds every claim that waits and that nothing before it excludes.
func (a *areas) grant() {
	var still []*claim
	for _, c := range a.waiting {
		if slices.ContainsFunc(still, func(w *claim) bool { return related(w.area, c.area) }) ||
			slices.ContainsFunc(a.held, func(h *claim) bool { return excludes(h, c.area) }) {
			still = append(still, c)
			continue
		}
		for _, h := range a.held {
			if h.area != c.area && within(h.area, c.area) {
				c.except = append(c.except, h.area)
			}
		}
		a.held = append(a.held, c)
		close(c.ready)
	}
	a.waiting = still
}

// excludes reports whether no one may claim area while h is held.
func excludes(h *claim, area string) bool {
	if h.area != area && within(h.area, area) {
		return false // area is wider and leaves h out
	}
	return within(area, h.area) && !slices.ContainsFunc(h.except, func(e string) bool { return within(area, e) })
}

func related(a, b string) bool { return within(a, b) || within(b, a) }

// within reports whether area is directory or below it.
func within(area, folder string) bool {
	return folder == "." || area == folder || strings.HasPrefix(area, folder+"/")
}
