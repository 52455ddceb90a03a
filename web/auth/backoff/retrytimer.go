package backoff

import (
	"sync"
	"time"

	"gatehouse/core"
)

// retryTime is how long an address may take to come back after its wait.
const retryTime = 10 * time.Minute

// A RetryTimer remembers since when addresses wait for their one try. It is safe for concurrent use.
type RetryTimer struct {
	longest time.Duration // wait
	clock   core.Clock
	mu      sync.Mutex
	since   map[string]time.Time // at most MaxTracked
}

// NewRetryTimer returns a RetryTimer whose waits are at most longest.
func NewRetryTimer(clock core.Clock, longest time.Duration) *RetryTimer {
	return &RetryTimer{longest: longest, clock: clock, since: map[string]time.Time{}}
}

// Wait returns how long key must still wait when it has to wait d in all. The
// time begins with the first call.
func (t *RetryTimer) Wait(key string, d time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	since, ok := t.since[key]
	if !ok || now.Sub(since) > t.longest+retryTime {
		if !ok && len(t.since) >= MaxTracked {
			t.drop(now)
		}
		since, t.since[key] = now, now
	}
	return max(0, d-now.Sub(since))
}

// drop makes room; mu is held. Any one gives way, so that no order in which
// others come keeps a caller out.
func (t *RetryTimer) drop(now time.Time) {
	for key, since := range t.since {
		if now.Sub(since) > t.longest+retryTime {
			delete(t.since, key)
		}
	}
	for key := range t.since {
		if len(t.since) < MaxTracked {
			return
		}
		delete(t.since, key)
	}
}

// Clear forgets key.
func (t *RetryTimer) Clear(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.since, key)
}
