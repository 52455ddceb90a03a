package runs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// Failed runs are few among all: they are read from an index of their own.
func TestSessionsThatFailedLastAreFoundWithoutReadingAllRuns(t *testing.T) {
	db := storetest.Open(t, coretest.NewClock(time.Time{}))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(db.Tx(t.Context(), func(tx *store.Tx) error {
		for i, r := range []struct{ session, state string }{{"a", "error"}, {"b", "error"}, {"b", "done"}, {"c", "done"}, {"c", "error"}, {"", "error"}} {
			at := core.Stamp(time.Unix(int64(i), 0))
			if _, err := tx.Exec(t.Context(), `INSERT INTO runs (id, session_id, attempt, state, started, ended) VALUES ($1, $2, 1, $3, $4, $4)`, fmt.Sprint(i), r.session, r.state, at); err != nil {
				return err
			}
		}
		return nil
	}))
	s := New(db, nil)
	for limit, want := range map[int][]string{10: {"c", "a"}, 1: {"c"}} {
		if got, err := s.LastFailed(t.Context(), limit); err != nil || !slices.Equal(got, want) {
			t.Errorf("at most %d: %q, %v, want %q", limit, got, err, want)
		}
	}
	storetest.SQLiteOnly(t, "its plans")
	var used []string
	for _, step := range storetest.Plan(t, db, lastFailed, lately, 10) {
		used = append(used, step.Detail)
	}
	if all := strings.Join(used, "; "); !strings.Contains(all, "runs USING INDEX runs_failed") || !strings.Contains(all, "INDEX runs_session (session_id=? AND started>?)") {
		t.Errorf("the plan is %s", all)
	}
}
