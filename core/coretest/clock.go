// Package coretest has what tests of many packages need: a clock that is still, a log
// that may be read while it is written.
package coretest

import (
	"sync"
	"time"
)

// A Clock is still until Advance moves it.
type Clock struct {
	mu       sync.Mutex
	now      time.Time
	waiting  []waiter
	watchers []watcher
}

type watcher struct {
	n int
	c chan struct{}
}

type waiter struct {
	at time.Time
	c  chan time.Time
}

// NewClock starts at t, or at a fixed day in 2026 when t is zero.
func NewClock(t time.Time) *Clock {
	if t.IsZero() {
		t = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	}
	return &Clock{now: t}
}

func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *Clock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan time.Time, 1)
	if d <= 0 {
		ch <- c.now
		return ch
	}
	c.waiting = append(c.waiting, waiter{c.now.Add(d), ch})
	rest := c.watchers[:0]
	for _, w := range c.watchers {
		if len(c.waiting) >= w.n {
			close(w.c)
		} else {
			rest = append(rest, w)
		}
	}
	c.watchers = rest
	return ch
}

// Advance moves the clock (backwards too) and fires what is due.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	rest := c.waiting[:0]
	for _, w := range c.waiting {
		if w.at.After(c.now) {
			rest = append(rest, w)
		} else {
			w.c <- c.now
		}
	}
	c.waiting = rest
}

// AwaitWaiters returns when at least n calls of After are pending: the
// signal that the code under test has begun to wait, instead of a sleep.
func (c *Clock) AwaitWaiters(n int) { <-c.Waiting(n) }

// Waiting returns a channel that is closed as soon as at least n calls of After are pending.
func (c *Clock) Waiting(n int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan struct{})
	if len(c.waiting) >= n {
		close(ch)
	} else {
		c.watchers = append(c.watchers, watcher{n, ch})
	}
	return ch
}
