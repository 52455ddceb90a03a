package bus_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"gatehouse/core"
	"gatehouse/core/bus"
)

// What an event costs is its JSON and its id, however many read it: a word of
// a model is published to everybody who watches.
func TestAnEventAllocatesLittleHoweverManyRead(t *testing.T) {
	for _, readers := range []int{0, 1, 50} {
		b, done := bus.New(nil, nil), sync.WaitGroup{}
		ctx, cancel := context.WithCancel(t.Context())
		s := b.Begin(bus.Info{Run: "r", Session: "s", Attempt: 1})
		got := make(chan struct{}, readers)
		for range readers {
			events := b.Follow(ctx, bus.Follow{Session: "s", Run: "r"})
			done.Go(func() {
				for range events {
					got <- struct{}{}
				}
			})
		}
		one := func() {
			s.Publish(core.TextDelta{Content: "word "})
			for range readers {
				<-got
			}
		}
		for range 5000 { // the kept events have reached their bound
			one()
		}
		per := testing.AllocsPerRun(500, one)
		t.Logf("%d readers: %.1f objects an event", readers, per)
		if per > 6 {
			t.Errorf("%d readers: an event allocates %.0f objects, want at most 6", readers, per)
		}
		cancel()
		done.Wait()
	}
}

// A reader that waits holds no room for what it might fall behind.
func TestAReaderThatWaitsHoldsLittleMemory(t *testing.T) {
	const readers = 1000
	b := bus.New(nil, nil)
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	ctx, cancel := context.WithCancel(t.Context())
	before := held()
	var all []func(func(bus.Entry, error) bool)
	for range readers {
		all = append(all, b.Follow(ctx, bus.Follow{Session: "s"}))
	}
	per := (int64(held()) - int64(before)) / readers
	t.Logf("%d bytes a reader", per)
	if per > 2048 {
		t.Errorf("a reader that waits holds %d bytes, want at most 2048", per)
	}
	cancel()
	for _, events := range all {
		events(func(bus.Entry, error) bool { return true })
	}
}
