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
