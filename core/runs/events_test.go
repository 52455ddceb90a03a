package runs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/runs"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// A run whose message was given up ends: clients get an end, and its events
// are pruned like any other's.
func TestAbandon_EndsTheRunOnce(t *testing.T) {
	ctx := t.Context()
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	events := runs.New(db, clock)
	for try := range 2 { // told twice, it ends once
		err := db.Tx(ctx, func(tx *store.Tx) error {
			if _, err := tx.Exec(ctx, `INSERT INTO runs (id, session_id, attempt, state, started) VALUES ('r', 's', 2, 'running', '') ON CONFLICT DO NOTHING`); err != nil {
				return err
			}
			text, err := core.EncodeEvent(core.TextDelta{Content: "half"})
			if err != nil {
				return err
			}
			if err := events.Append(ctx, tx, "r", 2, []runs.Piece{{N: 1, Data: text}}); err != nil {
				return err
			}
			if _, ok, err := events.Abandon(ctx, tx, "unknown"); ok || err != nil {
				return fmt.Errorf("a run that nobody knows ended: %v, %w", ok, err)
			}
			_, ok, err := events.Abandon(ctx, tx, "r")
			if ok != (try == 0) {
				t.Errorf("told for the %d. time it ended: %v", try+1, ok)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	row, err := events.ByRun(ctx, "r")
	if err != nil || row.State != "error" || row.Attempt != 3 {
		t.Errorf("%+v %v", row, err)
	}
	latest, _, err := events.Latest(ctx, "r")
	if err != nil || latest != row.Attempt {
		t.Errorf("its newest events are of attempt %d, %v", latest, err)
	}
	pieces, err := events.Load(ctx, "r", latest, 0)
	var types []string
	for _, p := range pieces {
		types = append(types, core.EncodedType(p.Data))
	}
	if err != nil || strings.Join(types, " ") != "error message_stop" {
		t.Errorf("events %v %v", types, err)
	}
	clock.Advance(2 * time.Hour)
	if n, err := events.Prune(ctx); err != nil || n == 0 {
		t.Errorf("%d rows pruned, %v", n, err)
	}
}
