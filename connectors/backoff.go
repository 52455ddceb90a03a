package connectors

import (
	"math/rand/v2"
	"time"
)

const (
	backoffFirst = time.Second
	// BackoffMax is the longest wait between two tries.
	BackoffMax = time.Minute
)

// Backoff is how long to wait after the given number of failures in a row
// (1 or more): a random time below 1, 2, 4 … 60 seconds, so that many bots
// whose platform comes back don't all knock at once ("full jitter"). random
// draws from [0, n); nil is math/rand/v2.
func Backoff(failures int, random func(n int64) int64) time.Duration {
	if random == nil {
		random = rand.Int64N
	}
	top := BackoffMax
	if n := failures - 1; n < 6 {
		top = min(BackoffMax, backoffFirst<<max(n, 0))
	}
	return time.Duration(random(int64(top))) + time.Millisecond
}
