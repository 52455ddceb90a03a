package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of what is recalled.
const (
	maxRecalled = 4096
	recallFor   = time.Minute // all of it is forgotten this long after the first
)

// Recall returns the result of Get from a cache, for queries that are frequent and
// rarely change: within transactions the result is kept until a table that the
// query reads is written, or a transaction was rolled back. So it always equals
// that of Get. T is a scalar or a struct of scalars with db tags. The query must
// not compare with the present time: the caller does that with the result.
//
// Outside of transactions, and on PostgreSQL, which has other writers, each call
// queries the database.
func Recall[T any](ctx context.Context, q Queryer, query string, args ...any) (T, error) {
	t, ok := q.(*Tx)
	if !ok || t.db.known == nil {
		var found T
		err := q.Get(ctx, &found, query, args...)
		return found, err
	}
	k := t.db.known
	key := recallKey(query, args)
	var found T
	tables, err := t.db.tablesOf(query, args)
	if err != nil {
		return found, err
	}
	if a, ok := k.answers[key]; ok && a.at == k.version(tables) {
		if found, ok := a.value.(T); ok {
			return found, a.err
		}
	}
	err = t.Get(ctx, &found, query, args...)
	if err != nil && !errors.Is(err, ErrNoRows) {
		return found, err
	}
	if len(k.answers) >= maxRecalled {
		clear(k.answers)
	}
	k.answers[key] = answer{found, err, k.version(tables)}
	return found, err
}

// recalled is what Recall keeps; the writer's goroutine alone uses it.
type recalled struct {
	answers map[question]answer // at most maxRecalled
	reads   map[string][]string // the tables of each query; bounded by the queries in the code
	since   time.Time
	writes  map[string]int64 // by table: the number of statements that wrote it
	undone  int64            // what may have changed anything: a rollback, a deletion with its cascades, another connection's commit
	foreign int64            // SQLite's data_version
}

type question struct{ query, args string }

type answer struct {
	value any
	err   error // nil or ErrNoRows
	at    int64
}

func newRecalled() *recalled {
	return &recalled{answers: map[question]answer{}, reads: map[string][]string{}, writes: map[string]int64{}}
}

// tablesOf returns the tables that a query reads, from the program that SQLite
// compiles for it: it opens a table or its index.
func (d *DB) tablesOf(query string, args []any) ([]string, error) {
	if tables, ok := d.known.reads[query]; ok {
		return tables, nil
	}
	tables, err := d.opened(query, args)
	if err != nil {
		return nil, fmt.Errorf("tables of a query: %w", err)
	}
	d.known.reads[query] = tables
	return tables, nil
}

func (d *DB) opened(query string, args []any) (tables []string, err error) {
	ctx := context.Background()
	rows, err := d.conn.QueryxContext(ctx, "EXPLAIN "+d.engine.bind(query), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var roots []int64
	for rows.Next() {
		step := map[string]any{}
		if err := rows.MapScan(step); err != nil {
			return nil, err
		}
		if root, ok := step["p2"].(int64); ok && step["opcode"] == "OpenRead" {
			roots = append(roots, root)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	for _, root := range roots {
		var table string
		if err := d.conn.GetContext(ctx, &table, `SELECT tbl_name FROM sqlite_master WHERE rootpage = ?`, root); err != nil {
			return nil, err
		}
		tables = append(tables, table)
	}
	slices.Sort(tables)
	return slices.Compact(tables), nil
}

// version grows with everything that may change an answer from tables.
func (k *recalled) version(tables []string) int64 {
	v := k.undone
	for _, t := range tables {
		v += k.writes[t]
	}
	return v
}

func recallKey(query string, args []any) question {
	if len(args) == 1 {
		if s, ok := args[0].(string); ok {
			return question{query, s}
		}
	}
	b := make([]byte, 0, 96)
	for _, a := range args {
		from := len(b)
		switch a := a.(type) {
		case string:
			b = append(b, a...)
		case int64:
			b = strconv.AppendInt(b, a, 10)
		default:
			b = fmt.Append(b, a)
		}
		b = strconv.AppendInt(append(b, 0), int64(len(b)-from), 10) // no two lists of arguments are alike
		b = append(b, 0)
	}
	return question{query, string(b)}
}

// wrote notes that a statement that writes table was run; "*" is any table.
func (k *recalled) wrote(table string) {
	switch {
	case k == nil || table == "":
	case table == "*":
		k.undone++
	default:
		k.writes[table]++
	}
}

// fresh forgets what is old, and all when another connection has written: the
// migrations', or another program's. It is called when a transaction has begun.
func (d *DB) fresh(now time.Time) error {
	k := d.known
	if k == nil || len(k.answers) == 0 {
		return nil
	}
	var version int64
	s, err := d.stmt("PRAGMA data_version")
	if err == nil {
		err = s.QueryRowx().Scan(&version)
	}
	if err != nil {
		return fmt.Errorf("data version: %w", err)
	}
	if age := now.Sub(k.since); version != k.foreign || age < 0 || age > recallFor {
		clear(k.answers)
		k.foreign, k.since = version, now
	}
	return nil
}

// writing are keywords without which no statement writes.
var writing = []string{"INSERT", "UPDATE", "DELETE", "REPLACE"}

// written returns the table that a statement writes: "" for none, "*" where it may
// write more than the one it names, as a deletion's cascades are.
func written(query string) string {
	words := strings.Fields(query)
	word := func(i int) string {
		if i < len(words) {
			return strings.ToUpper(words[i])
		}
		return ""
	}
	table := ""
	switch word(0) {
	case "SELECT", "BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "PRAGMA":
		return ""
	case "WITH":
		if !slices.ContainsFunc(words, func(w string) bool { return slices.Contains(writing, strings.ToUpper(w)) }) {
			return ""
		}
	case "UPDATE":
		table = words[min(1, len(words)-1)]
	case "INSERT":
		if word(1) == "INTO" && len(words) > 2 {
			table = words[2]
		}
	}
	table, _, _ = strings.Cut(table, "(")
	if table == "" || strings.ContainsFunc(table, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		return "*" // DELETE, ROLLBACK, WITH, INSERT OR, what is quoted: all of it may be another
	}
	return table
}
