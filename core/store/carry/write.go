package carry

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"gatehouse/core/store/migrations"
)

// Limits of a batch, which is one statement and one commit.
const (
	batchRows       = 500
	batchBytes      = 4 << 20
	batchParameters = 30_000 // SQLite takes 32,766 of a statement, PostgreSQL 65,535
)

// A writer inserts the rows of one table in batches.
type writer struct {
	conn   *sql.Conn
	engine migrations.Engine
	table  table
	limit  int    // rows of a batch
	full   string // the statement for limit rows
	words  bool   // texts get spaces around them (store.Tx.Words)

	rows [][]any
	size int // bytes
}

func newWriter(c *sql.Conn, engine migrations.Engine, t table) *writer {
	limit := min(batchRows, batchParameters/len(t.columns))
	return &writer{conn: c, engine: engine, table: t, limit: limit, full: insertText(engine, t, limit), words: t.words && engine == migrations.Postgres}
}

// insertText returns the statement that inserts n rows. SQLite compares each parameter with
// a name or number to all before it.
func insertText(engine migrations.Engine, t table, n int) string {
	var b strings.Builder
	b.WriteString(`INSERT INTO ` + quote(t.name) + ` (` + t.names() + `) VALUES `)
	before, number := "(", 0
	for range n {
		for range t.columns {
			number++
			parameter := "?"
			if engine == migrations.Postgres {
				parameter = "$" + strconv.Itoa(number)
			}
			b.WriteString(before + parameter)
			before = ", "
		}
		b.WriteByte(')')
		before = ", ("
	}
	return b.String()
}

// add collects a row and reports whether the batch is full.
func (w *writer) add(row []any, size int) (full bool) {
	if w.words {
		for i, v := range row {
			if s, ok := v.(string); ok {
				row[i] = " " + s + " "
			}
		}
	}
	w.rows = append(w.rows, row)
	w.size += size
	return len(w.rows) >= w.limit || w.size >= batchBytes
}

// flush inserts and commits what was collected.
func (w *writer) flush(ctx context.Context) error {
	if len(w.rows) == 0 {
		return nil
	}
	text := w.full
	if len(w.rows) != w.limit {
		text = insertText(w.engine, w.table, len(w.rows))
	}
	args := make([]any, 0, len(w.rows)*len(w.table.columns))
	for _, row := range w.rows {
		args = append(args, row...)
	}
	if _, err := w.conn.ExecContext(ctx, text, args...); err != nil {
		return w.blame(ctx, err)
	}
	w.rows, w.size = w.rows[:0], 0
	return nil
}

// blame returns the error of a batch with the key of the row that caused it.
func (w *writer) blame(ctx context.Context, failed error) error {
	if ctx.Err() != nil {
		return failed
	}
	tx, err := w.conn.BeginTx(ctx, nil)
	if err != nil {
		return failed
	}
	defer func() { _ = tx.Rollback() }()
	one := insertText(w.engine, w.table, 1)
	for _, row := range w.rows {
		if _, err := tx.ExecContext(ctx, one, row...); err != nil {
			return fmt.Errorf("row %s: %w", w.table.keyOf(row), err)
		}
	}
	return failed
}
