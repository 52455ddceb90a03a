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
	f.tx(func(ctx context.Context, tx *store.Tx) error { return f.out.Post(ctx, tx, r) })
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
	f.tx(func(ctx context.Context, tx *store.Tx) error { return f.out.Reopen(ctx, tx, "bot", []string{"bob"}) })
	f.tx(func(ctx context.Context, tx *store.Tx) error { return f.out.Reopen(ctx, tx, "bot", []string{"ann"}) })
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
		return f.out.Shut(ctx, tx, "bot", []string{"ann", "club"}, "it was removed")
	})
	f.serve(nil)
	if got := (<-f.plat.seen).Text; got != "to bob" {
		t.Errorf("sent %q", got)
	}
	f.settled("ann failed (the chat is closed to the bot: it was removed)\nclub/7 failed (the chat is closed to the bot: it was removed)\nbob sent")
}

// The platform reports of a direct message as a whole that the bot is kept out of it.
func TestTheTopicsOfADirectMessageCloseAndOpenWithIt(t *testing.T) {
	f := newFixture(t, nil)
	for _, to := range []core.Address{{Bot: "bot", Chat: "7/12", Thread: "12"}, {Bot: "bot", Chat: "77/12", Thread: "12"}} {
		f.tx(func(ctx context.Context, tx *store.Tx) error {
			return f.out.Post(ctx, tx, core.Reply{Address: to, Key: "to " + to.Chat, Parts: []core.Part{{Text: "to " + to.Chat}}})
		})
	}
	f.tx(func(ctx context.Context, tx *store.Tx) error {
		return f.out.Shut(ctx, tx, "bot", []string{"7"}, "this person has blocked it")
	})
	if got := f.outbox(); got != "7/12 failed (the chat is closed to the bot: this person has blocked it)\n77/12 ready" {
		t.Errorf("the outbox: %s", got)
	}
	f.serve(nil)
	if got := (<-f.plat.seen).Text; got != "to 77/12" {
		t.Errorf("sent %q", got)
	}
	f.tx(func(ctx context.Context, tx *store.Tx) error { return f.out.Reopen(ctx, tx, "bot", []string{"7"}) })
	if got := (<-f.plat.seen).Text; got != "to 7/12" {
		t.Errorf("then %q", got)
	}
}

func TestWhatADayOldChatMissedIsNotSentUnasked(t *testing.T) {
	f := newFixture(t, nil)
	f.post("a", "ann", "", "old")
	f.tx(func(ctx context.Context, tx *store.Tx) error { return f.out.Shut(ctx, tx, "bot", []string{"ann"}, "x") })
	f.clock.Advance(25 * time.Hour)
	f.post("b", "ann", "", "refused for another reason")
	f.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE outbox SET state = 'failed', error = 'too long' WHERE key = 'b'`)
		return err
	})
	f.tx(func(ctx context.Context, tx *store.Tx) error { return f.out.Reopen(ctx, tx, "bot", []string{"ann"}) })
	if got := f.outbox(); got != "ann failed (the chat is closed to the bot: x)\nann failed (too long)" {
		t.Errorf("the outbox: %s", got)
	}
}

// settled waits until the outbox is want.
func (f *fixture) settled(want string) {
	f.t.Helper()
	late := time.After(5 * time.Minute)
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

// What may have arrived before the chat was closed, or moved, bears the mark of a
// repeat when it is sent there after all; what certainly did not, none.
func TestWhatMayHaveArrivedIsMarkedAlsoAfterTheChatWasClosedOrMoved(t *testing.T) {
	lost := core.Delivery{Outcome: core.Unknown}
	closed := core.Delivery{Outcome: core.Refused, Closed: true, Reason: "this person has blocked it"}
	for _, c := range []struct {
		name    string
		answers []core.Delivery
		shut    bool // by the platform's news, while the repeat waits
		marked  bool
	}{
		{"refused", []core.Delivery{lost, closed}, false, true},
		{"known again", []core.Delivery{{Outcome: core.Unknown, Safe: true}, closed}, false, true},
		{"told", []core.Delivery{lost}, true, true},
		{"moved", []core.Delivery{lost, {Outcome: core.Refused, MovedTo: "ann2"}}, false, true},
		{"never there", []core.Delivery{{Outcome: core.NotSent}, closed}, false, false},
		{"moved, never there", []core.Delivery{{Outcome: core.Refused, MovedTo: "ann2"}}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.plat.repeats = 10 * time.Minute
			f.plat.answers = c.answers
			f.serve(nil)
			f.post("a", "ann", "", "one")
			first := <-f.plat.seen
			if first.Repeat {
				t.Errorf("sent first as %+v", first)
			}
			if c.shut {
				f.settled("ann ready (sent, but the platform did not answer)")
				f.tx(func(ctx context.Context, tx *store.Tx) error {
					return f.out.Shut(ctx, tx, "bot", []string{"ann"}, "this person has blocked it")
				})
			} else {
				hold := f.timePasses()
				for range len(c.answers) - 1 {
					<-f.plat.seen
				}
				hold()
			}
			if !strings.HasPrefix(c.name, "moved") {
				want := "ann failed (the chat is closed to the bot: this person has blocked it"
				if c.marked {
					want += "; an earlier try may have arrived"
				}
				f.settled(want + ")")
				f.tx(func(ctx context.Context, tx *store.Tx) error { return f.out.Reopen(ctx, tx, "bot", []string{"ann"}) })
			}
			if last := <-f.plat.seen; last.Text != "one" || last.Repeat != c.marked {
				t.Errorf("sent at last as %+v", last)
			}
		})
	}
}
