package store_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// level is the setting under which a transaction commits: 1 is NORMAL, 2 FULL.
func level(ctx context.Context, run func(context.Context, func(*store.Tx) error) error) (level int, err error) {
	err = run(ctx, func(tx *store.Tx) error { return tx.Get(ctx, &level, `PRAGMA synchronous`) })
	return level, err
}

func TestTxSoonAloneDoesNotWaitForTheDisk(t *testing.T) {
	storetest.SQLiteOnly(t, "PRAGMA settings")
	db := storetest.Open(t, nil)
	before := db.Synced()
	for i, c := range []struct {
		run  func(context.Context, func(*store.Tx) error) error
		want int
	}{{db.Tx, 2}, {db.TxSoon, 1}, {db.TxSoon, 1}, {db.Tx, 2}, {db.Tx, 2}, {db.TxSoon, 1}} {
		if got, err := level(t.Context(), c.run); got != c.want || err != nil {
			t.Errorf("transaction %d: synchronous %d, want %d, %v", i, got, c.want, err)
		}
	}
	if n := db.Synced() - before; n != 3 {
		t.Errorf("%d commits waited for the disk, want 3", n)
	}
}

// A server that crashes, or is replaced by its standby, would undo the commit while the
// program goes on.
func TestTxSoonWaitsForTheDiskOfAServer(t *testing.T) {
	storetest.PostgresOnly(t, "synchronous_commit")
	db := storetest.Open(t, nil)
	before := db.Synced()
	var got string
	err := db.TxSoon(t.Context(), func(tx *store.Tx) error { return tx.Get(t.Context(), &got, `SHOW synchronous_commit`) })
	if got != "on" || err != nil || db.Synced() != before+1 {
		t.Errorf("synchronous_commit %q, %d commits that waited, %v", got, db.Synced()-before, err)
	}
}

// One that must be on the disk takes the others of its group along.
func TestAGroupIsOnTheDiskIfOneOfItMustBe(t *testing.T) {
	storetest.SQLiteOnly(t, "PRAGMA settings")
	db := storetest.Open(t, nil)
	for _, c := range []struct {
		soon []bool
		want int
	}{{[]bool{true, true}, 1}, {[]bool{true, false}, 2}, {[]bool{true}, 1}, {[]bool{false, true, true}, 2}} {
		if got, err := db.LevelOf(t.Context(), c.soon); got != c.want || err != nil {
			t.Errorf("%v: synchronous %d, want %d, %v", c.soon, got, c.want, err)
		}
	}
}

// What nobody follows up is on the disk after a second, by a sync of its own.
func TestACommitOfTxSoonIsOnTheDiskInTheEnd(t *testing.T) {
	storetest.SQLiteOnly(t, "the log of SQLite")
	db := storetest.Open(t, nil)
	set := func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, "a", "b") }
	if err := db.TxSoon(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if waiting, err := db.Waiting(t.Context()); !waiting || err != nil {
		t.Fatalf("waiting %v, %v right after the commit", waiting, err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		waiting, err := db.Waiting(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !waiting {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the commit is not on the disk after a minute")
		}
	}
}

func TestWhatTxSoonHasWrittenIsThereAfterAStart(t *testing.T) {
	storetest.SQLiteOnly(t, "a file")
	path := filepath.Join(t.TempDir(), "db")
	for i, want := range []string{"", "b"} {
		db, err := store.Open(t.Context(), path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := store.Metadata(t.Context(), db, "a")
		if got != want || err != nil {
			t.Errorf("start %d: %q, want %q, %v", i, got, want, err)
		}
		if err := db.TxSoon(t.Context(), func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, "a", "b") }); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
