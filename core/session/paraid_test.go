package session_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"gatehouse/core/paraid"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// numbering returns a store of sessions with a registry of para-IDs, and that.
func (h *house) numbering() (*session.Store, *paraid.Registry) {
	ids := paraid.New(h.db, h.vault, slog.New(slog.DiscardHandler))
	s := session.New(session.Options{DB: h.db, Vault: h.vault, Clock: h.clock, ParaID: ids.ForChat})
	h.t.Cleanup(func() { _ = s.Close() })
	return s, ids
}

func TestEverySessionGetsAParaIDFromUpkeepThatStays(t *testing.T) {
	t.Parallel()
	h := open(t)
	s, ids := h.numbering()
	number := func() int {
		n, err := s.Number(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var sessions []string
	for i := range 3 {
		sessions = append(sessions, h.resolve(chat(7, fmt.Sprint(i))).ID)
	}
	if n := number(); n != 3 {
		t.Errorf("%d sessions numbered, want 3", n)
	}
	seen := map[string]bool{}
	for _, id := range sessions {
		sess, err := s.ByID(t.Context(), h.db, id)
		if err != nil || !paraid.Valid(sess.ParaID) || seen[sess.ParaID] {
			t.Fatalf("%q, %v", sess.ParaID, err)
		}
		seen[sess.ParaID] = true
		if e, err := ids.Find(t.Context(), h.db, sess.ParaID); err != nil || e.Type != paraid.Chat || e.Path != id || e.User != 7 {
			t.Errorf("%+v, %v", e, err)
		}
	}
	if n := number(); n != 0 {
		t.Errorf("%d sessions numbered again", n)
	}
}

// A program without a key is no user.
func TestAConversationOfAProgramWithoutAKeyKeepsNoOtherFromItsParaID(t *testing.T) {
	t.Parallel()
	h := open(t)
	s, _ := h.numbering()
	keyless := h.resolve(chat(-1, "local"))
	other := h.resolve(chat(7, "other"))
	if n, err := s.Number(t.Context()); n != 2 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	for _, id := range []string{keyless.ID, other.ID} {
		if sess, err := s.ByID(t.Context(), h.db, id); err != nil || !paraid.Valid(sess.ParaID) {
			t.Errorf("%q, %v", sess.ParaID, err)
		}
	}
}

func TestARestoredSessionHasTheParaIDThatItHad(t *testing.T) {
	t.Parallel()
	h := open(t)
	s, _ := h.numbering()
	id := h.resolve(chat(7, "1")).ID
	if _, err := s.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	was, err := s.ByID(t.Context(), h.db, id)
	if err != nil {
		t.Fatal(err)
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM sessions WHERE id = $1`, id); err != nil {
			return err
		}
		return s.Restore(ctx, tx, was, nil, true)
	})
	if _, err := s.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now, err := s.ByID(t.Context(), h.db, id); err != nil || now.ParaID != was.ParaID || now.ParaID == "" {
		t.Errorf("%q, was %q, %v", now.ParaID, was.ParaID, err)
	}
}

func TestAMessageCostsNoCommitForItsParaID(t *testing.T) {
	t.Parallel()
	h := open(t)
	s, _ := h.numbering()
	before := h.db.Commits()
	if r := h.resolve(chat(7, "1")); r.err != nil {
		t.Fatal(r.err)
	}
	if n := h.db.Commits() - before; n != 1 {
		t.Errorf("%d commits, want 1", n)
	}
	synced := h.db.Synced()
	if _, err := s.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := h.db.Synced() - synced; n != 0 && !storetest.Postgres() { // where each commit is on the disk
		t.Errorf("numbering waited for the disk %d times", n)
	}
}
