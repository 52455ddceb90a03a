package queue_test

import (
	"context"
	"testing"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/store"
)

// A conversation that moves to another chat takes along what was asked of it
// over HTTP and waits.
func TestRequestsThatWaitForASessionFollowItsLane(t *testing.T) {
	lane := "bot|a"
	f := newFixture(t, func(o *options) {
		o.Lane = func(_ context.Context, _ *store.Tx, in *core.Inbound) (string, error) {
			if in.Bot == core.APIBot {
				return lane, nil
			}
			return in.Bot + "|" + in.Chat, nil
		}
	})
	asked := msg(1, "s1", "key", "over HTTP")
	asked.Bot, asked.Turn = core.APIBot, &core.Options{}
	other := msg(2, "s2", "key", "of another session")
	other.Bot, other.Turn = core.APIBot, &core.Options{}
	f.put(asked, other, msg(3, "a", "ann", "in the chat"))
	var before, after bool
	err := f.db.Tx(t.Context(), func(tx *store.Tx) (err error) {
		if before, err = f.q.Held(t.Context(), tx, "bot|b"); err != nil {
			return err
		}
		return f.q.Relane(t.Context(), tx, "s1", "bot|a", "bot|b")
	})
	if err != nil || before {
		t.Fatal(before, err)
	}
	begun, end := make(chan string, 10), make(chan struct{})
	f.serve(func(_ context.Context, turn *queue.Turn) {
		begun <- turn.Lane + " " + turn.First().Text
		<-end
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
	got := map[string]bool{<-begun: true, <-begun: true}
	if !got["bot|b over HTTP"] || !got["bot|a of another session"] {
		t.Errorf("begun: %v", got)
	}
	err = f.db.Tx(t.Context(), func(tx *store.Tx) (err error) {
		after, err = f.q.Held(t.Context(), tx, "bot|b")
		return err
	})
	if err != nil || !after {
		t.Errorf("the lane is at work: %v, %v", after, err)
	}
	close(end)
	f.reply() // to the chat; the others' readers have theirs
}
