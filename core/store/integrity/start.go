package integrity

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mattn/go-sqlite3"

	"gatehouse/core"
)

// OutOfFiles is core.OutOfFiles for errors of the database too.
func OutOfFiles(err error) bool {
	var e sqlite3.Error
	return core.OutOfFiles(err) || errors.As(err, &e) && core.OutOfFiles(e.SystemErrno)
}

// Explain states of an error of SQLite, about the database at path, what to do. Any other
// is returned as it is.
func Explain(path string, err error) error {
	var e sqlite3.Error
	if errors.As(err, &e) && !strings.Contains(err.Error(), "database "+path) {
		return Start(path, err)
	}
	return err
}

// Start states of an error of opening which database it is about and, if the disk is full, the file
// cannot be written or no file descriptor is left, what to do.
func Start(path string, err error) error {
	var e sqlite3.Error
	_ = errors.As(err, &e)
	is := func(codes []sqlite3.ErrNo, faults ...error) bool {
		for _, c := range codes {
			if e.Code == c {
				return true
			}
		}
		for _, f := range faults {
			if errors.Is(err, f) || e.SystemErrno != 0 && errors.Is(e.SystemErrno, f) {
				return true
			}
		}
		return false
	}
	switch {
	case OutOfFiles(err):
		return fmt.Errorf("database %s: no file descriptor is left: raise the limit (LimitNOFILE, ulimit -n): %w", path, err)
	case is([]sqlite3.ErrNo{sqlite3.ErrFull}, syscall.ENOSPC, syscall.EDQUOT):
		return fmt.Errorf("database %s: the disk is full: free space below %s and start again; nothing that was stored is lost: %w", path, filepath.Dir(path), err)
	case is([]sqlite3.ErrNo{sqlite3.ErrReadonly, sqlite3.ErrPerm}, syscall.EROFS, syscall.EACCES, syscall.EPERM):
		return fmt.Errorf("database %s cannot be written: give it and its folder to the user that runs the gateway (chown), or mount the disk writable: %w", path, err)
	}
	return fmt.Errorf("database %s: %w", path, err)
}
