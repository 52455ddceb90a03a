// Package backoff makes guessing slow: it counts failures by address, device or name, and states
// how long the next try must wait. It holds no table; a restart forgets.
package backoff

import (
	"sync"
	"time"

	"gatehouse/core"
)

// MaxTracked bounds the keys that a Counter remembers; the one that
// failed longest ago gives way.
const MaxTracked = 4096

// Forget is the time after which a failure is not counted.
const Forget = time.Hour

// A Counter counts the failures of keys: after some free ones each further one
// doubles the wait, up to most. It is safe for concurrent use.
type Counter struct {
	clock core.Clock
	free  int
	most  time.Duration

	mu   sync.Mutex
	seen map[string]failures // at most MaxTracked
}

type failures struct {
	n           int
	last, until time.Time
}

// New returns a Counter without failures.
func New(clock core.Clock, free int, most time.Duration) *Counter {
	return &Counter{clock: clock, free: free, most: most, seen: map[string]failures{}}
}

// Delay returns the wait after n failures.
func Delay(n, free int, most time.Duration) time.Duration {
	if n < free {
		return 0
	}
	return min(time.Second<<min(n-free, 30), most)
}

// Wait returns how long key must still wait; 0 when it may try.
func (b *Counter) Wait(key string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, now := b.seen[key], b.clock.Now()
	if now.Sub(f.last) > Forget {
		return 0
	}
	return max(0, f.until.Sub(now))
}

// Count returns how many failures of key count, and when the last one was.
func (b *Counter) Count(key string) (n int, last time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.seen[key]
	if b.clock.Now().Sub(f.last) > Forget {
		return 0, time.Time{}
	}
	return f.n, f.last
}

// Fail counts one failure of key.
func (b *Counter) Fail(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	f, known := b.seen[key]
	if now.Sub(f.last) > Forget {
		f = failures{}
	}
	f.n++
	f.last, f.until = now, now.Add(Delay(f.n, b.free, b.most))
	if !known && len(b.seen) >= MaxTracked {
		b.drop(now)
	}
	b.seen[key] = f
}

// drop makes room; mu is held.
func (b *Counter) drop(now time.Time) {
	oldest, at := "", now.Add(time.Hour)
	for k, f := range b.seen {
		if now.Sub(f.last) > Forget {
			delete(b.seen, k)
		} else if f.last.Before(at) {
			oldest, at = k, f.last
		}
	}
	if len(b.seen) >= MaxTracked {
		delete(b.seen, oldest)
	}
}

// Clear forgets key's failures.
func (b *Counter) Clear(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.seen, key)
}
