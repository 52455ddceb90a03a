package store_test

import (
	"sync"
	"testing"

	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// A server that is started anew ends all connections of a pool: nobody who reads hears of it.
func TestReadsGoOnWhenTheServerHasEndedAllConnections(t *testing.T) {
	storetest.PostgresOnly(t, "a file ends no connection")
	at := storetest.Fresh(t)
	db, helper := storetest.OpenAt(t, at, nil), storetest.OpenAt(t, at, nil)
	const slow = `SELECT g FROM generate_series(1, 3) AS g, pg_sleep(0.02)`
	end := func() {
		t.Helper()
		var all sync.WaitGroup
		for range 20 { // so that the pool is full
			all.Go(func() {
				var n []int
				if err := db.Select(t.Context(), &n, slow); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		var ended int
		if err := helper.Get(t.Context(), &ended, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query = $1 AND datname = current_database()`, slow); err != nil || ended < 2 {
			t.Fatal(ended, err)
		}
	}
	end()
	var one int
	if err := db.Get(t.Context(), &one, `SELECT 1`); err != nil || one != 1 {
		t.Error(one, err)
	}
	end()
	var n []int
	if err := db.Select(t.Context(), &n, `SELECT 1`); err != nil || len(n) != 1 {
		t.Error(n, err)
	}
	end()
	if rows, err := store.Rows(t.Context(), db, `SELECT 1 AS one`); err != nil || len(rows) != 1 {
		t.Error(rows, err)
	}
}
