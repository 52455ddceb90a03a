package store_test

import "testing"

// Budgets that people had for a day are theirs with the table that has periods.
func TestBudgetsOfADayAreKeptWithTheTableOfPeriods(t *testing.T) {
	db := migrated(t, "1017_budgets.sql",
		`CREATE TABLE user_budgets (user_id INTEGER PRIMARY KEY, tokens INTEGER NOT NULL DEFAULT 0, micro_usd INTEGER NOT NULL DEFAULT 0)`,
		`INSERT INTO user_budgets VALUES (7, 500, 0), (1234567, 0, 0)`,
	)
	var found string
	if err := db.QueryRow(`SELECT group_concat(scope || ' ' || id || ' ' || typeof(id) || ' ' || period || ' ' || tokens, ', ') FROM (SELECT * FROM budgets ORDER BY id)`).Scan(&found); err != nil || found != "user 1234567 text day 0, user 7 text day 500" {
		t.Errorf("%q %v", found, err)
	}
}
