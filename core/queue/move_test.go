package queue_test

import (
	"context"
	"errors"
	"testing"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/store"
)

// A group gets another id while messages and replies wait: both go on there, in
// their order, and no id of the old chat's messages is used in the new one.
func TestWhatWaitsFollowsItsChatToItsNewID(t *testing.T) {
	f := newFixture(t, nil)
	ctx := t.Context()
	old := core.Address{Bot: "bot", Chat: "-1", Place: "-1"}
	var page []core.Inbound
	for _, id := range []string{"1", "2", "3"} {
		page = append(page, core.Inbound{UpdateID: id, Address: old, Kind: core.KindMessage, MessageID: id, ReplyTo: "7", From: core.Peer{Platform: "p", ID: "ada"}, Text: "text " + id, At: f.clock.Now()})
	}
	f.takeOver(f.q)
	if err := f.q.Put(ctx, page, nil); err != nil {
		t.Fatal(err)
	}
	err := f.db.Tx(ctx, func(tx *store.Tx) error {
		if err := f.out.Post(ctx, tx, core.Reply{Address: old, Key: "notice:1", Replaces: "55", Parts: []core.Part{{Text: "a notice"}}}); err != nil {
			return err
		}
		return f.q.Move(ctx, tx, "bot", "-1", "-1001")
	})
	if err != nil {
		t.Fatal(err)
	}
	turns := make(chan core.Inbound, 10)
	f.serve(func(ctx context.Context, t *queue.Turn) {
		turns <- *t.First()
		_ = f.q.Ack(ctx, t, queue.Result{})
	})
	for _, want := range []string{"text 1", "text 2", "text 3"} {
		in := <-turns
		if in.Text != want || in.Chat != "-1001" || in.Place != "-1001" || in.MessageID != "" || in.ReplyTo != "" {
			t.Errorf("a turn for %+v, want %q in the new chat", in, want)
		}
	}
	if out := <-f.plat.seen; out.Chat != "-1001" || out.Replaces != "" || out.Part.Text != "a notice" {
		t.Errorf("sent %+v", out)
	}
	var left int
	if err := f.db.Get(ctx, &left, `SELECT count(*) FROM inbox WHERE chat = '-1'`); err != nil || left != 0 {
		t.Errorf("%d rows stay under the old id, %v", left, err)
	}
}

// Behind an answer in the making they wait for it as before.
func TestWhatWaitsBehindAnAnswerStillDoesWhenItsChatMoves(t *testing.T) {
	f := newFixture(t, nil)
	ctx := t.Context()
	old := core.Address{Bot: "bot", Chat: "-1", Place: "-1"}
	began, goOn, turns := make(chan struct{}), make(chan struct{}), make(chan core.Inbound, 10)
	f.serve(func(ctx context.Context, t *queue.Turn) {
		if t.First().Text == "first" {
			close(began)
			<-goOn
		}
		turns <- *t.First()
		_ = f.q.Ack(ctx, t, queue.Result{})
	})
	put := func(id, text string) {
		in := core.Inbound{UpdateID: id, Address: old, Kind: core.KindMessage, MessageID: id, From: core.Peer{Platform: "p", ID: "ada"}, Text: text, At: f.clock.Now()}
		if err := f.q.Put(ctx, []core.Inbound{in}, nil); err != nil {
			t.Fatal(err)
		}
	}
	put("1", "first")
	<-began
	put("2", "second")
	if err := f.db.Tx(ctx, func(tx *store.Tx) error { return f.q.Move(ctx, tx, "bot", "-1", "-1001") }); err != nil {
		t.Fatal(err)
	}
	if n := f.q.Running(); n != 1 {
		t.Errorf("%d turns at once", n)
	}
	close(goOn)
	if in := <-turns; in.Text != "first" || in.Chat != "-1" {
		t.Errorf("first %+v", in)
	}
	if in := <-turns; in.Text != "second" || in.Chat != "-1001" {
		t.Errorf("then %+v", in)
	}
}

// The run goes on under the old id. After a stop it is made again in the new chat.
func TestAMessageWhoseAnswerIsGivenBackIsAnsweredInTheNewChat(t *testing.T) {
	f := newFixture(t, nil)
	ctx := t.Context()
	in := core.Inbound{UpdateID: "1", Address: core.Address{Bot: "bot", Chat: "-1", Place: "-1"}, Kind: core.KindMessage, MessageID: "9", From: core.Peer{Platform: "p", ID: "ada"}, Text: "first", At: f.clock.Now()}
	turns := make(chan *queue.Turn, 2)
	f.serve(func(_ context.Context, t *queue.Turn) {
		if turns <- t; len(turns) == 2 {
			_ = f.q.Ack(ctx, t, queue.Result{})
			return
		}
		move := func(tx *store.Tx) error { return f.q.Move(ctx, tx, "bot", "-1", "-1001") }
		if err := errors.Join(f.db.Tx(ctx, move), f.q.GiveBack(ctx, t)); err != nil {
			panic(err)
		}
	})
	if err := f.q.Put(ctx, []core.Inbound{in}, nil); err != nil {
		t.Fatal(err)
	}
	f.until("the second attempt", func() bool { return len(turns) == 2 })
	first, second := <-turns, <-turns
	if a := second.First(); a.Chat != "-1001" || a.Place != "-1001" || a.MessageID != "" || second.Run != first.Run || second.Lane != first.Lane {
		t.Errorf("the second attempt %+v: run %s, lane %s; the first had %s, %s", a, second.Run, second.Lane, first.Run, first.Lane)
	}
}
