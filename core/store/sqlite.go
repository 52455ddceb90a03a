package store

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"; build tag sqlite_fts5

	"gatehouse/core"
	"gatehouse/core/store/original"
)

// synchronous is FULL: a commit is on the disk before it returns. The power-cut
// test re-executes itself with NORMAL to show that it detects the difference.
var synchronous = "FULL"

// writerSettings make the writer cheaper and change nothing that a commit
// promises. What a savepoint needs to take its pages back is kept in memory
// instead of a temporary file; and the log is carried over into the main file
// every 16 MiB instead of 4, so that a page that many commits change is carried
// over less often.
const writerSettings = `PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 4000`

// writers are the connections that write: the writer's, and one for migrations at start.
const writers = 2

// keptStatements bounds the statements that a reading connection keeps
// prepared: those that every message runs, and more. Who has run last stays.
const keptStatements = 32

// dsn names the file with the settings every connection needs. Writes begin
// IMMEDIATE, so that a transaction never has to give up half way.
func dsn(path string, readOnly bool) string {
	q := url.Values{}
	q.Set("_busy_timeout", "5000")
	q.Set("_foreign_keys", "on")
	q.Set("_journal_mode", "WAL")
	q.Set("_synchronous", synchronous)
	q.Set("_txlock", "immediate")
	if readOnly {
		q.Set("mode", "rw") // a file that is gone is not made again: its tables would be missing
		q.Set("_query_only", "true")
		q.Set("_stmt_cache_size", strconv.Itoa(keptStatements))
	}
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path)}).String() + "?" + q.Encode()
}

func (d *DB) open(ctx context.Context) (err error) {
	// Before any file is touched: a program that cannot serve must not migrate.
	if err := requireFTS5(ctx, ":memory:"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(d.path), 0o700); err != nil {
		return fmt.Errorf("folder: %w", err)
	}
	existed := false
	if st, err := os.Stat(d.path); err == nil && st.Size() > 0 {
		existed = true
	} else if f, err := os.OpenFile(d.path, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	} else if err := f.Close(); err != nil {
		return err
	}
	copied := ""
	if existed {
		if copied, err = adopt(ctx, d.path, Options{Clock: d.clock, Log: d.log}, nil); err != nil {
			return original.FullDisk(d.path, err)
		}
	}
	if err = d.openPools(ctx, existed && copied == ""); err != nil && copied != "" {
		return d.undoAdoption(copied, err)
	}
	return err
}

// openPools opens the database's connections and migrates it; with keep it keeps a
// copy first.
func (d *DB) openPools(ctx context.Context, keep bool) (err error) {
	if d.write, err = sqlx.Open("sqlite3", dsn(d.path, false)); err != nil {
		return err
	}
	d.write.SetMaxOpenConns(writers)
	d.write.SetMaxIdleConns(1)
	if err := d.migrate(ctx, keep); err != nil {
		return err
	}
	if d.conn, err = d.write.Connx(ctx); err != nil {
		return err
	}
	if _, err := d.conn.ExecContext(ctx, writerSettings); err != nil {
		return err
	}
	for _, text := range [...]string{`BEGIN IMMEDIATE`, `ROLLBACK`} { // SQLite opens a file that it cannot write, without a word
		if _, err := d.conn.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	d.read.Ended = func(error) bool { return false }
	if d.read.DB, err = sqlx.Open("sqlite3", dsn(d.path, true)); err != nil {
		return err
	}
	d.read.SetMaxOpenConns(readers)
	d.read.SetMaxIdleConns(readers)
	return d.read.PingContext(ctx)
}

func requireFTS5(ctx context.Context, dsn string) error {
	db, err := sqlx.Open("sqlite3", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	return hasFTS5(ctx, db)
}

func hasFTS5(ctx context.Context, db *sqlx.DB) error {
	var on int
	if err := db.GetContext(ctx, &on, `SELECT sqlite_compileoption_used('ENABLE_FTS5')`); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if on != 1 {
		return core.Errorf(core.Invalid, "this program was built without full-text search; build it with: go build -tags sqlite_fts5 ./cmd/gatehouse")
	}
	return nil
}
