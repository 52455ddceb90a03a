package migrations

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

	"gatehouse/core"
)

// maxCopies bounds the different copies of one version that are kept.
const maxCopies = 100

// KeepCopy writes a consistent copy of the database next to it, readable by its
// owner only, syncs it and returns its path. An earlier copy of the same version
// stays: if it is identical it is used, else the new one gets another name.
func KeepCopy(ctx context.Context, db *sql.DB, path string, version int64) (string, error) {
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
			return to, renameDurably(part, to)
		}
		if err != nil {
			return "", err
		}
	}
	return "", core.Errorf(core.Conflict, "there are %d different copies of version %d next to the database: move some of them away", maxCopies, version)
}

// renameDurably renames a file and has the new name on the disk.
func renameDurably(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return core.SyncDir(filepath.Dir(to))
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
