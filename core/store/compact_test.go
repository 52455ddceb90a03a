package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"sync"
	"testing"

	"gatehouse/core/store"
	"gatehouse/core/store/snapshot"
	"gatehouse/core/store/storetest"
)

// Nothing that was deleted is left in the file, and whoever writes meanwhile
// waits and is served.
func TestAfterCompactTheFileHoldsNothingThatWasDeleted(t *testing.T) {
	storetest.SQLiteOnly(t, "its file")
	ctx := t.Context()
	db := storetest.Open(t, nil)
	secret := bytes.Repeat([]byte("xyzzy"), 3000) // some pages
	write := func(f func(tx *store.Tx) error) {
		t.Helper()
		if err := db.Tx(ctx, f); err != nil {
			t.Fatal(err)
		}
	}
	inFile := func() bool {
		for _, suffix := range []string{"", "-wal"} {
			b, err := os.ReadFile(db.Path() + suffix)
			if err == nil && bytes.Contains(b, []byte("xyzzy")) {
				return true
			}
		}
		return false
	}
	write(func(tx *store.Tx) error { return store.SetMetadata(ctx, tx, "secret", string(secret)) })
	write(func(tx *store.Tx) error { return store.DeleteMetadata(ctx, tx, "secret") })
	if !inFile() {
		t.Fatal("the test looks in the wrong place")
	}
	if done, err := db.Compact(ctx, 10); done || err != nil || !inFile() {
		t.Errorf("larger than the bound: %v %v", done, err)
	}
	var company sync.WaitGroup
	for range 8 {
		company.Go(func() {
			for range 20 {
				if err := db.Tx(context.Background(), func(tx *store.Tx) error { return store.SetMetadata(ctx, tx, "k", "v") }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done, err := db.Compact(ctx, 0)
	company.Wait()
	if !done || err != nil || inFile() {
		t.Errorf("compacted %v, %v; still in the file: %v", done, err, inFile())
	}
	if v, _, err := store.Metadata(ctx, db, "k"); v != "v" || err != nil {
		t.Errorf("%q %v", v, err)
	}
}

// While another process reads, the old pages stay in the file: Compact does not say otherwise.
func TestCompactIsNotDoneWhileSomeoneReadsWhatWasDeleted(t *testing.T) {
	storetest.SQLiteOnly(t, "its file")
	ctx := t.Context()
	db := storetest.Open(t, nil)
	other, err := sql.Open("sqlite3", db.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	reads, err := other.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := errors.Join(reads.QueryRow(`SELECT count(*) FROM metadata`).Scan(&n), db.Hurry(ctx)); err != nil {
		t.Fatal(err)
	}
	if done, err := db.Compact(ctx, 0); done || err == nil {
		t.Errorf("while it is read: %v %v", done, err)
	}
	if err := reads.Rollback(); err != nil {
		t.Fatal(err)
	}
	if done, err := db.Compact(ctx, 0); !done || err != nil {
		t.Errorf("afterwards: %v %v", done, err)
	}
}

// A copy is whole and of one moment while others write.
func TestACopyIsOfOneMomentWhileOthersWrite(t *testing.T) {
	storetest.SQLiteOnly(t, "its file")
	ctx := t.Context()
	db := storetest.Open(t, nil)
	stop, begun := make(chan struct{}), make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			v := string(rune('a'+n%26)) + "-value"
			err := db.Tx(context.Background(), func(tx *store.Tx) error {
				for _, key := range []string{"one", "two"} { // always the same
					if err := store.SetMetadata(ctx, tx, key, v); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			if n == 10 {
				close(begun)
			}
		}
	})
	<-begun
	to := t.TempDir() + "/copy.db"
	version, err := snapshot.Copy(ctx, db.Path(), to)
	close(stop)
	writer.Wait()
	if err != nil || version != store.Newest() {
		t.Fatal(version, err)
	}
	copied, err := store.Open(ctx, to, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	one, _, _ := store.Metadata(ctx, copied, "one")
	two, _, _ := store.Metadata(ctx, copied, "two")
	if one == "" || one != two {
		t.Errorf("half a transaction: %q, %q", one, two)
	}
	if _, err := snapshot.Copy(ctx, db.Path()+".nothing", to+"2"); err == nil {
		t.Error("a copy of nothing")
	}
}
