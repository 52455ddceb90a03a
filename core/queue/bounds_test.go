package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/store"
)

func TestATurnCollectsAtMostTenMessagesAnd100KiB(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		want []int
	}{"ten": {1, []int{10, 2}}, "100 KiB": {40 << 10, []int{2, 2, 2, 2, 2, 2}}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(o *options) { o.Collect = true })
			var page []core.Inbound
			for n := range 12 {
				page = append(page, msg(n, "a", "ann", strings.Repeat("x", c.size)))
			}
			f.put(page...)
			turns := make(chan int, 12)
			f.serve(func(_ context.Context, turn *queue.Turn) { turns <- len(turn.Rows); _ = answer(f.q, turn) })
			for i, want := range c.want {
				if got := <-turns; got != want {
					t.Errorf("turn %d has %d messages, want %d", i, got, want)
				}
			}
		})
	}
}

// A platform may name any wait, and a failure may last.
func TestWaitsOfSendsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		d    core.Delivery
		want time.Duration
	}{
		"never left, many times": {core.Delivery{Outcome: core.NotSent}, time.Minute},
		"told to wait for days":  {core.Delivery{Outcome: core.RetryAfter, After: 72 * time.Hour}, 23 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.plat.answers = []core.Delivery{c.d}
			if err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
				if err := f.out.Post(t.Context(), tx, core.Reply{Address: core.Address{Bot: "bot", Chat: "a"}, Key: "k", Parts: []core.Part{{Text: "t"}}}); err != nil {
					return err
				}
				_, err := tx.Exec(t.Context(), `UPDATE outbox SET attempts = 30`)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			f.serve(nil)
			<-f.plat.seen
			f.stop()
			var until string
			if err := f.db.Get(t.Context(), &until, `SELECT not_before FROM outbox`); err != nil {
				t.Fatal(err)
			}
			if at, err := core.ParseStamp(until); err != nil || at.Sub(f.clock.Now()) != c.want {
				t.Errorf("it waits for %v, %v, want %v", at.Sub(f.clock.Now()), err, c.want)
			}
		})
	}
}
