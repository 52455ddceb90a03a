package memory

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"gatehouse/core/coretest"
	"gatehouse/core/store/storetest"
)

// The collector is held to little memory while little is in use, and always has
// room of at least a fifth of what is: it never fights for it.
func TestTheCollectorsLimitLeavesRoom(t *testing.T) {
	for used := int64(0); used < 8<<30; used += 1 << 20 {
		limit := limitFor(used)
		if limit < 96<<20 || limit < used+used/5 || used <= 80<<20 && limit > 96<<20 {
			t.Fatalf("of %d MiB in use the limit is %d MiB", used>>20, limit>>20)
		}
	}
}

// The limit follows what is in use, and is as it was when the gateway has ended;
// an operator's own word stands.
func TestTheCollectorsLimitFollowsWhatIsInUse(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	was := debug.SetMemoryLimit(-1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { Limit(ctx, clock); close(done) }()
	clock.AwaitWaiters(1)
	if got := debug.SetMemoryLimit(-1); got != 96<<20 {
		t.Errorf("at first %d MiB", got>>20)
	}
	held := make([]byte, 256<<20)
	runtime.GC()
	clock.Advance(limitEvery)
	clock.AwaitWaiters(1)
	if got := debug.SetMemoryLimit(-1); got < 300<<20 {
		t.Errorf("with %d MiB held %d MiB", len(held)>>20, got>>20)
	}
	runtime.KeepAlive(held)
	cancel()
	<-done
	if got := debug.SetMemoryLimit(-1); got != was {
		t.Errorf("afterwards %d, before %d", got, was)
	}
	t.Setenv("GOMEMLIMIT", "1GiB")
	Limit(t.Context(), clock) // returns at once
	if got := debug.SetMemoryLimit(-1); got != was {
		t.Errorf("the operator's limit became %d", got)
	}
}

// Stacks count whole, as the limit counts them, and not by what is used of
// them: with many streams that wait the collector would run all the time.
func TestStacksOfManyThatWaitAreInUse(t *testing.T) {
	var m runtime.MemStats
	read := func() (stacks, used int64) {
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.StackInuse), inUse()
	}
	stacks, used := read()
	over := make(chan struct{})
	var all sync.WaitGroup
	for range 6000 {
		all.Go(func() { <-over })
	}
	moreStacks, moreUsed := read()
	close(over)
	all.Wait()
	if stacks, used = moreStacks-stacks, moreUsed-used; stacks < 6<<20 || used < stacks*4/5 {
		t.Errorf("of %d KiB of stacks %d KiB are in use", stacks>>10, used>>10)
	}
}

// Memory is given back after work, when there has been little of it for half a minute,
// again two and four minutes later, and not for what a gateway at rest does by itself.
func TestTheGatewayRestsThreeTimesAfterABurst(t *testing.T) {
	const mib = 1 << 20
	var r rester
	var allocated uint64
	looks := func(n int, each uint64) (rests int) {
		for range n {
			allocated += each
			if r.due(allocated, 6*mib) {
				rests++
			}
		}
		return rests
	}
	for _, step := range []struct {
		what  string
		looks int
		each  uint64
		rests int
	}{
		{"a burst", 20, 50 * mib, 0},
		{"the half minute after it", 5, 0, 0},
		{"then", 1, 0, 1},
		{"nearly two minutes", 23, 0, 0},
		{"then", 1, 0, 1},
		{"nearly two minutes more", 23, 0, 0},
		{"then", 1, 0, 1},
		{"an hour with nothing", 720, 0, 0},
		{"a message now and then", 12, mib / 2, 0},
		{"quiet", 12, 0, 0},
		{"some more of them", 6, mib, 1},
		{"quiet", 12, 0, 0},
		{"work without a pause", 100, 5 * mib, 0},
		{"the half minute after it", 5, 0, 0},
		{"then", 1, 0, 1},
		{"most of two minutes", 18, 0, 0},
		{"work when the second rest is due", 6, mib * 9 / 10, 0},
		{"quiet", 6, 0, 1},
		{"an hour with nothing", 720, 0, 1},
		{"more work without a pause", 100, 5 * mib, 0},
	} {
		if got := looks(step.looks, step.each); got != step.rests {
			t.Errorf("%s: %d rests, want %d", step.what, got, step.rests)
		}
	}
	for range 12 {
		if r.due(allocated, 1<<40) {
			t.Fatal("a rest for little garbage beside much that is in use")
		}
	}
	if looks(1, 0) != 1 {
		t.Error("no rest when little is in use again")
	}
}

// At a rest garbage goes although nothing would have had it collected.
func TestGarbageGoesWhenTheGatewayRests(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	clock := coretest.NewClock(time.Time{})
	r := NewReleaser(storetest.Open(t, nil), clock, slog.New(slog.DiscardHandler))
	gone := make(chan struct{})
	func() {
		garbage := make([]byte, 64<<20)
		runtime.AddCleanup(&garbage[0], func(struct{}) { close(gone) }, struct{}{})
	}()
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() { r.Run(ctx) })
	for range int(restAfter/restEvery) + 2 {
		clock.AwaitWaiters(1)
		clock.Advance(restEvery)
	}
	select {
	case <-gone:
	case <-time.After(5 * time.Minute):
		t.Error("64 MiB of garbage are still there")
	}
	cancel()
	over.Wait()
}

// A start collects no garbage, within a limit, and what was set before it stands after it.
func TestAStartPutsCollectionsOff(t *testing.T) {
	percent, limit := debug.SetGCPercent(150), debug.SetMemoryLimit(1<<40)
	defer func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) }()
	end := Start()
	if got := debug.SetMemoryLimit(-1); got != startLimit {
		t.Errorf("the limit is %d MiB", got>>20)
	}
	if got := debug.SetGCPercent(-1); got != -1 {
		t.Errorf("garbage is collected at %d %%", got)
	}
	end()
	if got := debug.SetMemoryLimit(-1); got != 1<<40 {
		t.Errorf("after it the limit is %d", got)
	}
	if got := debug.SetGCPercent(150); got != 150 {
		t.Errorf("after it garbage is collected at %d %%", got)
	}
	t.Setenv("GOGC", "80")
	Start()()
	if got := debug.SetGCPercent(150); got != 150 {
		t.Errorf("where GOGC is set, it was changed to %d", got)
	}
}
