package queue_test

import (
	"context"
	"testing"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/queue/maintenance"
	"gatehouse/core/store"
)

// The operator decides in the panel about work that was open when the backup was
// made; none of it is done automatically.
func TestAfterARestoreNothingThatWasOpenIsDoneAutomatically(t *testing.T) {
	f := newFixture(t, nil)
	ctx := t.Context()
	f.gate.hold = map[string]bool{"stranger": true}
	page := []core.Inbound{
		{UpdateID: "1", Address: core.Address{Bot: "bot", Chat: "a"}, Kind: core.KindMessage, MessageID: "1", From: core.Peer{Platform: "p", ID: "ada"}, Text: "hello", At: f.clock.Now()},
		{UpdateID: "2", Address: core.Address{Bot: "bot", Chat: "s"}, Kind: core.KindMessage, MessageID: "1", From: core.Peer{Platform: "p", ID: "stranger"}, Text: "let me in", At: f.clock.Now()},
		{UpdateID: "3", Address: core.Address{Bot: "bot", Chat: "a"}, Kind: core.KindCallback, From: core.Peer{Platform: "p", ID: "ada"}, Callback: &core.Callback{ID: "1", Data: "x:y"}, At: f.clock.Now()},
	}
	f.takeOver(f.q)
	for _, name := range []string{"disc:1", "tele:1"} {
		if err := f.q.Put(ctx, page, &core.Cursor{Name: name, Value: "7"}); err != nil {
			t.Fatal(err)
		}
	}
	var r maintenance.Restored
	err := f.db.Tx(ctx, func(tx *store.Tx) (err error) {
		for _, key := range []string{"run:1", "run:2"} {
			if err := f.out.Post(ctx, tx, core.Reply{Address: core.Address{Bot: "bot", Chat: "a"}, Key: key, Parts: []core.Part{{Text: key}}}); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `UPDATE outbox SET state = 'sending' WHERE key = 'run:2'`); err != nil {
			return err
		}
		r, err = maintenance.AfterRestore(ctx, tx, "disc:")
		return err
	})
	if err != nil || r.Sends != 2 || r.Messages != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	turns := make(chan string, 10)
	f.serve(func(ctx context.Context, t *queue.Turn) {
		turns <- t.First().Text
		_ = f.q.Ack(ctx, t, queue.Result{})
	})
	if dead, err := f.inspect().Dead(ctx, 10); err != nil || len(dead) != 1 || dead[0].Text != "hello" {
		t.Errorf("dead letters: %+v %v", dead, err)
	}
	if unsure, err := f.inspect().Unsure(ctx, 10); err != nil || len(unsure) != 2 || unsure[0].State != "unknown" {
		t.Errorf("replies in doubt: %+v %v", unsure, err)
	}
	if len(f.plat.seen)+len(turns) != 0 {
		t.Error("something was done by itself")
	}
	for name, want := range map[string]string{"disc:1": "", "tele:1": "7"} {
		if v, _, err := f.q.Cursor(ctx, name); v != want || err != nil {
			t.Errorf("%s: %q %v", name, v, err)
		}
	}
	// The operator retries it and it is answered; held messages are freed as before.
	dead, _ := f.inspect().Dead(ctx, 10)
	if err := f.q.Retry(ctx, dead[0].Seq, core.Actor{}); err != nil {
		t.Fatal(err)
	}
	err = f.db.Tx(ctx, func(tx *store.Tx) error {
		n, err := f.q.Free(context.Background(), tx, "req-stranger", core.Vault)
		if n != 1 {
			t.Errorf("%d rows were held", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for range 2 {
		got[<-turns] = true
	}
	if !got["hello"] || !got["let me in"] {
		t.Errorf("turns: %v", got)
	}
}
