// Package watchdog ends a run that takes too long, or whose model is silent. The time in
// which a run waits for users does not count.
package watchdog

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm"
)

// ErrTime is the cause of a context that was cancelled because its run took too long.
var ErrTime = errors.New("the run took too long")

// A Watchdog watches one run. It is safe for concurrent use.
type Watchdog struct {
	clock core.Clock
	began time.Time    // differences to it survive a clock that is set
	heard atomic.Int64 // when the model was last heard, in nanoseconds after began
	busy  atomic.Int32 // tools running, and waits with a limit: the model's silence does not count

	mu       sync.Mutex
	waits    int // calls that wait for a user
	waitFrom time.Time
	waited   time.Duration // for users before waitFrom
}

// New returns a Watchdog of a run that begins now.
func New(clock core.Clock) *Watchdog { return &Watchdog{clock: clock, began: clock.Now()} }

// Heard notes a sign of the model: its silence is counted from now.
func (w *Watchdog) Heard() { w.heard.Store(int64(w.clock.Now().Sub(w.began))) }

// Busy notes that n more tools, or waits with a limit of their own, are running; a negative n,
// that as many have ended. While one is running the model does not count as silent.
func (w *Watchdog) Busy(n int) {
	w.Heard()
	w.busy.Add(int32(n))
}

// Wait notes that a call begins or ends to wait for a user. changed is called if that makes
// the run begin or end to wait, in the order of the changes.
func (w *Watchdog) Wait(on bool, changed func(on bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, now := w.waits, w.clock.Now()
	if w.waits++; !on {
		w.waits -= 2
	}
	if before == 0 {
		w.waitFrom = now
	} else if w.waits == 0 {
		w.waited += max(0, now.Sub(w.waitFrom))
	}
	if before == 0 || w.waits == 0 {
		changed(on)
	}
}

// Waited returns the time that the run has waited for users until now.
func (w *Watchdog) Waited(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waits == 0 {
		return w.waited
	}
	return w.waited + max(0, now.Sub(w.waitFrom))
}

// Run cancels with ErrTime once the run has taken limit since started, without the time of
// users, and with llm.ErrSilence once the model was silent for silence. It returns then, or
// when ctx ends.
func (w *Watchdog) Run(ctx context.Context, cancel context.CancelCauseFunc, started time.Time, limit, silence time.Duration) {
	for {
		now := w.clock.Now()
		end := started.Add(limit + w.Waited(now))
		if w.busy.Load() > 0 {
			w.Heard()
		}
		quiet := w.began.Add(time.Duration(w.heard.Load()) + silence)
		switch {
		case !now.Before(end):
			cancel(ErrTime)
			return
		case !now.Before(quiet):
			cancel(llm.ErrSilence)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-w.clock.After(min(end.Sub(now), quiet.Sub(now))):
		}
	}
}
