package connectors

import (
	"math/rand/v2"
	"time"
)

const (
	backoffFirst = time.Second
	// BackoffMax bounds the wait between two attempts.
	BackoffMax = time.Minute
	// UnnamedWait is the pause after an answer 429 that names none.
	UnnamedWait = 5 * time.Second
)

// Backoff returns how long to wait after the given number of consecutive
// failures (1 or more): a random time below 1, 2, 4 … 60 seconds (full jitter),
// so that bots do not reconnect at once when their platform is back. random
// returns a number in [0, n); nil is math/rand/v2.
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
