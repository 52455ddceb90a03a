package queue_test

import (
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
	remove := func() {
		t.Helper()
		if err := f.out.Remove(t.Context(), "late"); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	post("three")
	remove()
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
