package backoff

import (
	"sync"
	"time"

	"gatehouse/core"
)

// knockTime is how long an address may take to come back after its wait.
const knockTime = 10 * time.Minute

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
func (k *RetryTimer) Wait(key string, d time.Duration) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	since, ok := k.since[key]
	if !ok || now.Sub(since) > k.longest+knockTime {
		if !ok && len(k.since) >= MaxTracked {
			k.drop(now)
		}
		since, k.since[key] = now, now
	}
	return max(0, d-now.Sub(since))
}

// drop makes room; mu is held. Any one gives way, so that no order in which
// others come keeps a caller out.
func (k *RetryTimer) drop(now time.Time) {
	for key, since := range k.since {
		if now.Sub(since) > k.longest+knockTime {
			delete(k.since, key)
		}
	}
	for key := range k.since {
		if len(k.since) < MaxTracked {
			return
		}
		delete(k.since, key)
	}
}

// Clear forgets key.
func (k *RetryTimer) Clear(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.since, key)
}
