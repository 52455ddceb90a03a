package main

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/store/storetest"
)

// A code is valid for an hour and its request for 14 days: what the lists show approves the
// whole time.
func TestPairingListsAReferenceThatApproves(t *testing.T) {
	t.Parallel()
	t.Run("chat", func(t *testing.T) {
		t.Parallel()
		sim := telegramtest.New(telegramtest.Options{FloodOff: true})
		t.Cleanup(func() { _ = sim.Close() })
		clock := &leaps{}
		w := newWorldAt(t, sim, t.TempDir(), clock, nil)
		boss, ann := w.boss(), sim.NewUser("Ann")
		ann.Send("hello")
		w.hearsText(ann, "Your code is")
		code := requestOn(w, "telegram", fmt.Sprint(ann.ID())).Code
		pairing := func() string { // the list, not the notice of the request
			after := boss.Send("/pairing").ID
			return w.hears(boss.DM(), func(m telegramtest.Message) bool {
				return m.ID > after && strings.HasPrefix(m.Text, "Pending requests")
			}).Text
		}
		w.hearsText(boss, "Ann") // of the request
		if got := pairing(); !strings.Contains(got, "code "+code) {
			t.Errorf("while the code is valid: %q", got)
		}
		clock.leap(2 * time.Hour)
		list := pairing()
		ref := regexp.MustCompile(`Ann, id \d+ on telegram, .*/approve ([a-z0-9]{16})`).FindStringSubmatch(list)
		if ref == nil || strings.Contains(list, code) {
			t.Fatalf("after two hours: %q", list)
		}
		if got := w.replies(boss, "/approve "+code).Text; !strings.Contains(got, "has expired") || !strings.Contains(got, "/pairing") {
			t.Errorf("the old code: %q", got)
		}
		if got := w.replies(boss, "/approve "+ref[1]).Text; !strings.Contains(got, "Approved Ann") {
			t.Errorf("what the list shows: %q", got)
		}
	})
	t.Run("command line", func(t *testing.T) {
		t.Parallel()
		storetest.SQLiteOnly(t, "its file is opened here")
		sim := newSim(t)
		h := newHome(t, sim)
		h.serve(nil)
		ann := sim.NewUser("Ann")
		ann.Send("hello")
		code := regexp.MustCompile(`[A-Z0-9]{8}`).FindString(hear(t, sim, ann.DM(), 0, "Your code is").Text)
		if _, out, errs := h.run("pairing", "list"); !strings.Contains(out, code) {
			t.Errorf("while the code is valid:\n%s%s", out, errs)
		}
		db, err := sql.Open("sqlite3", filepath.Join(h.vault(), "Chat", "sessions.db")+"?_busy_timeout=60000")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(`UPDATE pairing_requests SET code_expires_at = '2026-01-01T00:00:00Z'`); err != nil {
			t.Fatal(err)
		}
		_, out, _ := h.run("pairing", "list")
		ref := regexp.MustCompile(`(?m)^([a-z0-9]{16}) +pending +Ann `).FindStringSubmatch(out)
		if ref == nil || strings.Contains(out, code) {
			t.Fatalf("after its hour:\n%s", out)
		}
		if status, _, errs := h.run("pairing", "approve", code); status == 0 || !strings.Contains(errs, "'gatehouse pairing list") {
			t.Errorf("the old code: %d %s", status, errs)
		}
		if status, out, errs := h.run("pairing", "approve", ref[1]); status != 0 || !strings.Contains(out, "Approved Ann") {
			t.Errorf("what the list shows: %d %s%s", status, out, errs)
		}
	})
}
