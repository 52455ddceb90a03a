package carry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store/migrations"
)

// A kind is a type of a column, as SQLite's layout names it.
type kind string

const (
	integer kind = "INTEGER"
	text    kind = "TEXT"
	blob    kind = "BLOB"
	double  kind = "DOUBLE PRECISION"
)

// A column of a table.
type column struct {
	name string
	kind kind
}

// A table as both sides have it.
type table struct {
	name     string
	columns  []column
	key      []string // columns of the primary key, in its order
	parents  []string // tables that it refers to
	identity string   // the column that the database numbers; "" for none
	words    bool     // a full-text table: of FTS5 on SQLite, plain on PostgreSQL
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func find(list []table, name string) (table, bool) {
	i := slices.IndexFunc(list, func(t table) bool { return t.name == name })
	if i < 0 {
		return table{}, false
	}
	return list[i], true
}

// names returns the columns for a statement.
func (t table) names() string {
	var list []string
	for _, c := range t.columns {
		list = append(list, quote(c.name))
	}
	return strings.Join(list, ", ")
}

// join returns the table with what the other side knows of it.
func (t table) join(other table) (table, error) {
	t.words, t.identity = t.words || other.words, cmp.Or(t.identity, other.identity)
	for _, c := range t.columns {
		if !slices.Contains([]kind{integer, text, blob, double}, c.kind) {
			return t, fmt.Errorf("column %s.%s has the unknown type %s", t.name, c.name, c.kind)
		}
		if !slices.Contains(other.columns, c) {
			return t, core.Errorf(core.Invalid, "the databases do not have the same column %s.%s: both must be made by this program alone", t.name, c.name)
		}
	}
	if len(t.key) == 0 {
		return t, fmt.Errorf("table %s has no primary key", t.name)
	}
	return t, nil
}

// sorted returns the tables with those first that others refer to, and the full-text
// tables last.
func sorted(list []table) (order []table, err error) {
	for _, words := range []bool{false, true} {
		for added := true; added; {
			added = false
			for _, t := range list {
				if _, done := find(order, t.name); done || t.words != words {
					continue
				}
				if slices.ContainsFunc(t.parents, func(p string) bool { _, ok := find(order, p); return !ok && p != t.name }) {
					continue
				}
				order, added = append(order, t), true
			}
		}
	}
	if len(order) < len(list) {
		return nil, fmt.Errorf("tables refer to each other in a circle or to one that is missing")
	}
	return order, nil
}

// Tables that are not copied: each side has its own migrations, and its own gateways, of which
// one that stands by notes that it is alive at any time.
const (
	ledger = "schema_version"
	nodes  = "nodes"
)

// tables lists the tables of the database, by name.
func (s *Side) tables(ctx context.Context, q conn) (list []table, err error) {
	query := `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' AND table_name NOT IN ($1, $2) ORDER BY 1`
	if s.engine == migrations.SQLite {
		query = `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual') AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT IN ($1, $2) ORDER BY 1`
	}
	names, err := texts(ctx, q, query, ledger, nodes)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		t := table{name: name}
		if s.engine == migrations.SQLite {
			err = t.describeSQLite(ctx, q)
		} else {
			err = t.describePostgres(ctx, q)
		}
		if err != nil {
			return nil, fmt.Errorf("table %s of %s: %w", name, s.name, err)
		}
		list = append(list, t)
	}
	return list, nil
}

func (t *table) describeSQLite(ctx context.Context, q conn) error {
	virtual, err := texts(ctx, q, `SELECT type FROM pragma_table_list WHERE schema = 'main' AND name = $1 AND type = 'virtual'`, t.name)
	if err != nil {
		return err
	}
	if t.words = len(virtual) > 0; t.words {
		t.columns, t.key = []column{{rowid, integer}}, []string{rowid}
	}
	columns, err := texts(ctx, q, `SELECT name || ' ' || CASE WHEN ?2 THEN 'TEXT' ELSE upper(type) END FROM pragma_table_info(?1) ORDER BY cid`, t.name, t.words)
	if err != nil {
		return err
	}
	t.addColumns(columns)
	key, err := texts(ctx, q, `SELECT name FROM pragma_table_info($1) WHERE pk > 0 ORDER BY pk`, t.name)
	if err != nil {
		return err
	}
	t.key = append(t.key, key...)
	if counts, err := texts(ctx, q, `SELECT name FROM sqlite_master WHERE type = 'table' AND name = $1 AND sql LIKE '%AUTOINCREMENT%'`, t.name); err != nil {
		return err
	} else if len(counts) > 0 {
		t.identity = t.key[0]
	}
	t.parents, err = texts(ctx, q, `SELECT DISTINCT "table" FROM pragma_foreign_key_list($1)`, t.name)
	return err
}

func (t *table) describePostgres(ctx context.Context, q conn) error {
	columns, err := texts(ctx, q, `SELECT column_name || ' ' || CASE data_type WHEN 'bigint' THEN 'INTEGER' WHEN 'text' THEN 'TEXT' WHEN 'bytea' THEN 'BLOB' ELSE upper(data_type) END
		FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position`, t.name)
	if err != nil {
		return err
	}
	t.addColumns(columns)
	identity, err := texts(ctx, q, `SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1 AND is_identity = 'YES'`, t.name)
	if err != nil {
		return err
	}
	if len(identity) > 0 {
		t.identity = identity[0]
	}
	const constraint = ` FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid JOIN pg_namespace n ON n.oid = r.relnamespace `
	if t.key, err = texts(ctx, q, `SELECT a.attname`+constraint+`CROSS JOIN LATERAL unnest(c.conkey) WITH ORDINALITY AS k(n, at)
		JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.n WHERE c.contype = 'p' AND n.nspname = current_schema() AND r.relname = $1 ORDER BY k.at`, t.name); err != nil {
		return err
	}
	t.parents, err = texts(ctx, q, `SELECT DISTINCT p.relname`+constraint+`JOIN pg_class p ON p.oid = c.confrelid WHERE c.contype = 'f' AND n.nspname = current_schema() AND r.relname = $1`, t.name)
	return err
}

// addColumns adds columns, each a name, a space and its type.
func (t *table) addColumns(list []string) {
	for _, c := range list {
		name, of, _ := strings.Cut(c, " ")
		t.columns = append(t.columns, column{name, kind(of)})
	}
}
