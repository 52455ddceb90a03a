package migrations

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// layout is what all migrations together make of an empty SQLite file, as one script. A test
// compares it with them, and writes it: go test ./core/store/migrations -run NewDatabase -update
//
//go:embed layout/sqlite.sql
var layout string

// Create makes a new SQLite database in one transaction, as it is after every migration: to run
// them one by one takes ten times as long, because SQLite reads its whole layout again after each
// change of a table. It does nothing and returns false if there is a ledger.
func Create(ctx context.Context, db *sql.DB, l Ledger) (made bool, err error) {
	if there, err := l.TableExists(ctx, db); err != nil || there {
		return false, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("create the tables: %w", err), tx.Rollback())
		}
	}()
	if _, err := tx.ExecContext(ctx, layout); err != nil {
		return false, err
	}
	names, err := fs.Glob(Files(SQLite), "*.sql")
	if err != nil {
		return false, err
	}
	numbers, err := versions(names)
	if err != nil {
		return false, err
	}
	for _, n := range numbers {
		if err := l.Insert(ctx, tx, database.InsertRequest{Version: n}); err != nil {
			return false, err
		}
	}
	return true, tx.Commit()
}

// versions returns the numbers that the ledger has after the migrations of names: 0, with which
// goose begins it, and theirs. It returns an error for a name without a number.
func versions(names []string) ([]int64, error) {
	out := []int64{0}
	for _, name := range names {
		n, err := goose.NumericComponent(name)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}
