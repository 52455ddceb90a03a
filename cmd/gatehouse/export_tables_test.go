package main

import (
	"testing"

	"gatehouse/core/activity"
	"gatehouse/core/attach"
	"gatehouse/core/erasure"
	"gatehouse/core/paraid"
	"gatehouse/core/permission/guard"
	"gatehouse/core/runs"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/usage"
	"gatehouse/pairing"
	"gatehouse/web/account"
)

// The tests on PostgreSQL run it there.
func TestErasure_ExportStatementsRunOnBothDatabases(t *testing.T) {
	db := storetest.Open(t, nil)
	own := usage.Own{Month: usage.Budget{Tokens: 5}}
	err := db.Tx(t.Context(), func(tx *store.Tx) error {
		return usage.New(nil, usage.Budgets{}).SetOwn(t.Context(), tx, 7, own, cli)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, owner := range []erasure.Exporter{guard.Asks{}, guard.Grants{}, (*runs.Store)(nil), (*attach.Ledger)(nil), usage.Tables{}, session.Tables{}, (*activity.Worker)(nil), pairing.Tables{}, paraid.Tables{}, store.Log{}, account.Tables{}} {
		for _, x := range owner.Exports() {
			rows, err := store.Rows(t.Context(), db, x.Query, int64(7), 10)
			if want := map[string]int{"budgets": 1}[x.Name]; err != nil || len(rows) != want {
				t.Errorf("%s: %d rows, %v", x.Name, len(rows), err)
			}
		}
	}
}
