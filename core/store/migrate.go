package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	"github.com/pressly/goose/v3"

	"gatehouse/core/store/migrations"
	"gatehouse/core/store/original"
)

// Newest returns the number of this program's newest migration.
func Newest() int64 { return migrations.Newest(migrations.SQLite) }

// Examine returns what Open would do with the database file at path, and changes
// nothing: version is the newest number of its ledger (0 without one), or for a
// database of the original system the number of its layout, and adopt is then
// true. Its errors are those of Open.
func Examine(ctx context.Context, path string) (version int64, adopt bool, err error) {
	db, err := sql.Open("sqlite3", plainDSN(path, "ro"))
	if err != nil {
		return 0, false, err
	}
	defer db.Close()
	to, err := target()
	if err != nil {
		return 0, false, err
	}
	return original.Examine(ctx, db, to)
}

// target returns our layout for a database that is taken over.
func target() (original.Target, error) {
	tables, err := migrations.First()
	return original.Target{Tables: tables, Ledger: migrations.CreateLedger, Version: migrations.Baseline, Newest: Newest()}, err
}

// adopt takes over the file at path if it is a database of the original system,
// and returns the path of the copy of what it was; "" if it is none.
func adopt(ctx context.Context, path string, o Options, step func(statement string) error) (copied string, err error) {
	db, err := sql.Open("sqlite3", plainDSN(path, "rw"))
	if err != nil {
		return "", err
	}
	defer db.Close()
	to, err := target()
	if err != nil {
		return "", err
	}
	return original.Adoption{Target: to, Path: path, Clock: o.Clock, Log: o.Log, Copy: migrations.KeepCopy, Step: step}.Run(ctx, db)
}

// undoAdoption closes the database, which could not be opened for cause after its
// adoption, and restores the copy of the original system's.
func (d *DB) undoAdoption(copied string, cause error) error {
	_ = d.closePools()
	d.stmts, d.conn, d.read.DB, d.write = nil, nil, nil, nil
	if err := original.PutBack(d.path, copied); err != nil {
		return errors.Join(cause, err)
	}
	d.log.Warn("the original system's database was put back: it could not be brought to this program's version", "path", d.path)
	return original.FullDisk(d.path, cause)
}

// plainDSN names the file without any setting that would change it.
func plainDSN(path, mode string) string {
	q := url.Values{}
	q.Set("mode", mode)
	q.Set("_busy_timeout", "5000")
	q.Set("_foreign_keys", "off")
	q.Set("_synchronous", "FULL")
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path)}).String() + "?" + q.Encode()
}

// migrate migrates the database, which adoption has read, to this program's
// version. With keep it keeps a copy of a database that existed next to it first.
func (d *DB) migrate(ctx context.Context, keep bool) error {
	ledger := migrations.Ledger{Engine: d.engine.kind, Clock: d.clock}
	newest := migrations.Newest(d.engine.kind)
	have, err := ledger.Version(ctx, d.write.DB)
	if err != nil || have == newest {
		return err // at most starts nothing is to be done, and goose would read all texts first
	}
	if have == 0 && d.engine.kind == migrations.SQLite {
		if made, err := migrations.Create(ctx, d.write.DB, ledger); made || err != nil {
			return err
		}
	}
	p, err := goose.NewProvider("", d.write.DB, migrations.Files(d.engine.kind), goose.WithStore(ledger), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	if keep && have != 0 {
		kept, err := migrations.KeepCopy(ctx, d.write.DB, d.path, have)
		if err != nil {
			return err
		}
		d.log.Info("bringing the database to this program's version", "from", have, "to", newest, "copy", kept)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
