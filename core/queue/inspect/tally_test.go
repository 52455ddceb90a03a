package inspect

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestWhatCameInIsTalliedOnceHoweverFarItHasCome(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	r := New(db, Options{Clock: clock})
	ctx, at := t.Context(), clock.Now()
	err := db.Tx(ctx, func(tx *store.Tx) error {
		for i, state := range []string{"ready", "limited", "held", "done", "refused", "dead", "done", "done", "done"} {
			bot, kind, when := "a", "message", at
			switch i {
			case 6:
				bot, kind = "b", "command"
			case 7:
				kind = "callback" // a button is no message
			case 8:
				when = at.Add(5 * time.Minute) // of the next step
			}
			if _, err := tx.Exec(ctx, `INSERT INTO inbox (bot, update_id, chat, lane, kind, state, received_at) VALUES ($1, $2, 'c', 'l', $3, $4, $5)`, bot, fmt.Sprint(i), kind, state, core.Stamp(when)); err != nil {
				return err
			}
		}
		for i, state := range []string{"sent", "failed", "unknown"} {
			if _, err := tx.Exec(ctx, `INSERT INTO outbox (bot, chat, key, ordinal, body, state, created_at) VALUES ('a', 'c', $1, 0, '{}', $2, $3)`, fmt.Sprint(i), state, core.Stamp(at)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Tally(ctx, db, at, at.Add(5*time.Minute))
	if want := map[string]int64{"received|a": 6, "dead|a": 1, "received|b": 1, "unsent|a": 2}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
