package runs_test

import (
	"testing"
	"time"

	"gatehouse/core/coretest"
	"gatehouse/core/runs"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestAQuantileLiesInItsClass(t *testing.T) {
	counts := make([]int64, len(runs.TookBounds)+1)
	if q := runs.Quantile(counts, 0.5); q != 0 {
		t.Errorf("of nothing: %v", q)
	}
	counts[2], counts[5] = 90, 10 // 0.5 to 1 s, 4 to 8 s
	if q := runs.Quantile(counts, 0.5); q < 500*time.Millisecond || q > time.Second {
		t.Errorf("the median is %v", q)
	}
	if q := runs.Quantile(counts, 0.95); q < 4*time.Second || q > 8*time.Second {
		t.Errorf("p95 is %v", q)
	}
	counts[len(counts)-1] = 1000
	if q := runs.Quantile(counts, 0.99); q != 5*time.Minute {
		t.Errorf("above the last bound: %v", q)
	}
}

func TestAnAnswersTimeIsCountedWithoutThatForPeople(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	begun := clock.Now()
	err := db.Tx(t.Context(), func(tx *store.Tx) error {
		for id, waited := range map[string]time.Duration{"quick": 0, "asked": 10 * time.Minute} {
			if _, err := runs.Begin(t.Context(), tx, runs.Start{ID: id, Session: "s", Bot: "b", Chat: "c", User: 2}); err != nil {
				return err
			}
			if err := runs.Finish(t.Context(), tx, id, runs.End{State: "done", Model: "m", At: begun.Add(waited + 3*time.Second), Waited: waited}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := runs.New(db, clock).Tally(t.Context(), db, begun, begun.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for series, want := range map[string]int64{"took|4": 2, "model_ms|m": 6000, "model_done|m": 2, "waited_ms|m": 600_000, "waited_runs|m": 1} {
		if got[series] != want {
			t.Errorf("%s is %d, want %d, in %v", series, got[series], want, got)
		}
	}
}
