package nodes

import (
	"context"
	"sync"
	"time"

	"gatehouse/core"
)

// cutAfter is after how long without the database a gateway that others stand by for is cut off:
// before it is replaced.
const cutAfter = Silence - 2*time.Second

// reached is when a gateway last reached the database. It is safe for concurrent use.
type reached struct {
	mu     sync.Mutex
	at     time.Time // zero: not yet
	others bool      // one stood by then
}

func (r *reached) note(at time.Time, others bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.others = at, others
}

// cut reports whether the gateway is about to be replaced.
func (r *reached) cut(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.others && now.Sub(r.at) >= cutAfter
}

// guard tells Cut what changes, until ctx ends.
func (k *keeper) guard(ctx context.Context) {
	off, done := false, true
	for core.Sleep(ctx, k.Clock, time.Second) {
		if now := k.reached.cut(k.Clock.Now()); now != off || !done {
			off = now
			done = k.Cut(off)
		}
	}
}
