package store

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core/store/cmemory"
	"gatehouse/core/store/migrations"
)

// Rest frees the caches of the connections: pages of the database, idle readers
// and the writer's prepared statements. They are created again when needed, and
// nothing that is stored or running is affected. Call it when the program is
// idle.
func (d *DB) Rest(ctx context.Context) error {
	if d.engine.kind != migrations.SQLite {
		return nil
	}
	d.read.SetMaxIdleConns(1)
	d.read.SetMaxIdleConns(readers)
	_, err := d.read.ExecContext(ctx, `PRAGMA shrink_memory`)
	err = errors.Join(err, d.between(ctx, func(ctx context.Context) error {
		d.forgetStatements()
		_, err := d.conn.ExecContext(ctx, `PRAGMA shrink_memory`)
		return err
	}))
	cmemory.Trim()
	if err != nil {
		return fmt.Errorf("give memory back: %w", err)
	}
	return nil
}

// between runs f on the writer's goroutine, between transactions. ctx bounds the
// wait for it.
func (d *DB) between(ctx context.Context, f func(context.Context) error) error {
	j := &job{ctx: context.WithoutCancel(ctx), done: make(chan struct{})}
	j.alone = func() error { return f(j.ctx) }
	return d.do(ctx, j)
}

// Prepared returns how many statements the writer keeps prepared: each text that Tx has
// run since Rest.
func (d *DB) Prepared(ctx context.Context) (n int, err error) {
	err = d.between(ctx, func(context.Context) error {
		n = len(d.stmts)
		return nil
	})
	return n, err
}

// forgetStatements closes the writer's prepared statements, and forgets what is
// recalled; on its goroutine alone.
func (d *DB) forgetStatements() {
	if d.known != nil {
		d.known.answers = map[question]answer{} // clear would keep its size
	}
	for text, s := range d.stmts {
		_ = s.Close()
		delete(d.stmts, text)
	}
}
