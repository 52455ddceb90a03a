package backup_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"gatehouse/core/coretest"
)

// timers is a clock that reports each timer that is set.
type timers struct {
	*coretest.Clock
	set chan time.Duration
}

func (t timers) After(d time.Duration) <-chan time.Time {
	c := t.Clock.After(d)
	select {
	case t.set <- d:
	default: // no one reads
	}
	return c
}

// await returns when all of these timers are set.
func (w *world) await(want ...time.Duration) {
	w.Helper()
	for len(want) > 0 {
		select {
		case d := <-w.timers.set:
			if i := slices.Index(want, d); i >= 0 {
				want = slices.Delete(want, i, i+1)
			}
		case <-time.After(30 * time.Second):
			w.Fatalf("timers of %v are not set", want)
		}
	}
}

func TestCoverageLooksAMinuteAfterTheStartAndEachSixHours(t *testing.T) {
	w := open(t)
	wrote := make(chan struct{}, 1)
	w.model.say = func(int) (string, error) { wrote <- struct{}{}; return note("Paris"), nil }
	uncovered := func(id string) {
		for range 3 {
			w.says(chat(id), "a", "b", 0)
		}
	}
	uncovered("1")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Store.Run(ctx) }()
	w.await(time.Minute, time.Minute) // coverage, and what is due
	for i, after := range []time.Duration{time.Minute, 6 * time.Hour, 6 * time.Hour} {
		w.clock.Advance(after)
		select {
		case <-wrote:
		case <-time.After(30 * time.Second):
			t.Fatalf("nothing is written the %d. time", i+1)
		}
		w.await(6 * time.Hour)
		uncovered(string(rune('2' + i)))
	}
	stop()
	<-done
}
