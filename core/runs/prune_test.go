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

// What a run said is deleted an hour after its end, how it ended two days after, the run 90 days
// after.
func TestPrune_KeepsTheEndOfARunForTwoDays(t *testing.T) {
	ctx := t.Context()
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	events := runs.New(db, clock)
	const many = 450 // more than two transactions change
	err := db.Tx(ctx, func(tx *store.Tx) error {
		for i := range many {
			run, attempt := fmt.Sprintf("r%03d", i), 1+i%2
			if _, err := runs.Begin(ctx, tx, runs.Start{ID: run, Session: "s"}); err != nil {
				return err
			}
			if attempt == 2 {
				if _, err := runs.Begin(ctx, tx, runs.Start{ID: run, Session: "s"}); err != nil {
					return err
				}
				if err := events.Append(ctx, tx, run, 1, []runs.Piece{{N: 1, Data: []byte(`{"type":"text"}`)}}); err != nil {
					return err
				}
			}
			for first, kinds := range map[int][]string{1: {"session", "text", "text"}, 4: {"text", "done", "message_stop"}} {
				var pieces []runs.Piece
				for j, kind := range kinds {
					pieces = append(pieces, runs.Piece{N: first + j, Data: []byte(`{"type":"` + kind + `"}`)})
				}
				if err := events.Append(ctx, tx, run, attempt, pieces); err != nil {
					return err
				}
			}
			if err := runs.Finish(ctx, tx, run, runs.End{State: "done", At: clock.Now()}); err != nil {
				return err
			}
		}
		_, err := runs.Begin(ctx, tx, runs.Start{ID: "runs", Session: "s"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	check := func(after time.Duration, stored, gone int, want string) {
		t.Helper()
		clock.Advance(after)
		for _, s := range []*runs.Store{events, runs.New(db, clock)} { // as well after a restart
			if _, err := s.Prune(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for i := range many {
			run, attempt := fmt.Sprintf("r%03d", i), 1+i%2
			s, g, err := events.Latest(ctx, run)
			pieces, failed := events.Load(ctx, run, attempt, 0)
			var got []string
			for _, p := range pieces {
				got = append(got, fmt.Sprint(p.N, " ", core.EncodedType(p.Data)))
			}
			if err != nil || failed != nil || s != stored*attempt || g != gone*attempt || strings.Join(got, ", ") != want {
				t.Fatalf("%s: attempt %d stored, %d gone, %v %v: %v", run, s, g, err, failed, got)
			}
		}
		if s, g, err := events.Latest(ctx, "runs"); s != 0 || g != 0 || err != nil {
			t.Errorf("a run in progress: %d stored, %d gone, %v", s, g, err)
		}
	}
	check(0, 1, 0, "1 session, 2 text, 3 text, 4 text, 5 done, 6 message_stop")
	check(time.Hour+time.Second, 1, 0, "5 done, 6 message_stop")
	check(48*time.Hour-2*time.Second-time.Hour, 1, 0, "5 done, 6 message_stop")
	check(2*time.Second, 0, 1, "")
	check(90*24*time.Hour, 0, 0, "")
}
