package queue_test

import (
	"context"
	"testing"
	"time"

	"gatehouse/core/queue"
	"gatehouse/core/store"
)

// The wall clock may leap past every lease while a turn runs, and the
// monotonic one that times their renewal may not notice (a laptop's suspend, a
// correction of the time). This process keeps the turns that it runs: a second,
// concurrent attempt would write the same transcript.
func TestALapsedLeaseOfOurOwnIsNotTakenFromARunningTurn(t *testing.T) {
	f := newFixture(t, nil)
	began, release := make(chan *queue.Turn, 10), make(chan struct{})
	f.serve(func(_ context.Context, turn *queue.Turn) {
		began <- turn
		<-release
		if err := answer(f.q, turn); err != nil {
			t.Errorf("attempt %d: %v", turn.Attempt, err)
		}
	})
	f.put(msg(1, "a", "ann", "one"))
	<-began
	err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE lane SET lease_until = '2000-01-01T00:00:00.000000Z' WHERE owner <> ''`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // rounds of the queue's own look, too few for a renewal
		select {
		case <-f.clock.Waiting(1):
		case <-time.After(5 * time.Minute):
			t.Fatal("the queue does not look")
		}
		f.clock.Advance(time.Second)
	}
	f.put(msg(2, "b", "bob", "two")) // its claim comes after any that those rounds made
	if second := <-began; second.First().Text != "two" {
		t.Errorf("attempt %d of %q began while attempt 1 was under way", second.Attempt, second.First().Text)
	}
	close(release)
	for range 2 {
		f.reply()
	}
	select {
	case again := <-began:
		t.Errorf("attempt %d of %q began", again.Attempt, again.First().Text)
	default:
	}
}
