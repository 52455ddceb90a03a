// Package storetest opens fresh databases for the tests of packages that own tables.
//
// Tests run on SQLite. With GATEHOUSE_TEST_PG, the postgres:// URL of a server
// for tests, Open and Fresh give PostgreSQL databases instead, so that a second
// run of the same tests is about that; make postgres-test does it.
package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/tenure"
)

// Open returns a new database, closed at the test's end. A nil clock is the system's.
func Open(t testing.TB, clock core.Clock) *store.DB {
	t.Helper()
	return OpenAt(t, migrated(t), clock)
}

// migrated names a new database that store.Open finds at this program's version.
func migrated(t testing.TB) string {
	t.Helper()
	if server() != "" {
		return copied(t)
	}
	path := Fresh(t)
	Seed(t, path)
	return path
}

// Seed creates a migrated SQLite database at path, so that store.Open has nothing
// to migrate: that saves hundreds of tests the time.
func Seed(t testing.TB, path string) {
	t.Helper()
	b, err := fresh()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fresh is the content of a new database, made once.
var fresh = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "gatehouse-seed")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "seed.db")
	db, err := store.Open(context.Background(), path, store.Options{})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil { // with which all of it is in the one file
		return nil, err
	}
	return os.ReadFile(path)
})

// OpenAt opens the database at path, closed at the test's end (closing earlier is fine).
func OpenAt(t testing.TB, path string, clock core.Clock) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), path, store.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Fresh names a new, empty database for store.Open: a file in the test's own
// directory, or a schema of the PostgreSQL server's, dropped at the test's end.
func Fresh(t testing.TB) string {
	t.Helper()
	if server() == "" {
		return filepath.Join(t.TempDir(), "test.db")
	}
	schema := "test_" + strings.ToLower(rand.Text())
	onServer(t, `CREATE SCHEMA `+schema)
	t.Cleanup(func() { onServer(t, `DROP SCHEMA `+schema+` CASCADE`) })
	at, err := address("", schema)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Beside returns the database of a gateway whose files are in dir: "" on SQLite, where
// it is one of the files, else the same one each time in a test, migrated from the start.
func Beside(t testing.TB, dir string) string {
	t.Helper()
	if server() == "" {
		return ""
	}
	note := filepath.Join(dir, "postgres")
	if b, err := os.ReadFile(note); err == nil {
		return string(b)
	}
	at := migrated(t)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(note, []byte(at), 0o600)); err != nil {
		t.Fatal(err)
	}
	return at
}

// EndHolder is a query that ends the session of the gateway that has the database on a
// server, and returns how many sessions were ended.
const EndHolder = `SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND granted
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND (classid::bigint << 32) + objid::bigint = ` + tenure.LockKey + ` AND pid <> pg_backend_pid()`

// Postgres reports whether Open gives PostgreSQL databases in this run.
func Postgres() bool { return server() != "" }

// SQLiteOnly skips a test in the run on PostgreSQL; what is the reason.
func SQLiteOnly(t testing.TB, what string) {
	t.Helper()
	if Postgres() {
		t.Skip("about SQLite alone: " + what)
	}
}

// PostgresOnly skips a test in the run on SQLite; what is the reason.
func PostgresOnly(t testing.TB, what string) {
	t.Helper()
	if !Postgres() {
		t.Skip("about PostgreSQL alone (make postgres-test): " + what)
	}
}

// Runs fails when Open does not give what this run asks for, by asking the
// database itself. .ci/postgres counts the tests that call it: a run that was
// not on PostgreSQL is not taken for one that was.
func Runs(t testing.TB) {
	t.Helper()
	PostgresOnly(t, "that the tests run there")
	var name string
	if err := Open(t, nil).Get(context.Background(), &name, `SELECT version()`); err != nil || !strings.HasPrefix(name, "PostgreSQL ") {
		t.Errorf("the database calls itself %q, %v", name, err)
	}
}

// Main is TestMain for packages with tests that must leave no goroutine behind,
// except for the one that ends a database.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// A Step is one line of what SQLite does for a query.
type Step struct {
	ID, Parent, Notused int
	Detail              string
}

// Plan returns SQLite's query plan.
func Plan(t testing.TB, db *store.DB, query string, args ...any) (steps []Step) {
	t.Helper()
	if err := db.Select(context.Background(), &steps, "EXPLAIN QUERY PLAN "+query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return steps
}
