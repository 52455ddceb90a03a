package bus

import (
	"context"
	"testing"
	"time"

	"gatehouse/core"
)

func TestAwaitEnd_WaitsForARunThatHasItsResultAndForNoOther(t *testing.T) {
	t.Parallel()
	b := New(nil, nil)
	ctx, long := t.Context(), time.Hour
	b.AwaitEnd(ctx, "s", long) // without a run
	s := b.Begin(Info{Run: "r", Session: "s"})
	b.AwaitEnd(ctx, "s", long) // without a result
	s.Seal(core.MessageStop{})
	b.AwaitEnd(ctx, "s", time.Millisecond)
	stopped, stop := context.WithCancel(ctx)
	stop()
	b.AwaitEnd(stopped, "s", long)
	waiting := b.ending("s")
	if len(waiting) != 1 {
		t.Fatalf("%d runs are ending, want 1", len(waiting))
	}
	ended := make(chan struct{})
	go func() { b.AwaitEnd(ctx, "s", long); close(ended) }()
	next := b.Begin(Info{Run: "r2", Session: "s"})
	if len(b.ending("s")) != 0 {
		t.Error("another run is in progress, and AwaitEnd would wait")
	}
	next.End()
	s.Finish(false)
	<-waiting[0]
	<-ended
	if active := b.Active(); len(active) != 0 {
		t.Errorf("%+v", active)
	}
	b.AwaitEnd(ctx, "s", long)
}
