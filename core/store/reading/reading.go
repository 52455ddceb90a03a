// Package reading reads from a database, and again where a server ends connections.
package reading

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// A Pool is connections that only read.
type Pool struct {
	*sqlx.DB
	Ended func(error) bool // whether an error means that a connection that was there is lost
}

// again runs f until it fails in another way than by the end of the connection that was
// used, once for each that may be open and once more: after a server was started anew, all
// that the pool keeps are lost, and each is noticed when it is used.
func (p Pool) again(f func() error) (err error) {
	if err = f(); !p.Ended(err) {
		return err
	}
	for range p.Stats().MaxOpenConnections {
		if err = f(); !p.Ended(err) {
			break
		}
	}
	return err
}

// Get reads one row.
func (p Pool) Get(ctx context.Context, dest any, query string, args ...any) error {
	return p.again(func() error { return p.GetContext(ctx, dest, query, args...) })
}

// Select reads all rows into the slice that dest points to, in place of what it holds.
func (p Pool) Select(ctx context.Context, dest any, query string, args ...any) error {
	return p.again(func() error { return p.SelectContext(ctx, dest, query, args...) })
}

// Rows returns the rows of a statement by the names of their columns.
func (p Pool) Rows(ctx context.Context, query string, args ...any) (all []map[string]any, err error) {
	err = p.again(func() error {
		all = []map[string]any{}
		found, err := p.QueryxContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer found.Close()
		for found.Next() {
			row := map[string]any{}
			if err := found.MapScan(row); err != nil {
				return err
			}
			for name, v := range row {
				if b, ok := v.([]byte); ok {
					row[name] = string(b)
				}
			}
			all = append(all, row)
		}
		return found.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("rows: %w", err)
	}
	return all, nil
}
