package queue_test

import (
	"context"
	"testing"

	"gatehouse/core"
	"gatehouse/core/queue"
)

// stalled is a platform that answers once it may.
type stalled struct {
	*platform
	asked, may chan struct{}
}

func (s *stalled) Send(ctx context.Context, out core.Outgoing) core.Delivery {
	s.asked <- struct{}{}
	<-s.may
	return s.platform.Send(ctx, out)
}

func TestAReplyThatIsBeingSentIsNotTakenForLost(t *testing.T) {
	s := &stalled{asked: make(chan struct{}, 10), may: make(chan struct{})}
	f := newFixture(t, func(o *options) { o.sender = s })
	s.platform = f.plat
	f.put(msg(1, "c", "ada", "one"))
	f.serve(func(_ context.Context, tn *queue.Turn) {
		if err := answer(f.q, tn); err != nil {
			t.Error(err)
		}
	})
	<-s.asked
	for range 2 { // however long it takes
		if err := f.out.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := f.db.Get(t.Context(), &n, `SELECT count(*) FROM outbox WHERE state = 'sending' AND attempts = 1`); err != nil || n != 1 {
		t.Errorf("%d replies are being sent, %v", n, err)
	}
	close(s.may)
	f.reply()
	if len(s.asked) != 0 {
		t.Error("it was sent again")
	}
}
