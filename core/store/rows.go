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
	return d.read.Rows(ctx, d.engine.bind(query), d.engine.args(args)...)
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
