package session_test

import (
	"context"
	"slices"
	"testing"

	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// contexts returns what a session is about, asked times in one transaction, and how many
// statements that took beside those of the transaction.
func (h *house) contexts(id string, times int) (paths []string, statements int64) {
	h.t.Helper()
	h.tx(func(ctx context.Context, tx *store.Tx) (err error) {
		before := h.db.Statements()
		for range times {
			if paths, err = h.Contexts(ctx, tx, id); err != nil {
				return err
			}
		}
		statements = h.db.Statements() - before
		return nil
	})
	return paths, statements
}

// Each turn asks what its session is about, which hardly any is.
func TestContexts_OfASessionWithoutAnyTakeOneStatementForManyTurns(t *testing.T) {
	storetest.SQLiteOnly(t, "nothing is recalled on a server")
	h := open(t)
	id := h.resolve(chat(5, "c1")).ID
	if paths, n := h.contexts(id, 10); len(paths) != 0 || n != 1 {
		t.Errorf("%q after %d statements", paths, n)
	}
	h.contexts(id, 1) // the first transaction after what was recalled first forgets it
	if paths, n := h.contexts(id, 10); len(paths) != 0 || n != 0 {
		t.Errorf("%q after %d more statements", paths, n)
	}
}

func TestContexts_AreThoseThatWereSetLast(t *testing.T) {
	h := open(t)
	id := h.resolve(chat(5, "c1")).ID
	for _, step := range []struct {
		c    session.Change
		want []string
	}{
		{session.Change{}, nil},
		{session.Change{AddContexts: []string{"Notes", "A"}}, []string{"Notes", "A"}},
		{session.Change{DropContext: []string{"Notes"}}, []string{"A"}},
		{session.Change{DropContext: []string{"A"}}, nil},
		{session.Change{AddContexts: []string{"B"}}, []string{"B"}},
	} {
		if _, err := h.update(id, step.c); err != nil {
			t.Fatal(err)
		}
		if got, _ := h.contexts(id, 2); !slices.Equal(got, step.want) {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
}
