// Package storetest opens fresh databases for the tests of packages that own tables.
package storetest

import (
	"context"
	"path/filepath"
	"testing"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Open is a fresh SQLite database in the test's own folder, closed at its end.
// A nil clock is the system's.
func Open(t testing.TB, clock core.Clock) *store.DB {
	t.Helper()
	return OpenAt(t, filepath.Join(t.TempDir(), "test.db"), clock)
}

// OpenAt opens the database at path, closed at the test's end (closing earlier is fine).
func OpenAt(t testing.TB, path string, clock core.Clock) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), path, store.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
