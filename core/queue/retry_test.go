package queue_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// What could not be stored never had a lane and no trust: it is retried as it would have
// been handled, a /stop beside the run of its chat.
func TestARetriedUpdateThatWasSetAsideIsHandledAsItWouldHaveBeen(t *testing.T) {
	var fails atomic.Bool
	f := newFixture(t, func(o *options) {
		o.Lane = func(_ context.Context, _ *store.Tx, in *core.Inbound) (string, error) {
			if fails.Load() {
				return "", errors.New("a bug")
			}
			return in.Bot + "|" + in.Chat, nil
		}
	})
	f.takeOver(f.q)
	stop, press := msg(1, "a", "ann", ""), msg(2, "a", "ann", "")
	stop.Kind, stop.Command = core.KindCommand, "stop"
	press.Kind, press.MessageID, press.Callback = core.KindCallback, "", &core.Callback{ID: "1", Data: "x"}
	fails.Store(true)
	for _, in := range []core.Inbound{stop, press, msg(3, "a", "ann", "hello")} {
		for tries := 1; f.q.Put(t.Context(), []core.Inbound{in}, nil) != nil; tries++ {
			if tries > 2*queue.MaxAttempts {
				t.Fatal("it is never set aside")
			}
		}
	}
	fails.Store(false)
	edit := msg(4, "a", "ann", "edited")
	edit.Kind = core.KindEdit
	f.put(edit)
	f.execute(`UPDATE inbox SET state = 'dead', trust = '', payload = '{"bot":"bot","chat":"a","kind":"edit","update_id":"4"}' WHERE update_id = '4'`)
	dead, err := f.inspect().Dead(t.Context(), 10)
	if err != nil || len(dead) != 4 {
		t.Fatalf("dead letters %+v, %v", dead, err)
	}
	turns := make(chan *queue.Turn, 3)
	f.serve(func(_ context.Context, turn *queue.Turn) {
		_ = f.q.Ack(context.Background(), turn, queue.Result{})
		turns <- turn
	})
	for _, d := range dead {
		if err := f.q.Retry(t.Context(), d.Seq, core.Actor{}); err != nil {
			t.Fatal(err)
		}
		if d.Kind == string(core.KindEdit) { // it starts no turn
			f.until("the edit is refused", func() bool { return strings.Contains(f.states(), "4:refused") })
			continue
		}
		select {
		case got := <-turns:
			if want := d.Kind != string(core.KindMessage); got.Control != want || string(got.First().Kind) != d.Kind || got.Trust != core.Vault {
				t.Errorf("%s is retried in the lane %s with trust %s", d.Kind, got.Lane, got.Trust)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the %s is not handled: %s", d.Kind, f.states())
		}
	}
}
