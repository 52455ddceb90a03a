package main

import (
	"testing"

	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/usage"
)

// What an export reads of the tables is asked in words that either database
// takes. The tests on PostgreSQL run it there.
func TestAnExportsStatementsRunOnEitherDatabase(t *testing.T) {
	db := storetest.Open(t, nil)
	own := usage.Own{Month: usage.Budget{Tokens: 5}}
	err := db.Tx(t.Context(), func(tx *store.Tx) error {
		return usage.New(nil, usage.Budgets{}).SetOwn(t.Context(), tx, 7, own, cli)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range exportTables {
		rows, err := store.Rows(t.Context(), db, x.query, int64(7), 10)
		if want := map[string]int{"budgets": 1}[x.name]; err != nil || len(rows) != want {
			t.Errorf("%s: %d rows, %v", x.name, len(rows), err)
		}
	}
}
