package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// unfinished returns the messages that are not answered yet, with their lanes.
func (f *fixture) unfinished() string {
	f.t.Helper()
	var s []string
	if err := f.db.Select(f.t.Context(), &s, `SELECT update_id || ':' || chat || ':' || lane FROM inbox WHERE state IN ('ready', 'limited') ORDER BY seq`); err != nil {
		f.t.Fatal(err)
	}
	return strings.Join(s, " ")
}

func (f *fixture) move(from, to string) {
	f.t.Helper()
	if err := f.db.Tx(f.t.Context(), func(tx *store.Tx) error { return f.q.Move(f.t.Context(), tx, "bot", from, to) }); err != nil {
		f.t.Fatal(err)
	}
}

// New messages join the lane of the old id, also of the one before, until it is empty.
func TestMessagesOfAMovedChatJoinTheLaneInWhichItIsAnswered(t *testing.T) {
	f := newFixture(t, nil)
	begun, end := f.serveHeld()
	f.put(msg(1, "-1", "ann", "one"))
	<-begun
	f.move("-1", "-1001")
	f.put(msg(2, "-1001", "ann", "two"), msg(3, "-2", "bob", "another chat"))
	<-begun
	f.move("-1001", "-1002")
	f.put(msg(4, "-1002", "ann", "three"))
	if got := f.unfinished(); got != "1:-1002:bot|-1 2:-1002:bot|-1 3:-2:bot|-2 4:-1002:bot|-1" {
		t.Errorf("unfinished: %s", got)
	}
	close(end)
	for range 4 {
		f.reply()
	}
	f.until("the lanes are released", func() bool { return f.q.Running() == 0 })
	f.put(msg(5, "-1002", "ann", "four"))
	f.reply()
	var lane string
	if err := f.db.Get(t.Context(), &lane, `SELECT lane FROM inbox WHERE update_id = '5'`); err != nil || lane != "bot|-1002" {
		t.Errorf("the lane is %q, %v, when the old one is empty", lane, err)
	}
}

// A process that was killed knew that the chat had moved; the next one reads it.
func TestMessagesOfAMovedChatJoinItsLaneAfterAKill(t *testing.T) {
	f := newFixture(t, nil)
	begun, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	f.serve(func(_ context.Context, turn *queue.Turn) {
		close(begun)
		<-end
		if err := answer(f.q, turn); !errors.Is(err, queue.ErrFenced) {
			t.Errorf("the killed process: %v", err)
		}
	})
	f.put(msg(1, "-1", "ann", "one"))
	<-begun
	f.move("-1", "-1001")
	next := f.newQueue(func(o *options) { o.Node = "next" })
	f.takeOver(next)
	if err := next.Put(t.Context(), []core.Inbound{msg(2, "-1001", "ann", "two")}, nil); err != nil {
		t.Fatal(err)
	}
	if got := f.unfinished(); got != "1:-1001:bot|-1 2:-1001:bot|-1" {
		t.Errorf("unfinished: %s", got)
	}
}

// A request of the API is answered in the conversation of a chat that moves: the chat's
// messages wait for it. One that waits alone moves along.
func TestMessagesOfAMovedChatWaitForARequestInItsConversation(t *testing.T) {
	at := "-1"
	f := newFixture(t, func(o *options) {
		o.Lane = func(_ context.Context, _ *store.Tx, in *core.Inbound) (string, error) {
			if in.Bot == core.APIBot {
				return "bot|" + at, nil
			}
			return in.Bot + "|" + in.Chat, nil
		}
	})
	request := func(n int) core.Inbound {
		in := msg(n, "session", "key", "request")
		in.Bot, in.MessageID, in.Turn = core.APIBot, "", &core.Options{Run: fmt.Sprint("run", n)}
		return in
	}
	f.put(request(1))
	f.move("-1", "-1001")
	at = "-1001"
	if got := f.unfinished(); got != "1:session:bot|-1001" {
		t.Errorf("a request that waited: %s", got)
	}
	begun, end := f.serveHeld()
	<-begun
	f.move("-1001", "-1002")
	at = "-1002"
	f.put(msg(2, "-1002", "ann", "two"))
	if got := f.unfinished(); got != "1:session:bot|-1001 2:-1002:bot|-1001" {
		t.Errorf("behind a request: %s", got)
	}
	close(end)
}
