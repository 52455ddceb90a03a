package migrations

import (
	"context"
	"database/sql"
	"errors"

	"github.com/pressly/goose/v3/database"

	"gatehouse/core"
)

// A Ledger keeps goose's record in the original system's schema_version(version,
// applied_at). It is goose's database.Store.
type Ledger struct {
	Engine Engine
	Clock  core.Clock // needed by Insert only
}

// CreateLedger is the statement that makes the ledger's table.
const CreateLedger = `CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)`

// Tablename implements database.Store.
func (Ledger) Tablename() string { return "schema_version" }

// TableExists implements goose's optional question, asked before the first migration.
func (l Ledger) TableExists(ctx context.Context, db database.DBTxConn) (bool, error) {
	query := `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'`
	if l.Engine == Postgres {
		query = `SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = 'schema_version'`
	}
	var n int
	err := db.QueryRowContext(ctx, query).Scan(&n)
	return n > 0, err
}

// CreateVersionTable implements database.Store.
func (Ledger) CreateVersionTable(ctx context.Context, db database.DBTxConn) error {
	_, err := db.ExecContext(ctx, CreateLedger)
	return err
}

// Insert implements database.Store.
func (l Ledger) Insert(ctx context.Context, db database.DBTxConn, req database.InsertRequest) error {
	_, err := db.ExecContext(ctx, `INSERT INTO schema_version (version, applied_at) VALUES ($1, $2)`, req.Version, core.Stamp(l.Clock.Now()))
	return err
}

// Delete implements database.Store.
func (Ledger) Delete(ctx context.Context, db database.DBTxConn, version int64) error {
	_, err := db.ExecContext(ctx, `DELETE FROM schema_version WHERE version = $1`, version)
	return err
}

// GetMigration implements database.Store.
func (Ledger) GetMigration(ctx context.Context, db database.DBTxConn, version int64) (*database.GetMigrationResult, error) {
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

// GetLatestVersion implements database.Store.
func (Ledger) GetLatestVersion(ctx context.Context, db database.DBTxConn) (int64, error) {
	var v sql.NullInt64
	if err := db.QueryRowContext(ctx, `SELECT max(version) FROM schema_version`).Scan(&v); err != nil {
		return 0, err
	}
	if !v.Valid {
		return 0, database.ErrVersionNotFound
	}
	return v.Int64, nil
}

// ListMigrations implements database.Store.
func (Ledger) ListMigrations(ctx context.Context, db database.DBTxConn) ([]*database.ListMigrationsResult, error) {
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

// Version returns the ledger's newest number, 0 without a ledger.
func (l Ledger) Version(ctx context.Context, db database.DBTxConn) (int64, error) {
	ok, err := l.TableExists(ctx, db)
	if err != nil || !ok {
		return 0, err
	}
	return l.GetLatestVersion(ctx, db)
}
