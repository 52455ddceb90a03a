package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"gatehouse/core"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// baseline is the number of our first migration. Lower numbers in
// schema_version belong to the original system, which this version does not adopt.
const baseline = 1001

// Newest is the number of this program's newest migration.
func Newest() int64 {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		return 0
	}
	n, err := goose.NumericComponent(names[len(names)-1]) // Glob sorts by name, and names begin with four digits
	if err != nil {
		return 0
	}
	return n
}

// migrate brings the database to this program's version. A database that is
// newer, or not ours, is refused before anything is changed; one that existed
// is copied beside itself first.
func (d *DB) migrate(ctx context.Context, existed bool) error {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider("", d.write.DB, files, goose.WithStore(ledger{d.clock}), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	have, err := d.version(ctx)
	if err != nil {
		return err
	}
	switch {
	case have == newest:
		return nil
	case have > newest:
		return core.Errorf(core.Invalid, "the database is newer (version %d) than this program (version %d): use the newer program, or restore the copy that was kept beside the database before its migration", have, newest)
	case have == 0 && existed:
		if err := d.refuseForeign(ctx); err != nil {
			return err
		}
	case have != 0 && have < baseline:
		return core.Errorf(core.Invalid, "the database has version %d of the original system's layout; this version of gatehouse does not adopt such databases: set GATEHOUSE_DATABASE_URL to another path", have)
	case existed:
		if err := d.keepCopy(ctx, have); err != nil {
			return err
		}
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// version is the newest number in schema_version, 0 without the table.
func (d *DB) version(ctx context.Context) (int64, error) {
	ok, err := ledger{}.TableExists(ctx, d.write.DB)
	if err != nil || !ok {
		return 0, err
	}
	return ledger{}.GetLatestVersion(ctx, d.write.DB)
}

// refuseForeign refuses a file that holds tables but no ledger: it is someone else's.
func (d *DB) refuseForeign(ctx context.Context) error {
	var names []string
	err := d.write.SelectContext(ctx, &names, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name LIMIT 5`)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return core.Errorf(core.Invalid, "the file is a database of something else (tables %q …): set GATEHOUSE_DATABASE_URL to another path", names)
	}
	return nil
}

// keepCopy writes a consistent copy beside the database, once per version.
func (d *DB) keepCopy(ctx context.Context, version int64) error {
	to := fmt.Sprintf("%s.v%d.bak", d.path, version)
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	part := to + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := d.write.ExecContext(ctx, `VACUUM INTO $1`, part); err != nil {
		return fmt.Errorf("copy before migration: %w", err)
	}
	return os.Rename(part, to)
}

// ledger keeps goose's record in the seed's schema_version(version, applied_at).
type ledger struct{ clock core.Clock }

func (ledger) Tablename() string { return "schema_version" }

func (ledger) TableExists(ctx context.Context, db database.DBTxConn) (bool, error) {
	var n int
	err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'`).Scan(&n)
	return n > 0, err
}

func (ledger) CreateVersionTable(ctx context.Context, db database.DBTxConn) error {
	_, err := db.ExecContext(ctx, `CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)`)
	return err
}

func (l ledger) Insert(ctx context.Context, db database.DBTxConn, req database.InsertRequest) error {
	_, err := db.ExecContext(ctx, `INSERT INTO schema_version (version, applied_at) VALUES ($1, $2)`, req.Version, core.Stamp(l.clock.Now()))
	return err
}

func (ledger) Delete(ctx context.Context, db database.DBTxConn, version int64) error {
	_, err := db.ExecContext(ctx, `DELETE FROM schema_version WHERE version = $1`, version)
	return err
}

func (ledger) GetMigration(ctx context.Context, db database.DBTxConn, version int64) (*database.GetMigrationResult, error) {
	var at string
	err := db.QueryRowContext(ctx, `SELECT applied_at FROM schema_version WHERE version = $1`, version).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, database.ErrVersionNotFound
	}
	if err != nil {
		return nil, err
	}
	t, err := core.ParseStamp(at)
	return &database.GetMigrationResult{Timestamp: t, IsApplied: true}, err
}

func (ledger) GetLatestVersion(ctx context.Context, db database.DBTxConn) (int64, error) {
	var v sql.NullInt64
	if err := db.QueryRowContext(ctx, `SELECT max(version) FROM schema_version`).Scan(&v); err != nil {
		return 0, err
	}
	if !v.Valid {
		return 0, database.ErrVersionNotFound
	}
	return v.Int64, nil
}

func (ledger) ListMigrations(ctx context.Context, db database.DBTxConn) ([]*database.ListMigrationsResult, error) {
	rows, err := db.QueryContext(ctx, `SELECT version FROM schema_version ORDER BY version DESC`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []*database.ListMigrationsResult
	for rows.Next() {
		r := &database.ListMigrationsResult{IsApplied: true}
		if err := rows.Scan(&r.Version); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}
