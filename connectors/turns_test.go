package connectors

import (
	"context"
	"slices"
	"testing"
	"time"

	"gatehouse/core/coretest"
)

// A final waits a moment for the preview under way, no preview begins while one
// is waiting, and a chat with nothing under way is forgotten.
func TestAFinalWaitsAMomentForThePreviewUnderWay(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	var turns Turns[int]
	end, ok := turns.Preview(1)
	if _, again := turns.Preview(1); !ok || again || !turns.Previewing(1) || turns.Previewing(2) {
		t.Fatal("two previews at once, or none")
	}
	sent := make(chan struct{})
	go func() {
		turns.Send(t.Context(), clock, 1)(func() { t.Error("shown again, though it stood behind the preview") })
		close(sent)
	}()
	clock.AwaitWaiters(1) // it waits
	if !end() {
		t.Error("the preview does not know of the final")
	}
	<-sent
	if end, ok = turns.Preview(1); !ok {
		t.Fatal("no preview after the final")
	}
	if end() || len(turns.chats) != 0 {
		t.Errorf("%d chats are remembered with nothing under way", len(turns.chats))
	}
}

// A final goes out while a preview hangs; when that has ended, or has ended in
// the meantime, the final is shown again, as the preview may stand over it.
func TestAFinalOvertakesAPreviewThatHangs(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	var turns Turns[int]
	var order []string
	overtake := func(what string) (end func(func())) {
		passed := make(chan func(func()))
		go func() { passed <- turns.Send(t.Context(), clock, 1) }()
		clock.AwaitWaiters(1)
		clock.Advance(overtakeAfter)
		end = <-passed
		order = append(order, what)
		return end
	}
	again := func(what string) func() { return func() { order = append(order, what+" again") } }
	end, _ := turns.Preview(1)
	overtake("first")(again("first"))
	overtake("second")(again("second"))
	overtake("new message")(nil)
	if !end() {
		t.Error("the preview does not know of the finals")
	}
	end, _ = turns.Preview(1)
	late := overtake("third")
	end()
	late(again("third"))
	want := []string{"first", "second", "new message", "first again", "second again", "third", "third again"}
	if !slices.Equal(order, want) {
		t.Errorf("order %q", order)
	}

	over, cancel := context.WithCancel(t.Context())
	cancel()
	end, _ = turns.Preview(1)
	turns.Send(over, clock, 1)(nil) // does not wait longer than its context
	if !end() || len(turns.chats) != 0 {
		t.Errorf("%d chats are remembered with nothing under way", len(turns.chats))
	}
}
