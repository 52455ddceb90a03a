package queue_test

import (
	"context"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/queue/maintenance"
	"gatehouse/core/store"
)

// Keys of notices, sources of corrections and buttons in chats contain the number of a message
// or reply, and outlive its row.
func TestNumbersOfMessagesAndRepliesAreNeverGivenTwice(t *testing.T) {
	deletions := map[string]func(t *testing.T, f *fixture){
		"upkeep of quiet days": func(t *testing.T, f *fixture) {
			f.clock.Advance(72 * time.Hour)
			for _, c := range f.tables().Chores() {
				if _, err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		},
		"erasure": func(t *testing.T, f *fixture) {
			p := core.Person{User: 7, Identities: []core.Identity{{Platform: "p", ID: "ann", Bots: []string{"bot"}}}, Chats: []core.Address{{Bot: "bot", Chat: "a"}}}
			if _, err := f.tables().Sweep(t.Context(), p, func(*store.Tx, []string) error { return nil }); err != nil {
				t.Fatal(err)
			}
		},
		"by hand": func(t *testing.T, f *fixture) {
			if err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
				if _, err := tx.Exec(t.Context(), `DELETE FROM inbox WHERE seq > 0`); err != nil {
					return err
				}
				_, err := tx.Exec(t.Context(), `DELETE FROM outbox WHERE seq > 0`)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, remove := range deletions {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			// number returns the numbers of a message and of its reply.
			number := func(n int) (in, out int64) {
				numbers := make(chan int64, 1)
				f.q = f.newQueue(nil)
				f.serve(func(_ context.Context, turn *queue.Turn) { numbers <- turn.Seq(); _ = answer(f.q, turn) })
				f.put(msg(n, "a", "ann", "hello"))
				in, out = <-numbers, (<-f.plat.seen).Seq
				f.stop()
				return in, out
			}
			in, out := number(1)
			remove(t, f)
			if in2, out2 := number(2); in2 <= in || out2 <= out {
				t.Errorf("message %d after %d, reply %d after %d", in2, in, out2, out)
			}
		})
	}
}

// The chats have seen numbers that a backup does not know.
func TestARestoredDatabaseGivesNoNumberThatWasGivenSinceTheBackup(t *testing.T) {
	for _, before := range []int{0, 1} {
		f := newFixture(t, nil)
		for n := range before {
			f.put(msg(n, "a", "ann", "before"))
		}
		if err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
			return maintenance.SkipNumbers(t.Context(), tx, store.OnServer(f.db.Path()))
		}); err != nil {
			t.Fatal(err)
		}
		f.put(msg(9, "a", "ann", "after"))
		var in, out int64
		if err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
			if err := f.out.Post(t.Context(), tx, core.Reply{Address: core.Address{Bot: "bot", Chat: "a"}, Key: "k", Parts: []core.Part{{Text: "hello"}}}); err != nil {
				return err
			}
			if err := tx.Get(t.Context(), &in, `SELECT max(seq) FROM inbox`); err != nil {
				return err
			}
			return tx.Get(t.Context(), &out, `SELECT max(seq) FROM outbox`)
		}); err != nil {
			t.Fatal(err)
		}
		if in < 100_000 || out < 100_000 {
			t.Errorf("the next message is %d, the next reply %d", in, out)
		}
	}
}
