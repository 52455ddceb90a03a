package store_test

import "testing"

// The first form of migration 1018 did not create the index of the newest requests.
func TestADatabaseOfTheFirst1018GetsTheIndexOfRequests(t *testing.T) {
	for _, before := range []string{"", `CREATE INDEX pairing_requests_created ON pairing_requests(created_at DESC, id)`} {
		db := migrated(t, "1019_newest_requests.sql", `CREATE TABLE pairing_requests (id TEXT PRIMARY KEY, created_at TEXT NOT NULL)`, before)
		var found int
		if err := db.QueryRow(`SELECT count(*) FROM sqlite_master WHERE name = 'pairing_requests_created'`).Scan(&found); err != nil || found != 1 {
			t.Errorf("after %q: %d, %v", before, found, err)
		}
	}
}
