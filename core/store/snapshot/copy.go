// Package snapshot reads a SQLite database from its file as it lies there: another process
// may have it open, and nothing is adopted, migrated or created.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"gatehouse/core"
	"gatehouse/core/store/migrations"
)

// Copy writes a consistent copy of the SQLite database at path to the file to,
// which must not exist, and returns the version. Other processes may read and
// write the database: the copy is a snapshot. It is neither adopted nor migrated.
// Without a database it returns core.NotFound.
func Copy(ctx context.Context, path, to string) (version int64, err error) {
	if st, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && st.Size() == 0 {
		return 0, core.Errorf(core.NotFound, "there is no database at %s", path)
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600) // SQLite fills an empty file
	if err != nil {
		return 0, err
	}
	if err := f.Close(); err != nil {
		return 0, err
	}
	// "rw" and no pragma: whatever kind of database it is, it stays so.
	db, err := sqlx.Open("sqlite3", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path)}).String()+"?mode=rw&_busy_timeout=30000")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, `VACUUM INTO $1`, to); err != nil {
		return 0, fmt.Errorf("copy database %s: %w", path, errors.Join(err, context.Cause(ctx)))
	}
	return versionOf(ctx, to)
}

// versionOf returns the number of the newest migration of a closed database; 0 for
// one without a ledger.
func versionOf(ctx context.Context, path string) (version int64, err error) {
	db, err := sqlx.Open("sqlite3", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path)}).String()+"?mode=ro&immutable=1")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return migrations.Ledger{Engine: migrations.SQLite}.Version(ctx, db.DB)
}
