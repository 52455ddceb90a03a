package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"gatehouse/core/coretest"
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
	go func() { thrift(ctx, clock); close(done) }()
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
	thrift(t.Context(), clock) // returns at once
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
