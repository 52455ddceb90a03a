package migrations

import (
	"context"
	"database/sql"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "github.com/mattn/go-sqlite3"
	"github.com/pressly/goose/v3"

	"gatehouse/core"
)

var update = flag.Bool("update", false, "write layout/sqlite.sql anew")

func ledger() Ledger { return Ledger{Engine: SQLite, Clock: core.System{}} }

func empty(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(t.TempDir(), "new.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// rows returns the first column of a query's rows.
func rows(t *testing.T, db *sql.DB, query string) (out []string) {
	t.Helper()
	r, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer r.Close()
	for r.Next() {
		var s string
		if err := r.Scan(&s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// values returns an expression that is the whole row of a table as SQL's literals.
func values(t *testing.T, db *sql.DB, table string) string {
	t.Helper()
	var parts []string
	for _, c := range rows(t, db, `SELECT name FROM pragma_table_info('`+table+`')`) {
		parts = append(parts, `quote("`+c+`")`)
	}
	return strings.Join(parts, ` || ', ' || `)
}

// script writes a database as statements: its tables in the order in which they were made, then rows.
func script(t *testing.T, db *sql.DB) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("-- What all migrations make of an empty file. Written by create_test.go: do not edit.\n")
	const own = ` FROM sqlite_master WHERE sql <> '' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
		AND NOT EXISTS (SELECT 1 FROM pragma_table_list l WHERE l.name = tbl_name AND l.type = 'shadow')`
	for _, sql := range rows(t, db, `SELECT sql`+own+` ORDER BY type <> 'table', rowid`) {
		b.WriteString(sql + ";\n")
	}
	for _, table := range rows(t, db, `SELECT name`+own+` AND type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' AND name <> 'schema_version' UNION ALL SELECT 'sqlite_sequence'`) {
		for _, row := range rows(t, db, `SELECT `+values(t, db, table)+` FROM "`+table+`"`) {
			b.WriteString("INSERT INTO " + table + " VALUES (" + row + ");\n")
		}
	}
	for _, words := range rows(t, db, `SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%' ORDER BY rowid`) { // settings of the search
		for _, set := range rows(t, db, `SELECT quote(k) || ', ' || quote(v) FROM `+words+`_config WHERE k <> 'version'`) {
			b.WriteString("INSERT INTO " + words + "(" + words + ", rank) VALUES (" + set + ");\n")
		}
	}
	return b.String()
}

// everything returns what a database holds: its layout, and every row of every table.
func everything(t *testing.T, db *sql.DB) (out []string) {
	t.Helper()
	out = rows(t, db, `SELECT type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(sql, '') FROM sqlite_master`)
	for _, table := range rows(t, db, `SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'schema_version' AND sql NOT LIKE 'CREATE VIRTUAL%'`) {
		for _, row := range rows(t, db, `SELECT `+values(t, db, table)+` FROM "`+table+`"`) {
			out = append(out, table+": "+row)
		}
	}
	for _, version := range rows(t, db, `SELECT version FROM schema_version`) {
		out = append(out, "version "+version)
	}
	slices.Sort(out)
	return out
}

func TestANewDatabaseIsAsTheMigrationsMakeIt(t *testing.T) {
	migrated, created := empty(t), empty(t)
	p, err := goose.NewProvider("", migrated, Files(SQLite), goose.WithStore(ledger()), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if *update {
		layout = script(t, migrated)
		if err := os.WriteFile("layout/sqlite.sql", []byte(layout), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if made, err := Create(t.Context(), created, ledger()); err != nil || !made {
		t.Fatal(made, err)
	}
	if diff := cmp.Diff(everything(t, migrated), everything(t, created)); diff != "" {
		t.Errorf("write layout/sqlite.sql anew with: go test ./core/store/migrations -run NewDatabase -update (-migrations +layout)\n%s", diff)
	}
	if made, err := Create(t.Context(), created, ledger()); err != nil || made {
		t.Errorf("a database that has a ledger was made again: %v, %v", made, err)
	}
}

// A start that is cut leaves an empty file, not half of a layout.
func TestANewDatabaseIsMadeWholeOrNotAtAll(t *testing.T) {
	db := empty(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if made, err := Create(ctx, db, ledger()); err == nil || made {
		t.Errorf("made %v, %v with a context that has ended", made, err)
	}
	before := layout
	layout += "\nCREATE TABLE inbox (id TEXT);"
	_, err := Create(t.Context(), db, ledger())
	if layout = before; err == nil || !strings.Contains(err.Error(), "inbox") {
		t.Errorf("a script that fails is %v", err)
	}
	if tables := rows(t, db, `SELECT name FROM sqlite_master`); len(tables) > 0 {
		t.Errorf("left: %v", tables)
	}
	if made, err := Create(t.Context(), db, ledger()); err != nil || !made {
		t.Errorf("made %v, %v", made, err)
	}
}

func TestAMigrationWithoutANumberIsRefusedByANewDatabase(t *testing.T) {
	if got, err := versions([]string{"1001_baseline.sql", "1002_tool_grants.sql"}); err != nil || !slices.Equal(got, []int64{0, 1001, 1002}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, name := range []string{"baseline.sql", "x_baseline.sql", "0_baseline.sql"} {
		if got, err := versions([]string{"1001_baseline.sql", name}); err == nil {
			t.Errorf("%s is recorded: %v", name, got)
		}
	}
}
