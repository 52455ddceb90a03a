package watchdog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/core/coretest"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator/watchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a Watchdog of 10 minutes, and 1 minute of silence. The result receives the
// cause once.
func start(t *testing.T) (*coretest.Clock, *watchdog.Watchdog, <-chan error) {
	clock := coretest.NewClock(time.Time{})
	w := watchdog.New(clock)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		w.Run(ctx, cancel, clock.Now(), 10*time.Minute, time.Minute)
		ended <- context.Cause(ctx)
	}()
	clock.AwaitWaiters(1)
	return clock, w, ended
}

// step advances the clock by d and waits until the Watchdog has checked.
func step(t *testing.T, clock *coretest.Clock, ended <-chan error, d time.Duration) {
	t.Helper()
	clock.Advance(d)
	select {
	case <-clock.Waiting(1):
	case err := <-ended:
		t.Fatalf("the run is ended early: %v", err)
	}
}

func TestWatchdogEndsARunWithASilentModel(t *testing.T) {
	t.Parallel()
	clock, w, ended := start(t)
	clock.Advance(59 * time.Second)
	w.Heard()
	step(t, clock, ended, 59*time.Second)
	clock.Advance(time.Second)
	if err := <-ended; !errors.Is(err, llm.ErrSilence) {
		t.Errorf("the cause is %v, want llm.ErrSilence", err)
	}
}

func TestWatchdogDoesNotCountSilenceWhileToolsRun(t *testing.T) {
	t.Parallel()
	clock, w, ended := start(t)
	w.Busy(1)
	for range 9 {
		step(t, clock, ended, time.Minute)
	}
	w.Busy(-1)
	step(t, clock, ended, 59*time.Second)
	clock.Advance(time.Second)
	if err := <-ended; !errors.Is(err, watchdog.ErrTime) {
		t.Errorf("the cause is %v, want ErrTime", err)
	}
}

func TestWatchdogDoesNotCountTheTimeOfUsers(t *testing.T) {
	t.Parallel()
	clock, w, ended := start(t)
	w.Busy(1)
	var changes []bool
	changed := func(on bool) { changes = append(changes, on) }
	w.Wait(true, changed)
	w.Wait(true, changed) // a second call at the same time
	for range 20 {
		step(t, clock, ended, time.Minute)
	}
	w.Wait(false, changed)
	w.Wait(false, changed)
	if got := w.Waited(clock.Now()); got != 20*time.Minute {
		t.Errorf("users took %s, want 20 minutes", got)
	}
	if len(changes) != 2 || !changes[0] || changes[1] {
		t.Errorf("changes = %v, want one begin and one end", changes)
	}
	for range 9 {
		step(t, clock, ended, time.Minute)
	}
	clock.Advance(time.Minute)
	if err := <-ended; !errors.Is(err, watchdog.ErrTime) {
		t.Errorf("the cause is %v, want ErrTime", err)
	}
}

func TestWatchdogEndsWithItsContext(t *testing.T) {
	t.Parallel()
	clock := coretest.NewClock(time.Time{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.Canceled)
	watchdog.New(clock).Run(ctx, cancel, clock.Now(), time.Minute, time.Minute)
}
