package store_test

import (
	"testing"

	"gatehouse/core"
	"gatehouse/core/store/storetest"
)

// A row that goes takes along, or looks for, those that name it: without an index
// on what names it the database reads all of that table, for each row.
func TestEveryForeignKeyHasAnIndex(t *testing.T) {
	storetest.SQLiteOnly(t, "its schema")
	db, keys := storetest.Open(t, core.System{}), 0
	var tables []string
	if err := db.Select(t.Context(), &tables, `SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'`); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		var columns []string
		if err := db.Select(t.Context(), &columns, `SELECT "from" FROM pragma_foreign_key_list($1)`, table); err != nil {
			t.Fatal(err)
		}
		for _, column := range columns {
			keys++
			var indexed bool
			err := db.Get(t.Context(), &indexed, `SELECT EXISTS (SELECT 1 FROM pragma_index_list($1) l JOIN pragma_index_info(l.name) i ON i.seqno = 0 AND i.name = $2 WHERE l.partial = 0)`, table, column)
			if err != nil || !indexed {
				t.Errorf("%s(%s) names a row of another table and no index begins with it: %v", table, column, err)
			}
		}
	}
	if keys < 6 {
		t.Errorf("only %d foreign keys", keys)
	}
}
