package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/store"
)

// pruneLanes has upkeep delete idle lanes, and returns how many it deleted.
func (f *fixture) pruneLanes() int {
	f.t.Helper()
	for _, c := range f.tables().Chores() {
		if c.Name == "lanes" {
			n, err := c.Run(f.t.Context())
			if err != nil {
				f.t.Fatal(err)
			}
			return n
		}
	}
	f.t.Fatal("there is no such upkeep")
	return 0
}

func (f *fixture) lanes() string {
	f.t.Helper()
	var keys []string
	if err := f.db.Select(f.t.Context(), &keys, `SELECT key FROM lane ORDER BY key`); err != nil {
		f.t.Fatal(err)
	}
	return strings.Join(keys, " ")
}

func (f *fixture) execute(query string, args ...any) {
	f.t.Helper()
	if err := f.db.Tx(f.t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(f.t.Context(), query, args...); return err }); err != nil {
		f.t.Fatal(err)
	}
}

// released waits until no turn runs.
func (f *fixture) released() {
	f.t.Helper()
	f.until("the lanes are released", func() bool { return f.q.Running() == 0 })
}

func TestALaneIsDeletedAfterADayWithoutMessages(t *testing.T) {
	f := newFixture(t, nil)
	f.serve(func(_ context.Context, turn *queue.Turn) {
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
	f.put(msg(1, "a", "ann", "one"))
	f.reply()
	f.released()
	f.clock.Advance(23 * time.Hour)
	if n := f.pruneLanes(); n != 0 {
		t.Errorf("%d lanes were deleted after 23 hours", n)
	}
	f.put(msg(2, "b", "bob", "two"))
	f.reply()
	f.released()
	f.clock.Advance(2 * time.Hour)
	if n := f.pruneLanes(); n != 1 || f.lanes() != "bot|b" {
		t.Errorf("%d lanes were deleted, left: %s", n, f.lanes())
	}
	f.put(msg(3, "a", "ann", "three"))
	if got := f.reply(); got != "re: three" {
		t.Errorf("after its lane was deleted: %q", got)
	}
}

func TestALaneWithWorkOrAPreviewIsNotDeleted(t *testing.T) {
	f := newFixture(t, nil)
	begun, end := f.serveHeld()
	f.put(msg(1, "runs", "ann", "one"))
	<-begun
	f.execute(`INSERT INTO lane (key, preview, not_before) VALUES ('bot|preview', '7', $1)`, core.Stamp(f.clock.Now()))
	f.execute(`INSERT INTO lane (key, pending, not_before) VALUES ('bot|waits', 1, $1)`, core.Stamp(f.clock.Now().Add(100*time.Hour)))
	f.clock.Advance(48 * time.Hour)
	if n := f.pruneLanes(); n != 0 || f.lanes() != "bot|preview bot|runs bot|waits" {
		t.Errorf("%d lanes were deleted, left: %s", n, f.lanes())
	}
	close(end)
	f.reply()
}

func TestManyIdleLanesAreDeletedInSteps(t *testing.T) {
	f := newFixture(t, nil)
	was := core.Stamp(f.clock.Now())
	if err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		for i := range 2500 {
			if _, err := tx.Exec(t.Context(), `INSERT INTO lane (key, not_before) VALUES ($1, $2)`, fmt.Sprintf("session:%04d", i), was); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(25 * time.Hour)
	f.execute(`UPDATE lane SET not_before = $1 WHERE key = 'session:1234'`, core.Stamp(f.clock.Now()))
	commits := f.db.Commits()
	if n := f.pruneLanes(); n != 2499 || f.lanes() != "session:1234" {
		t.Errorf("%d lanes were deleted, left: %.100s", n, f.lanes())
	}
	if n := f.db.Commits() - commits; n != 3 {
		t.Errorf("%d commits, want one for each 1,000 lanes", n)
	}
	if n := f.pruneLanes(); n != 0 || f.db.Commits()-commits != 3 {
		t.Errorf("without idle lanes: %d deleted, %d commits", n, f.db.Commits()-commits-3)
	}
}

// A process that was suspended in the middle of an answer goes on after its lane was
// taken over, emptied, deleted and created again: its result is dropped as before.
func TestAResultFromBeforeItsLaneWasDeletedIsDropped(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Node, o.Slots = "node", 1 }) // suspended, it claims nothing else
	suspended, goOn, late := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f.serve(func(_ context.Context, turn *queue.Turn) {
		close(suspended)
		<-goOn
		late <- answer(f.q, turn)
	})
	f.put(msg(1, "a", "ann", "one"))
	<-suspended
	next := f.newQueue(func(o *options) { o.Node = "node" })
	begun, end := make(chan struct{}, 2), make(chan struct{}, 2)
	stop := f.serveQueue(next, func(_ context.Context, turn *queue.Turn) {
		begun <- struct{}{}
		<-end
		if err := answer(next, turn); err != nil {
			t.Error(err)
		}
	})
	<-begun
	end <- struct{}{}
	f.reply()
	f.until("the lane is released", func() bool { return next.Running() == 0 })
	f.clock.Advance(25 * time.Hour)
	if n := f.pruneLanes(); n != 1 {
		t.Fatalf("%d lanes were deleted", n)
	}
	if err := next.Put(t.Context(), []core.Inbound{msg(2, "a", "ann", "two")}, nil); err != nil {
		t.Fatal(err)
	}
	<-begun
	close(goOn)
	if err := <-late; !errors.Is(err, queue.ErrFenced) {
		t.Errorf("the late result: %v", err)
	}
	end <- struct{}{}
	if got := f.reply(); got != "re: two" {
		t.Errorf("then %q", got)
	}
	stop()
}
