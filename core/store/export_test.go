package store

import (
	"context"
	"log/slog"

	"gatehouse/core"
)

// AdoptStepwise is the adoption alone; step is called before each statement
// and ends it with an error.
func AdoptStepwise(ctx context.Context, path string, clock core.Clock, step func(string) error) error {
	_, err := adopt(ctx, path, Options{Clock: clock, Log: slog.New(slog.DiscardHandler)}, step)
	return err
}

// AuditScan is how many rows of the log one page looks at.
const AuditScan = auditScan

// AuditText is the part of a page that walks an index.
func AuditText(f AuditFilter) (string, []any, error) {
	l, err := f.query()
	if err != nil {
		return "", nil, err
	}
	return l.scan(auditScan), l.early, nil
}

// WithoutServer runs f as a program does that links no driver of PostgreSQL.
func WithoutServer(f func()) {
	was := server
	server = nil
	defer func() { server = was }()
	f()
}

// Waiting reports whether the last commit is in the page cache alone.
func (d *DB) Waiting(ctx context.Context) (waiting bool, err error) {
	err = d.between(ctx, func(context.Context) error {
		waiting = d.waiting
		return nil
	})
	return waiting, err
}

// LevelOf is the level at which a group commits whose transactions are soon or not.
func (d *DB) LevelOf(ctx context.Context, soon []bool) (level int, err error) {
	err = d.between(ctx, func(context.Context) error {
		group := make([]*job, len(soon))
		for i := range soon {
			group[i] = &job{soon: soon[i]}
		}
		if err := d.durable(group); err != nil {
			return err
		}
		return d.conn.GetContext(ctx, &level, `PRAGMA synchronous`)
	})
	return level, err
}

// Kept is what the connections hold ready: the writer's prepared statements, and
// readers that nobody uses.
func (d *DB) Kept(ctx context.Context) (statements, idle int, err error) {
	err = d.between(ctx, func(context.Context) error {
		statements, idle = len(d.stmts), d.read.Stats().Idle
		return nil
	})
	return statements, idle, err
}

// Hurry has the writer wait a moment at most for other connections.
func (d *DB) Hurry(ctx context.Context) error {
	return d.between(ctx, func(ctx context.Context) error {
		_, err := d.conn.ExecContext(ctx, `PRAGMA busy_timeout = 20`)
		return err
	})
}
