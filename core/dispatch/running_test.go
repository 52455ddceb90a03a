package dispatch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/command"
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

// What waits is the queue's to stop: nothing of it is kept here.
func TestAnAbortStopsTheRunThatItNames(t *testing.T) {
	for what, abort := range map[string]func(r *Running, of string) bool{
		"of a session": func(r *Running, of string) bool { return r.Abort("session of " + of) },
		"of a run":     (*Running).AbortRun,
	} {
		r := NewRunning(coretest.NewClock(time.Time{}))
		if abort(r, "one") {
			t.Errorf("an abort %s stops a run that is none", what)
		}
		run := func(id string) func() bool {
			ctx, cancel := context.WithCancelCause(t.Context())
			t.Cleanup(func() { cancel(nil) })
			t.Cleanup(r.begin("lane of "+id, &active{cancel: cancel, session: "session of " + id, run: id}, time.Time{}))
			return func() bool { return errors.Is(context.Cause(ctx), orchestrator.ErrAborted) }
		}
		one, other, command := run("one"), run("other"), run("")
		if !abort(r, "one") || !one() || other() || command() {
			t.Errorf("an abort %s: stopped %v, another %v, a command %v", what, one(), other(), command())
		}
		if r.AbortRun("") {
			t.Error("an abort of no run stops one")
		}
	}
}

// by returns the request of a /stop in row seq.
func by(seq, user int64, role core.Role, at core.Address) command.Request {
	in := &core.Inbound{Address: at, From: core.Peer{ID: fmt.Sprint("id", user)}}
	return command.Request{Call: command.Call{In: in, Seq: seq, Lane: core.LaneOf(at)}, User: user, Role: role}
}

// asked returns a turn in row seq, and whether it was stopped.
func asked(t *testing.T, seq, user int64, at core.Address) (*active, func() bool) {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return &active{cancel: cancel, bot: at.Bot, lane: core.LaneOf(at), seq: seq, user: user, from: fmt.Sprint("id", user), run: fmt.Sprint("run", seq)},
		func() bool { return errors.Is(context.Cause(ctx), orchestrator.ErrAborted) }
}

var (
	direct = core.Address{Bot: "bot", Chat: "1"}
	group  = core.Address{Bot: "bot", Chat: "2", Place: "2"}
)

// Whoever writes /stop just after a message means it, though its run has not begun.
func TestAStopMeetsTheTurnOfItsChatThatIsClaimedAndHasNotBegun(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	r := NewRunning(clock)
	claimed := clock.Now()
	clock.Advance(time.Millisecond)
	if stopped, others := r.Stop(by(5, 7, "guest", direct)); stopped || others {
		t.Error("a run is stopped that is none")
	}
	for _, c := range []struct {
		what  string
		at    core.Address
		stops bool
	}{
		{"another chat's", core.Address{Bot: "bot", Chat: "other"}, false},
		{"another bot's", core.Address{Bot: core.APIBot, Chat: "1"}, false},
		{"the one that was claimed", direct, true},
		{"the next attempt", direct, false},
	} {
		a, stopped := asked(t, 4, 7, c.at)
		r.begin(a.lane, a, claimed)()
		if stopped() != c.stops {
			t.Errorf("%s: stopped %v", c.what, stopped())
		}
	}
	for i := range int64(3 * maxAborted) {
		r.Stop(by(i, 7, "guest", core.Address{Bot: "bot", Chat: fmt.Sprint(i)}))
	}
	if len(r.stops) > maxAborted {
		t.Errorf("%d stops are kept", len(r.stops))
	}
}

// Both may come in one page: then the message is claimed before /stop is handled.
func TestAStopSparesWhatWasWrittenAfterIt(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	r := NewRunning(clock)
	claimed := clock.Now()
	clock.Advance(time.Millisecond)
	r.Stop(by(5, 7, "guest", direct))
	a, stopped := asked(t, 6, 7, direct)
	end := r.begin(a.lane, a, claimed)
	if stopped() {
		t.Error("a message that was written after /stop is stopped before it begins")
	}
	if found, others := r.Stop(by(5, 7, "guest", direct)); found || others || stopped() {
		t.Error("a message that was written after /stop is stopped while it is answered")
	}
	if found, _ := r.Stop(by(7, 7, "guest", direct)); !found || !stopped() {
		t.Error("the next /stop does not stop it")
	}
	end()
}

// What waits for its sender's approval, or for the rate, is not meant by a /stop that
// finds nothing.
func TestAStopSparesWhatIsClaimedAfterIt(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	r := NewRunning(clock)
	r.Stop(by(5, 1, "owner", group))
	clock.Advance(time.Millisecond)
	a, stopped := asked(t, 4, 7, group)
	r.begin(a.lane, a, clock.Now())()
	if stopped() {
		t.Error("a message that was held is stopped by an earlier /stop")
	}
}

// In a group /stop stops what its sender may stop, also before it begins.
func TestAStopOfAGroupStopsOnlyWhatItsSenderMayStop(t *testing.T) {
	for _, c := range []struct {
		what  string
		by    command.Request
		user  int64 // who asked for the turn
		at    core.Address
		stops bool
	}{
		{"a guest's own", by(5, 7, "guest", group), 7, group, true},
		{"another's", by(5, 8, "guest", group), 7, group, false},
		{"that of another member without an account", by(5, 0, "", group), 7, group, false},
		{"an admin's", by(5, 2, "admin", group), 7, group, true},
		{"in a direct chat", by(5, 8, "guest", direct), 7, direct, true},
	} {
		clock := coretest.NewClock(time.Time{})
		r := NewRunning(clock)
		a, stopped := asked(t, 4, c.user, c.at)
		r.Stop(c.by)
		end := r.begin(a.lane, a, clock.Now())
		if stopped() != c.stops {
			t.Errorf("%s, not begun: stopped %v", c.what, stopped())
		}
		end()
		a, stopped = asked(t, 4, c.user, c.at)
		end = r.begin(a.lane, a, clock.Now())
		if found, others := r.Stop(c.by); found != c.stops || others == c.stops || stopped() != c.stops {
			t.Errorf("%s, begun: found %v, others %v, stopped %v", c.what, found, others, stopped())
		}
		end()
		a, stopped = asked(t, 4, c.user, c.at)
		end = r.begin(a.lane, a, clock.Now())
		if found, others := r.StopRun(c.by, "run3"); found || others {
			t.Errorf("%s: the button of another run stops it", c.what)
		}
		if found, others := r.StopRun(c.by, "run4"); found != c.stops || others == c.stops || stopped() != c.stops {
			t.Errorf("%s, by its button: found %v, others %v, stopped %v", c.what, found, others, stopped())
		}
		end()
	}
	r := NewRunning(coretest.NewClock(time.Time{}))
	mine, stopped := asked(t, 4, 0, group)
	mine.from = "id9"
	defer r.begin(mine.lane, mine, time.Time{})()
	if _, others := r.Stop(by(5, 0, "", group)); !others || stopped() {
		t.Error("of two members without an account one stops the other's")
	}
}
