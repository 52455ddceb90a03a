package store_test

import (
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/snapshot"
	"gatehouse/core/store/storetest"
)

func TestWhoeverComesSecondReadsWhoWasFirst(t *testing.T) {
	db := storetest.Open(t, coretest.NewClock(time.Date(2026, 5, 1, 15, 4, 5, 0, time.UTC)))
	note := func(by core.Actor, action string, row any) {
		t.Helper()
		err := db.Tx(t.Context(), func(tx *store.Tx) error {
			return store.Audit(t.Context(), tx, by, action, "", map[string]any{"row": row})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	note(core.Actor{User: 1, Via: "panel"}, "queue.retry", 12)
	note(core.Actor{User: 7, Via: "api"}, "queue.dismiss", 12) // later: it failed once more
	note(core.Actor{Via: "upkeep"}, "queue.dismiss", 123)
	note(core.Actor{User: 1, Via: "panel"}, "queue.settle", 5)
	done := map[string]string{"queue.retry": "tried again", "queue.dismiss": "dismissed"}
	for row, want := range map[int64]string{12: "already dismissed by user 7 via api (15:04 UTC)", 123: "already dismissed by the gateway via upkeep (15:04 UTC)", 1: "", 5: ""} {
		err := store.Already(t.Context(), db, "row", row, done)
		if want == "" && err != nil || want != "" && (core.KindOf(err) != core.Conflict || err.Error() != want) {
			t.Errorf("row %d: %v, want %q", row, err, want)
		}
	}
}

// A file is looked into as it lies there, whatever it is.
func TestALookIntoADatabaseTakesOneValue(t *testing.T) {
	storetest.SQLiteOnly(t, "it is of its file")
	path := t.TempDir() + "/a.db"
	if got, err := snapshot.Peek(t.Context(), path, "k"); got != "" || err != nil {
		t.Errorf("without a file: %q %v", got, err)
	}
	db, err := store.Open(t.Context(), path, store.Options{Clock: coretest.NewClock(time.Time{})})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, "k", "v") }); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"while it is open", "when it is closed"} {
		for key, want := range map[string]string{"k": "v", "other": ""} {
			if got, err := snapshot.Peek(t.Context(), path, key); got != want || err != nil {
				t.Errorf("%s: %s is %q, %v", when, key, got, err)
			}
		}
		if err := db.Close(); err != nil && when == "while it is open" {
			t.Fatal(err)
		}
	}
}
