package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// pendingDir is the directory in the vault with a file for each backup that is being
// made: its name is the hash of the backup's path, its content the path. So a later
// process finds what a killed one left, wherever that is.
const pendingDir = ".parachute/backing-up"

// maxPending bounds the files that Sweep reads, maxPendingPath the bytes of each.
const (
	maxPending     = 1000
	maxPendingPath = 8192
)

// partials are what a backup at file has while it is made.
func partials(file string) []string {
	return []string{file + ".part.db", file + ".part.db-journal", file + ".part.db-wal", file + ".part.db-shm", file + ".part"}
}

// record notes that the backup, whose partial file is locked, is being made. A vault
// that cannot be written is no error: only the note is missing.
func (b *making) record() error {
	sum := sha256.Sum256([]byte(b.file))
	name := path.Join(pendingDir, hex.EncodeToString(sum[:16]))
	err := b.root.MkdirAll(pendingDir, 0o700)
	if err == nil {
		err = b.root.WriteFile(name, []byte(b.file), 0o600)
	}
	switch {
	case err == nil:
		b.note = name
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOSPC):
	default:
		return fmt.Errorf("note the backup in the vault: %w", err)
	}
	return nil
}

// Sweep deletes the partial files of backups of the vault that were killed, and
// returns the paths of these backups. One that is being made keeps its files.
func Sweep(vault string) (swept []string, err error) {
	root, err := os.OpenRoot(vault)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), pendingDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, e := range entries[:min(len(entries), maxPending)] {
		name := path.Join(pendingDir, e.Name())
		file, err := readPending(root, name)
		if err == nil && file != "" {
			var running bool
			if running, err = sweepOne(file); running {
				continue
			}
			swept = append(swept, file)
		}
		if err == nil {
			err = root.Remove(name)
		}
		errs = append(errs, err)
	}
	return swept, errors.Join(errs...)
}

// readPending returns the path in a note; "" if it is none.
func readPending(root *os.Root, name string) (string, error) {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPendingPath {
		return "", err
	}
	text, err := root.ReadFile(name)
	file := string(text)
	if err != nil || !filepath.IsAbs(file) || filepath.Clean(file) != file || strings.ContainsRune(file, 0) {
		return "", err
	}
	return file, nil
}

// sweepOne deletes the partial files of a backup unless it is being made.
func sweepOne(file string) (running bool, err error) {
	part, err := os.OpenFile(file+".part", os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err == nil {
		defer part.Close()
		if syscall.Flock(int(part.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			return true, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	var errs []error
	for _, name := range partials(file) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return false, errors.Join(errs...)
}
