package store_test

import (
	"database/sql"
	"os"
	"strings"
	"testing"
)

// migrated returns a database in which statements were run and then a migration, by its file.
func migrated(t *testing.T, file string, before ...string) *sql.DB {
	t.Helper()
	text, err := os.ReadFile("migrations/" + file)
	if err != nil {
		t.Fatal(err)
	}
	up, _, _ := strings.Cut(string(text), "-- +goose Down")
	db, err := sql.Open("sqlite3", t.TempDir()+"/a.db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, q := range append(before, up) {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	return db
}
