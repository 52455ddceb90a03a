package store

import (
	"database/sql"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"

	"gatehouse/core"
)

// A program whose SQLite has no full-text search refuses to work, and says how
// it is built. Its SQLite is played by one that denies having it.
func TestAProgramWithoutFullTextSearchRefusesToStart(t *testing.T) {
	sql.Register("sqlite3 without fts5", &sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
		return c.RegisterFunc("sqlite_compileoption_used", func(string) int64 { return 0 }, true)
	}})
	for driver, has := range map[string]bool{"sqlite3": true, "sqlite3 without fts5": false} {
		db, err := sqlx.Open(driver, ":memory:")
		if err != nil {
			t.Fatal(err)
		}
		err = hasFTS5(t.Context(), db)
		if has && err != nil || !has && core.KindOf(err) != core.Invalid {
			t.Errorf("%s: %v", driver, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
