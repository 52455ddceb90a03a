package store

import (
	"context"
	"fmt"
	"runtime/debug"
)

// Try runs f so that it can fail alone: what it wrote is undone, with what it
// asked of OnCommit, and failed is its error (or its panic, as an error). With
// err the transaction itself is over, and the closure must end.
func (t *Tx) Try(_ context.Context, f func() error) (failed, err error) {
	if err := t.db.exec("SAVEPOINT try"); err != nil {
		return nil, fmt.Errorf("savepoint: %w", err)
	}
	after := len(t.after)
	if failed = calm(f); failed != nil {
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

// calm runs f and makes its panic an error.
func calm(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}
