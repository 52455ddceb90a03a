package auth

import (
	"sync"
	"time"

	"gatehouse/core"
)

// maxTracked bounds the addresses or names a backoff remembers; the one that
// failed longest ago gives way.
const maxTracked = 4096

// forget is the time after which a failure is not counted.
const forget = time.Hour

// A backoff makes guessing slow: after some free failures each further one
// doubles the wait, up to most.
type backoff struct {
	clock core.Clock
	free  int
	most  time.Duration

	mu   sync.Mutex
	seen map[string]failures // at most maxTracked
}

type failures struct {
	n           int
	last, until time.Time
}

func newBackoff(clock core.Clock, free int, most time.Duration) *backoff {
	return &backoff{clock: clock, free: free, most: most, seen: map[string]failures{}}
}

// delay returns the wait after n failures.
func delay(n, free int, most time.Duration) time.Duration {
	if n < free {
		return 0
	}
	return min(time.Second<<min(n-free, 30), most)
}

// wait returns how long key must still wait; 0 when it may try.
func (b *backoff) wait(key string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, now := b.seen[key], b.clock.Now()
	if now.Sub(f.last) > forget {
		return 0
	}
	return max(0, f.until.Sub(now))
}

// count returns how many failures of key count, and when the last one was.
func (b *backoff) count(key string) (n int, last time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.seen[key]
	if b.clock.Now().Sub(f.last) > forget {
		return 0, time.Time{}
	}
	return f.n, f.last
}

// fail counts one failure of key.
func (b *backoff) fail(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	f, known := b.seen[key]
	if now.Sub(f.last) > forget {
		f = failures{}
	}
	f.n++
	f.last, f.until = now, now.Add(delay(f.n, b.free, b.most))
	if !known && len(b.seen) >= maxTracked {
		b.drop(now)
	}
	b.seen[key] = f
}

// drop makes room; mu is held.
func (b *backoff) drop(now time.Time) {
	oldest, at := "", now.Add(time.Hour)
	for k, f := range b.seen {
		if now.Sub(f.last) > forget {
			delete(b.seen, k)
		} else if f.last.Before(at) {
			oldest, at = k, f.last
		}
	}
	if len(b.seen) >= maxTracked {
		delete(b.seen, oldest)
	}
}

// clear forgets key's failures.
func (b *backoff) clear(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.seen, key)
}
