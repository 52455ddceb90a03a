package queue_test

import (
	"testing"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Replies of a bot that this process does not hold are sent as soon as it does,
// and stay stored again after the bot is released.
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
	f.out.LetGo("late")
	post("three")
	f.stop()
	if a, b, c := state("one"), state("two"), state("three"); a != "sent" || b != "sent" || c != "ready" || len(f.plat.seen) != 0 {
		t.Errorf("states %s %s %s, %d more sends", a, b, c, len(f.plat.seen))
	}
}
