package store_test

import (
	"database/sql"
	"os"
	"strings"
	"testing"
)

// The first form of migration 1018 did not create the index of the newest requests.
func TestADatabaseOfTheFirst1018GetsTheIndexOfRequests(t *testing.T) {
	text, err := os.ReadFile("migrations/1019_newest_requests.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, _, _ := strings.Cut(string(text), "-- +goose Down")
	for _, before := range []string{"", `CREATE INDEX pairing_requests_created ON pairing_requests(created_at DESC, id)`} {
		db, err := sql.Open("sqlite3", t.TempDir()+"/a.db")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, q := range []string{`CREATE TABLE pairing_requests (id TEXT PRIMARY KEY, created_at TEXT NOT NULL)`, before, up} {
			if _, err := db.Exec(q); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
		}
		var found int
		if err := db.QueryRow(`SELECT count(*) FROM sqlite_master WHERE name = 'pairing_requests_created'`).Scan(&found); err != nil || found != 1 {
			t.Errorf("after %q: %d, %v", before, found, err)
		}
	}
}
