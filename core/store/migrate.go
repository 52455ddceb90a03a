package store

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"gatehouse/core"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// baseline is the number of our first migration. Lower numbers in
// schema_version belong to the original system (adopt.go).
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

// migrate brings the database, which adoption has looked at, to this program's
// version. One that existed is copied beside itself first.
func (d *DB) migrate(ctx context.Context, existed bool) error {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider("", d.write.DB, files, goose.WithStore(ledger{d.clock}), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	have, err := d.version(ctx)
	if err != nil || have == Newest() {
		return err
	}
	if existed && have != 0 {
		kept, err := keepCopy(ctx, d.write.DB, d.path, have)
		if err != nil {
			return err
		}
		d.log.Info("bringing the database to this program's version", "from", have, "to", Newest(), "copy", kept)
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

// maxCopies bounds the different copies of one version that are kept.
const maxCopies = 100

// keepCopy writes a consistent copy of the database beside it, readable by its
// owner only, and has it on the disk before it returns. An earlier copy of the
// same version stays: it is used when it is the same, else the new one gets a
// name of its own. It returns the copy's path.
func keepCopy(ctx context.Context, db *sql.DB, path string, version int64) (string, error) {
	part := fmt.Sprintf("%s.v%d.part", path, version)
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600) // SQLite fills an empty file
	if err != nil {
		return "", fmt.Errorf("copy before migration: %w", err)
	}
	defer f.Close()
	if _, err := db.ExecContext(ctx, `VACUUM INTO $1`, part); err != nil {
		return "", errors.Join(fmt.Errorf("copy before migration: %w", err), os.Remove(part))
	}
	if err := f.Sync(); err != nil {
		return "", fmt.Errorf("copy before migration: %w", err)
	}
	for i := 1; i <= maxCopies; i++ {
		to := fmt.Sprintf("%s.v%d.bak", path, version)
		if i > 1 {
			to = fmt.Sprintf("%s.v%d-%d.bak", path, version, i)
		}
		same, err := sameContent(to, part)
		if same {
			return to, os.Remove(part)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return to, settle(part, to)
		}
		if err != nil {
			return "", err
		}
	}
	return "", core.Errorf(core.Conflict, "there are %d different copies of version %d beside the database: move some of them away", maxCopies, version)
}

// settle renames a file and has the new name on the disk.
func settle(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// sameContent compares two files.
func sameContent(a, b string) (bool, error) {
	fa, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer fa.Close()
	fb, err := os.Open(b)
	if err != nil {
		return false, err
	}
	defer fb.Close()
	ba, bb := make([]byte, 1<<16), make([]byte, 1<<16)
	for {
		na, errA := io.ReadFull(fa, ba)
		nb, errB := io.ReadFull(fb, bb)
		if !bytes.Equal(ba[:na], bb[:nb]) {
			return false, nil
		}
		if errA != nil || errB != nil {
			over := func(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }
			if over(errA) && over(errB) {
				return true, nil
			}
			return false, errors.Join(errA, errB)
		}
	}
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
