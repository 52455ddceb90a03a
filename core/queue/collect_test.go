package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue"
)

// After an outage a page may have a question, a /stop for it, and the next question.
func TestWhatWasWrittenBehindAStopIsNotCollectedWithWhatItStops(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Collect = true })
	stop := msg(3, "a", "ann", "/stop")
	stop.Kind, stop.Command = core.KindCommand, "stop"
	f.put(msg(1, "a", "ann", "one"), msg(2, "a", "ann", "and"), stop, msg(4, "a", "ann", "two"), msg(5, "a", "ann", "more"))
	var mu sync.Mutex
	var got []string
	done := make(chan struct{}, 10)
	f.serve(func(_ context.Context, turn *queue.Turn) {
		texts := ""
		for _, r := range turn.Rows {
			texts += r.Text + ";"
		}
		mu.Lock()
		if !turn.Control {
			got = append(got, texts)
		}
		mu.Unlock()
		if err := f.q.Ack(context.Background(), turn, queue.Result{}); err != nil {
			t.Error(err)
		}
		done <- struct{}{}
	})
	for range 3 {
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("turns are missing: %v", got)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	// The second turn is claimed with the end of the first, when /stop may be done: its rows are all there.
	if want := "[one;and; two;more;]"; fmt.Sprint(got) != want {
		t.Errorf("the turns were %v, want %s", got, want)
	}
}
