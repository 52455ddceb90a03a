package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"

	"gatehouse/core"
	"gatehouse/core/store/migrations"
)

// Newest returns the number of this program's newest migration.
func Newest() int64 { return migrations.Newest(migrations.SQLite) }

// migrate migrates the database, which adoption has read, to this program's
// version. If it existed, it keeps a copy next to it first.
func (d *DB) migrate(ctx context.Context, existed bool) error {
	ledger := migrations.Ledger{Engine: d.engine.kind, Clock: d.clock}
	newest := migrations.Newest(d.engine.kind)
	have, err := ledger.Version(ctx, d.write.DB)
	if err != nil || have == newest {
		return err // at most starts nothing is to be done, and goose would read all texts first
	}
	p, err := goose.NewProvider("", d.write.DB, migrations.Files(d.engine.kind), goose.WithStore(ledger), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	if existed && have != 0 {
		kept, err := keepCopy(ctx, d.write.DB, d.path, have)
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

// maxCopies bounds the different copies of one version that are kept.
const maxCopies = 100

// keepCopy writes a consistent copy of the database next to it, readable by its
// owner only, syncs it and returns its path. An earlier copy of the same version
// stays: if it is identical it is used, else the new one gets another name.
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
