package queue_test

import (
	"context"
	"testing"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Replies of a bot that this process does not hold are sent as soon as it does. Those of one that
// is removed fail, where the operator sees them and no alert waits for them, and are sent if the
// bot comes back within a day.
func TestRepliesOfABotThatComesLaterWaitForItAndAreSentOnce(t *testing.T) {
	f := newFixture(t, nil)
	f.serve(nil)
	post := func(key string) {
		t.Helper()
		err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
			return f.out.Post(t.Context(), tx, core.Reply{Address: core.Address{Bot: "late", Chat: "a"}, Key: key, Parts: []core.Part{{Text: key}}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	state := func(key string) (s string) {
		t.Helper()
		if err := f.db.Get(t.Context(), &s, `SELECT state FROM outbox WHERE key = $1`, key); err != nil {
			t.Fatal(err)
		}
		return s
	}
	look := f.timePasses()
	defer look()
	post("one")
	if err := f.out.Hold(t.Context(), "late"); err != nil {
		t.Fatal(err)
	}
	if got := f.reply(); got != "one" {
		t.Errorf("sent %q", got)
	}
	if err := f.out.Hold(t.Context(), "late"); err != nil { // again: no harm
		t.Fatal(err)
	}
	post("two")
	if got := f.reply(); got != "two" {
		t.Errorf("sent %q", got)
	}
	if err := f.out.Remove(t.Context(), "late"); err != nil {
		t.Fatal(err)
	}
	post("three")
	f.until("what was posted later fails", func() bool { return state("three") == "failed" })
	if a, b, c := state("one"), state("two"), state("three"); a != "sent" || b != "sent" || c != "failed" || len(f.plat.seen) != 0 {
		t.Errorf("states %s %s %s, %d more sends", a, b, c, len(f.plat.seen))
	}
	depths, err := f.inspect().Depths(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range depths {
		if d.OutboxOldest != 0 {
			t.Errorf("a reply counts as waiting: %+v", d)
		}
	}
	if err := f.out.Hold(t.Context(), "late"); err != nil {
		t.Fatal(err)
	}
	if got := f.reply(); got != "three" {
		t.Errorf("sent %q", got)
	}
}

// A connector that is closed makes it likely that a send under way ends without success.
func TestWhatIsBeingSentWhenItsBotIsRemovedFails(t *testing.T) {
	s := slow{platform: newPlatform(), hold: make(chan struct{})}
	s.answers = []core.Delivery{{Outcome: core.NotSent, Reason: "no connection"}, {Outcome: core.NotSent, Reason: "no connection"}}
	f := newFixture(t, func(o *options) { o.sender = s })
	f.plat = s.platform
	f.serve(nil)
	look := f.timePasses()
	defer look()
	state := func() (s string) {
		if err := f.db.Get(t.Context(), &s, `SELECT state FROM outbox`); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if err := f.out.Hold(t.Context(), "late"); err != nil {
		t.Fatal(err)
	}
	f.tx(func(ctx context.Context, tx *store.Tx) error {
		return f.out.Post(ctx, tx, core.Reply{Address: core.Address{Bot: "late", Chat: "a"}, Key: "k", Parts: []core.Part{{Text: "one"}}})
	})
	f.until("it is being sent", func() bool { return state() == "sending" })
	if err := f.out.Remove(t.Context(), "late"); err != nil {
		t.Fatal(err)
	}
	close(s.hold)
	f.reply()
	f.until("it fails", func() bool { return state() == "failed" })
	if err := f.out.Hold(t.Context(), "late"); err != nil {
		t.Fatal(err)
	}
	f.until("it is sent when the bot is back", func() bool { return state() == "sent" })
}

// A bot may be removed while no gateway runs.
func TestAStartFailsRepliesOfBotsThatAreNotConfigured(t *testing.T) {
	f := newFixture(t, nil)
	if err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		return f.out.Post(t.Context(), tx, core.Reply{Address: core.Address{Bot: "gone", Chat: "a"}, Key: "k", Parts: []core.Part{{Text: "t"}}})
	}); err != nil {
		t.Fatal(err)
	}
	f.serve(nil)
	rows, err := f.inspect().Unsure(t.Context(), 10)
	if err != nil || len(rows) != 1 || rows[0].State != "failed" || rows[0].Error == "" {
		t.Errorf("%+v, %v", rows, err)
	}
}
