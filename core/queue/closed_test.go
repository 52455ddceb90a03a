package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// outbox is the replies by state and error, in order.
func (f *fixture) outbox() string {
	f.t.Helper()
	var rows []string
	if err := f.db.Select(f.t.Context(), &rows, `SELECT chat || ' ' || state || CASE WHEN error <> '' THEN ' (' || error || ')' ELSE '' END FROM outbox ORDER BY seq`); err != nil {
		f.t.Fatal(err)
	}
	return strings.Join(rows, "\n")
}

func (f *fixture) tx(do func(context.Context, *store.Tx) error) {
	f.t.Helper()
	if err := f.db.Tx(f.t.Context(), func(tx *store.Tx) error { return do(f.t.Context(), tx) }); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) post(key, chat, place string, texts ...string) {
	f.t.Helper()
	r := core.Reply{Address: core.Address{Bot: "bot", Chat: chat, Place: place}, Key: key}
	for _, text := range texts {
		r.Parts = append(r.Parts, core.Part{Text: text})
	}
	f.tx(func(ctx context.Context, tx *store.Tx) error { return f.q.Post(ctx, tx, r) })
}

func TestAChatThatShutsTheBotOutIsLeftAloneAndGetsWhatWaitedOnceItOpens(t *testing.T) {
	f := newFixture(t, nil)
	f.serve(nil)
	f.plat.answers = []core.Delivery{{Outcome: core.Refused, Closed: true, Reason: "this person has blocked it"}}
	f.post("a", "ann", "", "one", "two", "three")
	<-f.plat.seen
	f.settled("ann failed (the chat is closed to the bot: this person has blocked it)\n" +
		"ann failed (the chat is closed to the bot: this person has blocked it)\nann failed (the chat is closed to the bot: this person has blocked it)")
	if n := len(f.plat.sent); n != 1 {
		t.Errorf("the platform was asked %d times", n)
	}
	f.tx(func(ctx context.Context, tx *store.Tx) error { return f.q.Reopen(ctx, tx, "bot", []string{"bob"}) })
	f.tx(func(ctx context.Context, tx *store.Tx) error { return f.q.Reopen(ctx, tx, "bot", []string{"ann"}) })
	for _, want := range []string{"one", "two", "three"} {
		if got := (<-f.plat.seen).Text; got != want {
			t.Errorf("sent %q, want %q", got, want)
		}
	}
	f.settled("ann sent\nann sent\nann sent")
}

func TestWhatWaitsForAChatThatShutsTheBotOutIsNotTried(t *testing.T) {
	f := newFixture(t, nil)
	f.post("a", "ann", "", "to ann")
	f.post("b", "club/7", "club", "in a thread")
	f.post("c", "bob", "", "to bob")
	f.tx(func(ctx context.Context, tx *store.Tx) error {
		return f.q.Shut(ctx, tx, "bot", []string{"ann", "club"}, "it was removed")
	})
	f.serve(nil)
	if got := (<-f.plat.seen).Text; got != "to bob" {
		t.Errorf("sent %q", got)
	}
	f.settled("ann failed (the chat is closed to the bot: it was removed)\nclub/7 failed (the chat is closed to the bot: it was removed)\nbob sent")
}

func TestWhatADayOldChatMissedIsNotSentUnasked(t *testing.T) {
	f := newFixture(t, nil)
	f.post("a", "ann", "", "old")
	f.tx(func(ctx context.Context, tx *store.Tx) error { return f.q.Shut(ctx, tx, "bot", []string{"ann"}, "x") })
	f.clock.Advance(25 * time.Hour)
	f.post("b", "ann", "", "refused for another reason")
	f.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE outbox SET state = 'failed', error = 'too long' WHERE key = 'b'`)
		return err
	})
	f.tx(func(ctx context.Context, tx *store.Tx) error { return f.q.Reopen(ctx, tx, "bot", []string{"ann"}) })
	if got := f.outbox(); got != "ann failed (the chat is closed to the bot: x)\nann failed (too long)" {
		t.Errorf("the outbox: %s", got)
	}
}

// settled waits until the outbox is want.
func (f *fixture) settled(want string) {
	f.t.Helper()
	late := time.After(time.Minute)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for f.outbox() != want {
		select {
		case <-tick.C:
		case <-late:
			f.t.Fatalf("the outbox is\n%s\nwant\n%s", f.outbox(), want)
		}
	}
}
