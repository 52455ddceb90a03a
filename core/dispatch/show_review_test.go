package dispatch

import (
	"context"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/queue"
)

// What a model writes goes through the renderer while it is still half a
// text: a panic there must not end the program, nor the run.
func TestAPanicInAPreviewEndsOnlyThePreview(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	d := New(Options{Clock: clock, Queue: queue.New(nil, queue.Options{Clock: clock}), Screen: blank{},
		Render: func(core.Address, string) []core.Part { panic("half a table") }})
	s := d.watch(t.Context(), &queue.Turn{Rows: []core.Inbound{{Address: core.Address{Bot: "b", Chat: "c"}}}})
	s.see(core.TextDelta{Content: "| a | b"})
	for {
		select {
		case <-s.done:
			return
		case <-clock.Waiting(1):
			clock.Advance(time.Second)
		case <-time.After(10 * time.Second):
			t.Fatal("the preview goes on")
		}
	}
}

type blank struct{ Screen }

func (blank) Typing(context.Context, core.Address) error { return nil }

// A platform's typing sign fades by itself after five seconds: it is renewed in
// time while the answer is made, and with the answer it ends.
func TestTypingIsRenewedWhileTheRunLastsAndEndsWithIt(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	seen := &typist{clock: clock, began: clock.Now()}
	d := New(Options{Clock: clock, Queue: queue.New(nil, queue.Options{Clock: clock}), Screen: seen})
	s := d.watch(t.Context(), &queue.Turn{Rows: []core.Inbound{{Address: core.Address{Bot: "b", Chat: "c"}}}})
	for range 200 {
		clock.AwaitWaiters(1)
		clock.Advance(100 * time.Millisecond)
	}
	clock.AwaitWaiters(1)
	s.end()
	n := len(seen.at)
	clock.Advance(time.Minute)
	if len(seen.at) != n || n < 4 {
		t.Fatalf("typing %d times in 20 s, and %d times after the end", n, len(seen.at)-n)
	}
	if seen.at[0] > time.Second {
		t.Errorf("typing began after %v", seen.at[0])
	}
	for i := 1; i < n; i++ {
		if pause := seen.at[i] - seen.at[i-1]; pause >= 5*time.Second || pause < 3*time.Second {
			t.Errorf("a pause of %v", pause)
		}
	}
}

// A typist notes when typing was shown. The show that calls it has ended, or
// waits for the clock, whenever the test looks.
type typist struct {
	Screen
	clock core.Clock
	began time.Time
	at    []time.Duration
}

func (p *typist) Typing(context.Context, core.Address) error {
	p.at = append(p.at, p.clock.Now().Sub(p.began))
	return nil
}
