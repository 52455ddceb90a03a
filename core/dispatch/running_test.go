package dispatch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/orchestrator"
)

// Between a claim and the moment its run can be stopped lies a goroutine's
// start: who loses access there must not be answerer.
func TestAnAbortMeetsTheTurnThatIsClaimedAndHasNotBegun(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	r := NewRunning(clock)
	claimed := clock.Now()
	clock.Advance(time.Millisecond)
	r.AbortUser("bot", 7)
	clock.Advance(time.Millisecond)
	for _, c := range []struct {
		user  int64
		taken time.Time
		stops bool
	}{{7, claimed, true}, {8, claimed, false}, {7, clock.Now(), false}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		end := r.begin("lane", &active{cancel: cancel, bot: "bot", user: c.user}, c.taken)
		if got := errors.Is(context.Cause(ctx), orchestrator.ErrAborted); got != c.stops {
			t.Errorf("user %d taken at %v: stopped %v", c.user, c.taken, got)
		}
		end()
		cancel(nil)
	}
	r.AbortKey("k")
	for _, c := range []struct {
		key   string
		stops bool
	}{{"k", true}, {"other", false}, {"", false}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		r.begin("lane", &active{cancel: cancel, bot: "bot", user: 9, key: c.key}, claimed)()
		if got := errors.Is(context.Cause(ctx), orchestrator.ErrAborted); got != c.stops {
			t.Errorf("key %q: stopped %v", c.key, got)
		}
		cancel(nil)
	}
	for i := range int64(3 * maxAborted) {
		r.AbortUser("bot", i)
	}
	if len(r.aborted) > maxAborted || len(r.runs) != 0 {
		t.Errorf("%d senders, %d runs kept", len(r.aborted), len(r.runs))
	}
}

// Whoever writes /stop just after a message means it, though its run has not begun.
func TestAStopMeetsTheTurnOfItsLaneThatIsClaimedAndHasNotBegun(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	r := NewRunning(clock)
	claimed := clock.Now()
	clock.Advance(time.Millisecond)
	if r.AbortLane("bot", "lane") {
		t.Error("a run is stopped that is none")
	}
	for _, c := range []struct {
		what, bot, lane string
		taken           time.Time
		stops           bool
	}{
		{"another lane's", "bot", "other", claimed, false},
		{"another bot's", core.APIBot, "lane", claimed, false},
		{"the one that was claimed", "bot", "lane", claimed, true},
		{"the next attempt", "bot", "lane", claimed, false},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		r.begin(c.lane, &active{cancel: cancel, bot: c.bot, lane: c.lane}, c.taken)()
		if got := errors.Is(context.Cause(ctx), orchestrator.ErrAborted); got != c.stops {
			t.Errorf("%s: stopped %v", c.what, got)
		}
		cancel(nil)
	}
	r.AbortLane("bot", "lane")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	r.begin("lane", &active{cancel: cancel, bot: "bot", lane: "lane"}, clock.Now().Add(time.Millisecond))()
	if ctx.Err() != nil {
		t.Error("a turn that was claimed after the stop is stopped")
	}
	for i := range 3 * maxAborted {
		r.AbortLane("bot", fmt.Sprint(i))
	}
	if len(r.stopped) > maxAborted {
		t.Errorf("%d lanes are kept", len(r.stopped))
	}
}
