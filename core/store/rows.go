package store

import (
	"context"
	"fmt"
)

// Rows are what a statement finds, each row by the names of its columns, for
// exports. The statement bounds how many.
func Rows(ctx context.Context, d *DB, query string, args ...any) ([]map[string]any, error) {
	found, err := d.read.QueryxContext(ctx, d.engine.bind(query), args...)
	if err != nil {
		return nil, fmt.Errorf("rows: %w", err)
	}
	defer found.Close()
	all := []map[string]any{}
	for found.Next() {
		row := map[string]any{}
		if err := found.MapScan(row); err != nil {
			return nil, fmt.Errorf("rows: %w", err)
		}
		for name, v := range row {
			if b, ok := v.([]byte); ok {
				row[name] = string(b)
			}
		}
		all = append(all, row)
	}
	return all, found.Err()
}
