package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"gatehouse/core"
	"gatehouse/core/store/migrations"
)

// Compact rewrites the SQLite database, so that nothing that was deleted stays in
// the file or in its log. Writers wait for it, about a second for each 100 MB, and
// it needs as much free space as the database. If the database has more than most
// bytes (0: no limit), it does nothing and returns false. It is core.Busy where a
// reader keeps the old pages for longer than the connection waits.
func (d *DB) Compact(ctx context.Context, most int64) (done bool, err error) {
	if d.engine.kind != migrations.SQLite {
		return false, nil
	}
	if st, err := os.Stat(d.path); err != nil || most > 0 && st.Size() > most {
		return false, err
	}
	if err := d.between(ctx, d.compact); err != nil {
		return false, err
	}
	return true, nil
}

// compact runs on the writer's goroutine, between transactions.
func (d *DB) compact(ctx context.Context) error {
	// A prepared statement that was read to its end holds nothing, but VACUUM is
	// refused while one is open: none is kept over it.
	d.forgetStatements()
	if _, err := d.conn.ExecContext(ctx, `VACUUM`); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	var busy, logged, moved int
	if err := d.conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &logged, &moved); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	if busy != 0 {
		return core.Errorf(core.Busy, "compact: the database is being read, and what was deleted is in its file until then")
	}
	return nil
}

// Copies returns the copies of the database that were kept before migrations.
func (d *DB) Copies() ([]string, error) { return filepath.Glob(d.path + ".v*.bak") }
