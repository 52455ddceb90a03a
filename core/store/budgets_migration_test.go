package store_test

import (
	"database/sql"
	"os"
	"strings"
	"testing"
)

// Budgets that people had for a day are theirs with the table that has periods.
func TestBudgetsOfADayAreKeptWithTheTableOfPeriods(t *testing.T) {
	text, err := os.ReadFile("migrations/1017_budgets.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, _, _ := strings.Cut(string(text), "-- +goose Down")
	db, err := sql.Open("sqlite3", t.TempDir()+"/a.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range []string{
		`CREATE TABLE user_budgets (user_id INTEGER PRIMARY KEY, tokens INTEGER NOT NULL DEFAULT 0, micro_usd INTEGER NOT NULL DEFAULT 0)`,
		`INSERT INTO user_budgets VALUES (7, 500, 0), (1234567, 0, 0)`, up,
	} {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	var found string
	if err := db.QueryRow(`SELECT group_concat(scope || ' ' || id || ' ' || typeof(id) || ' ' || period || ' ' || tokens, ', ') FROM (SELECT * FROM budgets ORDER BY id)`).Scan(&found); err != nil || found != "user 1234567 text day 0, user 7 text day 500" {
		t.Errorf("%q %v", found, err)
	}
}
