package store

import (
	"context"
	"fmt"
	"runtime/debug"
)

// Try runs f in a savepoint: if it fails, its writes and its calls of OnCommit are
// undone, and failed is its error (or its panic, as an error). If err is not nil
// the transaction has ended, and the closure must return.
func (t *Tx) Try(_ context.Context, f func() error) (failed, err error) {
	if err := t.db.exec("SAVEPOINT try"); err != nil {
		return nil, fmt.Errorf("savepoint: %w", err)
	}
	after := len(t.after)
	if failed = recovered(f); failed != nil {
		t.after = t.after[:after]
		if err := t.db.exec("ROLLBACK TO try"); err != nil {
			return failed, fmt.Errorf("roll back: %w", err) // SQLite gave everything up (full disk, I/O error)
		}
	}
	if err := t.db.exec("RELEASE try"); err != nil {
		return failed, fmt.Errorf("release: %w", err)
	}
	return failed, nil
}

// recovered runs f and makes its panic an error.
func recovered(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}
