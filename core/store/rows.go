package store

import (
	"context"
	"fmt"
	"strings"
)

// Rows returns the rows of a statement by the names of their columns, for exports.
// The statement limits how many.
func Rows(ctx context.Context, d *DB, query string, args ...any) ([]map[string]any, error) {
	d.reads.Add(1)
	found, err := d.read.QueryxContext(ctx, d.engine.bind(query), d.engine.args(args)...)
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

// Tuples returns placeholders for rows of columns, from $1 on, for VALUES and IN:
// "($1, $2), ($3, $4)". Cast a parameter that is not text where it is used.
func Tuples(rows, columns int) string {
	var b strings.Builder
	for i := range rows * columns {
		switch {
		case i%columns > 0:
			b.WriteString(", ")
		case i > 0:
			b.WriteString("), (")
		default:
			b.WriteString("(")
		}
		fmt.Fprintf(&b, "$%d", i+1)
	}
	b.WriteString(")")
	return b.String()
}
