package storetest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"gatehouse/core/store"
	"gatehouse/core/store/migrations"
	"gatehouse/core/store/postgres"
)

// server returns the URL of the PostgreSQL server for tests, "" without one.
func server() string { return os.Getenv("GATEHOUSE_TEST_PG") }

// address is the server's, of a schema in one of its databases; "" is the one that
// GATEHOUSE_TEST_PG names.
func address(database, schema string) (string, error) {
	u, err := url.Parse(server())
	if err != nil {
		return "", errors.New("GATEHOUSE_TEST_PG is not a URL")
	}
	if database != "" {
		u.Path = "/" + database
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// onServer runs one statement over a connection of its own.
func onServer(t testing.TB, query string) {
	t.Helper()
	db, err := postgres.Open(server(), "", false, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(context.Background(), query); err != nil {
		t.Fatalf("PostgreSQL for tests: %s: %v", query, err)
	}
}

// schema is where the tables of copied databases are.
const schema = "gatehouse"

// copied names a migrated database of the server's, dropped at the test's end. The
// server copies its files, in a third of the time that migrating takes.
func copied(t testing.TB) string {
	t.Helper()
	from, err := template()
	if err != nil {
		t.Fatal("PostgreSQL for tests: the database to copy: ", err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	onServer(t, `CREATE DATABASE `+name+` TEMPLATE `+from+` STRATEGY FILE_COPY`)
	t.Cleanup(func() { onServer(t, `DROP DATABASE `+name+` WITH (FORCE)`) })
	at, err := address(name, schema)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// template returns the database of the server's that has been migrated, for all who
// copy it. The first of the processes that share the server makes it.
var template = sync.OnceValues(func() (string, error) {
	ctx := context.Background()
	name, err := templateName()
	if err != nil {
		return "", err
	}
	db, err := postgres.Open(server(), "", false, 1)
	if err != nil {
		return "", err
	}
	defer db.Close() // and with it the lock
	if _, err := db.ExecContext(ctx, `SELECT pg_advisory_lock(hashtextextended($1, 0))`, name); err != nil {
		return "", err
	}
	var state []bool // whether it is whole, if it is there
	if err := db.SelectContext(ctx, &state, `SELECT datistemplate FROM pg_database WHERE datname = $1`, name); err != nil {
		return "", err
	}
	if len(state) == 1 && state[0] {
		return name, nil
	}
	if _, err := db.ExecContext(ctx, `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`); err != nil {
		return "", err
	}
	if _, err := db.ExecContext(ctx, `CREATE DATABASE `+name); err != nil {
		return "", err
	}
	if err := migrate(ctx, name); err != nil {
		return "", err
	}
	_, err = db.ExecContext(ctx, `ALTER DATABASE `+name+` IS_TEMPLATE true`)
	return name, err
})

// templateName differs where a migration does.
func templateName() (string, error) {
	files, sum := migrations.Files(migrations.Postgres), sha256.New()
	entries, err := fs.ReadDir(files, ".")
	for _, e := range entries {
		text, failed := fs.ReadFile(files, e.Name())
		sum.Write([]byte(e.Name()))
		sum.Write(text)
		err = errors.Join(err, failed)
	}
	return "migrated_" + hex.EncodeToString(sum.Sum(nil))[:16], err
}

// migrate makes our tables in a new database.
func migrate(ctx context.Context, database string) error {
	plain, err := address(database, "public")
	if err != nil {
		return err
	}
	db, err := postgres.Open(plain, "", false, 1)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `CREATE SCHEMA `+schema)
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	at, err := address(database, schema)
	if err != nil {
		return err
	}
	made, err := store.Open(ctx, at, store.Options{})
	if err != nil {
		return err
	}
	return made.Close()
}
