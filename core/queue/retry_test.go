package queue_test

import (
	"context"
	"testing"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/queue/maintenance"
	"gatehouse/core/store"
)

// A /stop that waited when the backup was made is retried beside the run of its
// chat, which it is to stop, and so is an answer to a question that a run asks.
func TestARetriedControlTurnPassesByTheRunOfItsChat(t *testing.T) {
	f := newFixture(t, func(o *options) {
		o.Waiting = func(in *core.Inbound) bool { return in.Text == "yes" }
	})
	stop := msg(1, "a", "ann", "")
	stop.Kind, stop.Command = core.KindCommand, "stop"
	f.put(stop, msg(2, "a", "ann", "yes"))
	err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := maintenance.AfterRestore(t.Context(), tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	dead, err := f.inspect().Dead(t.Context(), 10)
	if err != nil || len(dead) != 2 {
		t.Fatalf("dead letters %+v, %v", dead, err)
	}
	busy, release, control := make(chan struct{}), make(chan struct{}), make(chan *queue.Turn, 2)
	f.serve(func(ctx context.Context, turn *queue.Turn) {
		if turn.Control {
			control <- turn
		} else {
			close(busy)
			<-release
		}
		_ = f.q.Ack(ctx, turn, queue.Result{})
	})
	f.put(msg(3, "a", "ann", "a long task"))
	<-busy
	for _, d := range dead {
		if err := f.q.Retry(t.Context(), d.Seq, core.Actor{}); err != nil {
			t.Fatal(err)
		}
		var lane string
		if err := f.db.Get(t.Context(), &lane, `SELECT lane FROM inbox WHERE seq = $1`, d.Seq); err != nil || lane != "bot|a#control" {
			close(release)
			t.Fatalf("%s is retried in the lane %s, %v", d.Kind, lane, err)
		}
		if got := <-control; string(got.First().Kind) != d.Kind {
			t.Errorf("a control turn for %+v", got.First())
		}
	}
	close(release)
}
