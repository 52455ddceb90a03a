package store_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

// auditWorld is a log of n events, a second apart: who, what and to what follow
// from the number.
func auditWorld(t *testing.T, n int) (*store.DB, *coretest.Clock) {
	t.Helper()
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	for i := range n {
		if err := db.Tx(context.Background(), func(tx *store.Tx) error {
			by := core.Actor{User: int64(i % 3), Via: []string{"api", "panel", "chat", "cli", "upkeep"}[i%5]}
			return store.Audit(context.Background(), tx, by, []string{"bot.stop", "bot.start", "key.create", "key.revoke"}[i%4], fmt.Sprint("s", i%7), map[string]any{"n": i})
		}); err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Second)
	}
	return db, clock
}

// TestTheAuditLogPagesThroughEverythingOnceUnderAnyFilter holds each filter
// against the same choice made by hand, however small the pages are.
func TestTheAuditLogPagesThroughEverythingOnceUnderAnyFilter(t *testing.T) {
	ctx := context.Background()
	db, clock := auditWorld(t, 120)
	whole, next, err := store.AuditLog(ctx, db, store.AuditFilter{Limit: 500})
	if err != nil || next != "" || len(whole) != 120 {
		t.Fatal(len(whole), next, err)
	}
	one, half := int64(1), clock.Now().Add(-60*time.Second)
	for name, c := range map[string]struct {
		f    store.AuditFilter
		want func(store.AuditEvent) bool
	}{
		"all":        {store.AuditFilter{}, func(store.AuditEvent) bool { return true }},
		"user":       {store.AuditFilter{User: &one}, func(e store.AuditEvent) bool { return e.User == 1 }},
		"action":     {store.AuditFilter{Action: "key.create"}, func(e store.AuditEvent) bool { return e.Action == "key.create" }},
		"actions":    {store.AuditFilter{Action: "key.*"}, func(e store.AuditEvent) bool { return strings.HasPrefix(e.Action, "key.") }},
		"any action": {store.AuditFilter{Action: "*"}, func(store.AuditEvent) bool { return true }},
		"subject":    {store.AuditFilter{Subject: "s3"}, func(e store.AuditEvent) bool { return e.Subject == "s3" }},
		"via":        {store.AuditFilter{Via: "panel"}, func(e store.AuditEvent) bool { return e.Via == "panel" }},
		"since":      {store.AuditFilter{Since: half}, func(e store.AuditEvent) bool { return !e.At.Before(half) }},
		"until":      {store.AuditFilter{Until: half}, func(e store.AuditEvent) bool { return e.At.Before(half) }},
		"all at once": {store.AuditFilter{User: &one, Action: "bot.*", Via: "api", Since: half, Until: clock.Now()}, func(e store.AuditEvent) bool {
			return e.User == 1 && strings.HasPrefix(e.Action, "bot.") && e.Via == "api" && !e.At.Before(half)
		}},
		"user and what": {store.AuditFilter{User: &one, Action: "key.revoke", Subject: "s0"}, func(e store.AuditEvent) bool { return e.User == 1 && e.Action == "key.revoke" && e.Subject == "s0" }},
		"nothing":       {store.AuditFilter{Subject: "nobody"}, func(store.AuditEvent) bool { return false }},
	} {
		var want, got []int64
		for _, e := range whole {
			if c.want(e) {
				want = append(want, e.ID)
			}
		}
		c.f.Limit = 7
		for range 100 {
			page, next, err := store.AuditLog(ctx, db, c.f)
			if err != nil {
				t.Fatal(name, err)
			}
			for _, e := range page {
				got = append(got, e.ID)
			}
			if c.f.Cursor = next; next == "" {
				break
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for _, bad := range []string{"x", "!!", "bm90aGluZw", strings.Repeat("A", 600)} {
		if _, _, err := store.AuditLog(ctx, db, store.AuditFilter{Cursor: bad}); core.KindOf(err) != core.Invalid {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
	if string(whole[0].Detail) != `{"n":119}` || whole[0].Via != "upkeep" {
		t.Errorf("%+v", whole[0])
	}
}

// TestAPageOfTheAuditLogLooksAtABoundedPartOfIt: what is rare is found over
// several pages, each of which stops after so many rows and says where to go on.
func TestAPageOfTheAuditLogLooksAtABoundedPartOfIt(t *testing.T) {
	ctx := context.Background()
	db, _ := auditWorld(t, 1)
	const many = 2*store.AuditScan + 10
	if err := db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO audit_events (at, user_id, via, action, subject)
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
			SELECT $2, 9, 'panel', 'common', 's' FROM n`, many, core.Stamp(tx.Time()))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	f, pages, found := store.AuditFilter{Via: "api"}, 0, 0
	for {
		page, next, err := store.AuditLog(ctx, db, f)
		if err != nil {
			t.Fatal(err)
		}
		pages, found = pages+1, found+len(page)
		if f.Cursor = next; next == "" {
			break
		}
	}
	if pages != 3 || found != 1 {
		t.Errorf("%d pages, %d found; the one rare event lies behind two bounds", pages, found)
	}
}

// TestTheAuditLogIsReadByAnIndexInOrder: no filter has the engine sort the log
// or walk all of it.
func TestTheAuditLogIsReadByAnIndexInOrder(t *testing.T) {
	storetest.SQLiteOnly(t, "its plans")
	db, clock := auditWorld(t, 1)
	one := int64(1)
	for index, f := range map[string]store.AuditFilter{
		"audit_at": {Via: "api", Since: clock.Now()}, "audit_user ": {User: &one, Action: "a*", Until: clock.Now()},
		"audit_user_action (user_id=? AND action=?": {User: &one, Action: "a", Until: clock.Now()},
		"audit_action": {Action: "a"}, "audit_subject": {Subject: "s", User: &one, Action: "a"},
	} {
		for _, cursor := range []string{"", "YSAyMDI2LTAxLTAxVDAwOjAwOjAwLjAwMDAwMFogNw"} {
			f.Cursor = cursor
			text, args, err := store.AuditText(f)
			if err != nil {
				t.Fatal(err)
			}
			plan := storetest.Plan(t, db, text, args...)
			if got := fmt.Sprint(plan); !strings.Contains(got, index) || strings.Contains(got, "TEMP B-TREE") {
				t.Errorf("%+v: %s", f, got)
			}
		}
	}
}

// A cursor of one list is none of another's.
func TestACursorOfAnotherListIsNoneOfTheLogs(t *testing.T) {
	db := storetest.Open(t, core.System{})
	list := base64.RawURLEncoding.EncodeToString([]byte("2026-01-02T03:04:05.000000Z 7")) // as lists of sessions make them
	if _, _, err := store.AuditLog(t.Context(), db, store.AuditFilter{Cursor: list}); core.KindOf(err) != core.Invalid {
		t.Errorf("a list's: %v", err)
	}
	for range 2 {
		if err := db.Tx(t.Context(), func(tx *store.Tx) error { return store.Audit(t.Context(), tx, core.Actor{}, "x", "", nil) }); err != nil {
			t.Fatal(err)
		}
	}
	_, next, err := store.AuditLog(t.Context(), db, store.AuditFilter{Limit: 1})
	if err != nil || next == "" {
		t.Fatal(next, err)
	}
	if page, _, err := store.AuditLog(t.Context(), db, store.AuditFilter{Cursor: next}); err != nil || len(page) != 1 {
		t.Errorf("its own: %v %v", page, err)
	}
	v, err := vault.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	s := session.New(session.Options{DB: db, Vault: v})
	defer s.Close()
	if _, _, err := s.List(t.Context(), session.Filter{All: true, Cursor: next}); core.KindOf(err) != core.Invalid {
		t.Errorf("the log's in a list of sessions: %v", err)
	}
}
