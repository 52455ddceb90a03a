package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/postgres"
	"gatehouse/core/store/storetest"
	"gatehouse/core/store/tenure"
)

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }

// runAll runs statements in one transaction.
func runAll(t *testing.T, db *store.DB, queries ...string) {
	t.Helper()
	err := db.Tx(t.Context(), func(tx *store.Tx) error {
		for _, q := range queries {
			if _, err := tx.Exec(t.Context(), q); err != nil {
				return fmt.Errorf("%s: %w", q, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTextIsComparedByteByByte(t *testing.T) {
	db := storetest.Open(t, nil)
	for _, k := range []string{"a", "B", "é", "Z", "_", "-"} {
		if err := set(t.Context(), db, k, k); err != nil {
			t.Fatal(err)
		}
	}
	var keys []string
	err := db.Select(t.Context(), &keys, `SELECT key FROM metadata WHERE key = value AND key < $1 || '' ORDER BY key`, "ÿ")
	if want := []string{"-", "B", "Z", "_", "a", "é"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("order %q, want %q, %v", keys, want, err)
	}
}

func TestInsertGivesTheKeyAndSaysWhenThereWasNothingToInsert(t *testing.T) {
	ctx := t.Context()
	db := storetest.Open(t, nil)
	var first, second int64
	var again error
	err := db.Tx(ctx, func(tx *store.Tx) (err error) {
		const user = `INSERT INTO users (display, created_at) VALUES ($1, '')`
		const access = `INSERT INTO access (bot, user_id, scope, trust_level, at) VALUES ('b', $1, 'dm', 'vault', '') ON CONFLICT (bot, user_id, scope, place) DO NOTHING`
		if first, err = tx.Insert(ctx, user, "ada"); err != nil {
			return err
		}
		if second, err = tx.Insert(ctx, user, "bob"); err != nil {
			return err
		}
		if _, err = tx.Insert(ctx, access, first); err != nil {
			return err
		}
		_, again = tx.Insert(ctx, access, first)
		return nil
	})
	var name string
	if err != nil || second != first+1 || !errors.Is(again, store.ErrNoRows) {
		t.Errorf("keys %d, %d; the same again: %v; %v", first, second, again, err)
	}
	if err := db.Get(ctx, &name, `SELECT display FROM users WHERE id = $1`, second); err != nil || name != "bob" {
		t.Errorf("row %d is %q, %v", second, name, err)
	}
}

func TestABooleanIsStoredAsZeroOrOne(t *testing.T) {
	ctx := t.Context()
	db := storetest.Open(t, nil)
	for i, want := range []bool{false, true} {
		err := db.Tx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO places (bot, place, enabled, at) VALUES ('b', $1, $2, '')`, fmt.Sprint(i), want)
			return err
		})
		var got bool
		var number int
		err = errors.Join(err, db.Get(ctx, &got, `SELECT enabled FROM places WHERE place = $1 AND enabled = $2`, fmt.Sprint(i), want),
			db.Get(ctx, &number, `SELECT enabled FROM places WHERE place = $1`, fmt.Sprint(i)))
		if err != nil || got != want || number != i {
			t.Errorf("%v is %v, %d, %v", want, got, number, err)
		}
	}
}

func TestReadersCannotWrite(t *testing.T) {
	db := storetest.Open(t, nil)
	var key string
	if err := db.Get(t.Context(), &key, `INSERT INTO metadata (key, value, updated_at) VALUES ('k', 'v', '') RETURNING key`); err == nil {
		t.Error("a reading connection wrote")
	}
	if got := value(t, db, "k"); got != "" {
		t.Errorf("it is kept: %q", got)
	}
}

func TestAForeignOrNewerSchemaIsRefused(t *testing.T) {
	storetest.PostgresOnly(t, "SQLite's is TestANewerOrForeignDatabaseIsRefusedUnchanged")
	for want, queries := range map[string][]string{
		"newer":          {`CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)`, `INSERT INTO schema_version VALUES (999999, '')`},
		"something else": {`CREATE TABLE songs (id INTEGER)`},
	} {
		at := storetest.Fresh(t)
		raw, err := postgres.Open(at, "", false, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range queries {
			if _, err := raw.ExecContext(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		_, err = store.Open(t.Context(), at, store.Options{})
		if core.KindOf(err) != core.Invalid || !strings.Contains(core.TextOf(err), want) {
			t.Errorf("Open = %v, want %q", err, want)
		}
		var n int
		if err := raw.Get(&n, `SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema()`); err != nil || n != 1 {
			t.Errorf("the refused schema has %d tables now, %v", n, err)
		}
		if err := raw.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Several gateways may be started at once on an empty schema.
func TestASchemaWhoseTablesAreBeingMadeIsBusyAndNotForeign(t *testing.T) {
	storetest.PostgresOnly(t, "a file has no gateway that waits")
	at := storetest.Fresh(t)
	raw, err := postgres.Open(at, "", false, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for _, step := range []struct {
		query string
		want  core.Kind
	}{
		{`CREATE TABLE songs (id INTEGER)`, core.Invalid},
		{`SELECT pg_advisory_lock(` + tenure.LockKey + `)`, core.Busy},
	} {
		if _, err := raw.ExecContext(t.Context(), step.query); err != nil {
			t.Fatal(err)
		}
		found, err := postgres.Look(t.Context(), at, "")
		if core.KindOf(err) != step.want || (found.Holder != "") != (step.want == core.Busy) {
			t.Errorf("after %q: %v, holder %q, want kind %v", step.query, err, found.Holder, step.want)
		}
	}
}

// A later migration that says something else to one of the engines is found here.
func TestBothEnginesHaveTheSameTables(t *testing.T) {
	storetest.PostgresOnly(t, "it compares both")
	ctx := t.Context()
	lite := storetest.OpenAt(t, filepath.Join(t.TempDir(), "lite.db"), nil)
	pg := storetest.Open(t, nil)
	pairs := map[string][2]string{
		"columns": {
			`SELECT m.name || '.' || c.name || ' ' || upper(c.type) || CASE WHEN c."notnull" = 1 OR c.pk > 0 THEN ' NOT NULL' ELSE '' END
				FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type IN ('table', 'view') AND m.sql NOT LIKE 'CREATE VIRTUAL%'
				AND m.name NOT LIKE 'sqlite%' AND m.name NOT LIKE 'session_words%' AND m.name NOT LIKE 'document_words%' AND m.name NOT LIKE 'guest_words%' AND m.name <> 'schema_version'`,
			`SELECT table_name || '.' || column_name || ' ' || CASE data_type WHEN 'bigint' THEN 'INTEGER' WHEN 'text' THEN 'TEXT' WHEN 'bytea' THEN 'BLOB' ELSE upper(data_type) END ||
				CASE WHEN is_nullable = 'NO' THEN ' NOT NULL' ELSE '' END
				FROM information_schema.columns WHERE table_schema = current_schema() AND table_name <> 'schema_version' AND table_name NOT LIKE 'session_words%' AND table_name NOT LIKE 'document_words%' AND table_name NOT LIKE 'guest_words%'`,
		},
		"indexes": {
			`SELECT tbl_name || '.' || name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name NOT LIKE 'session_words%' AND tbl_name NOT LIKE 'document_words%' AND tbl_name NOT LIKE 'guest_words%'`,
			`SELECT tablename || '.' || indexname FROM pg_indexes WHERE schemaname = current_schema() AND tablename NOT LIKE 'session_words%' AND tablename NOT LIKE 'document_words%' AND tablename NOT LIKE 'guest_words%'
				AND indexname NOT IN (SELECT conname FROM pg_constraint)`,
		},
		"migrations": {`SELECT CAST(version AS TEXT) FROM schema_version`, `SELECT CAST(version AS TEXT) FROM schema_version`},
	}
	for what, q := range pairs {
		var a, b []string
		if err := errors.Join(lite.Select(ctx, &a, q[0]), pg.Select(ctx, &b, q[1])); err != nil {
			t.Fatal(err)
		}
		slices.Sort(a)
		slices.Sort(b)
		for _, x := range a {
			if !slices.Contains(b, x) {
				t.Errorf("%s of SQLite alone: %s", what, x)
			}
		}
		for _, x := range b {
			if !slices.Contains(a, x) {
				t.Errorf("%s of PostgreSQL alone: %s", what, x)
			}
		}
		if len(a) == 0 {
			t.Errorf("no %s", what)
		}
	}
}

// Two processes that take the same rows in opposite order: the server ends one
// of them, and that is nobody's error, whatever the closure made of it.
func TestWhoLosesADeadlockIsRunAgain(t *testing.T) {
	storetest.PostgresOnly(t, "SQLite has one writer")
	at := storetest.Fresh(t)
	dbs := []*store.DB{storetest.OpenAt(t, at, nil), storetest.OpenAt(t, at, nil)}
	ctx := t.Context()
	for _, tried := range []bool{false, true} {
		runAll(t, dbs[0], `INSERT INTO metadata (key, value, updated_at) VALUES ('a', '', ''), ('b', '', '') ON CONFLICT (key) DO UPDATE SET value = ''`)
		order := [][]string{{"a", "b"}, {"b", "a"}}
		var both, done sync.WaitGroup
		both.Add(2)
		var mu sync.Mutex
		runs := 0
		for i, db := range dbs {
			first := true
			done.Go(func() {
				err := db.Tx(ctx, func(tx *store.Tx) error {
					mu.Lock()
					runs++
					mu.Unlock()
					add := func(key string) error {
						_, err := tx.Exec(ctx, `UPDATE metadata SET value = value || $1 WHERE key = $2`, fmt.Sprint(i), key)
						return err
					}
					if err := add(order[i][0]); err != nil {
						return err
					}
					if first {
						first = false
						both.Done()
						both.Wait()
					}
					if tried {
						_, err := tx.Try(ctx, func() error { return add(order[i][1]) }) // passes its failure over
						return err
					}
					return add(order[i][1])
				})
				if err != nil {
					t.Errorf("process %d: %v", i, err)
				}
			})
		}
		done.Wait()
		if runs < 3 {
			t.Errorf("the closures ran %d times: there was no deadlock", runs)
		}
		for _, k := range []string{"a", "b"} {
			if v := value(t, dbs[0], k); len(v) != 2 {
				t.Errorf("%s = %q, want one mark of each", k, v)
			}
		}
	}
}

// What SQLite would keep of such a closure PostgreSQL cannot; half of it must
// not be taken for all.
func TestAFailedStatementThatIsPassedOverFailsItsClosureWhole(t *testing.T) {
	storetest.PostgresOnly(t, "SQLite undoes the statement alone")
	db := storetest.Open(t, nil)
	ctx := t.Context()
	err := db.Tx(ctx, func(tx *store.Tx) error {
		if err := store.SetMetadata(ctx, tx, "half", "1"); err != nil {
			return err
		}
		_, _ = tx.Exec(ctx, `INSERT INTO metadata (key, updated_at) VALUES ('half', '')`)
		return nil
	})
	if err == nil || value(t, db, "half") != "" {
		t.Errorf("Tx = %v, kept %q", err, value(t, db, "half"))
	}
	if err := set(ctx, db, "next", "1"); err != nil {
		t.Error(err)
	}
}

func TestAStatementThatCannotBePreparedFailsItsClosureWhole(t *testing.T) {
	storetest.PostgresOnly(t, "SQLite undoes the statement alone")
	db := storetest.Open(t, nil)
	ctx := t.Context()
	committed := false
	err := db.Tx(ctx, func(tx *store.Tx) error {
		tx.OnCommit(func() { committed = true })
		if err := store.SetMetadata(ctx, tx, "half", "1"); err != nil {
			return err
		}
		_, _ = tx.Exec(ctx, `UPDATE no_such_table SET x = 1`)
		return nil
	})
	if err == nil || committed || value(t, db, "half") != "" {
		t.Errorf("Tx = %v, committed %t, kept %q", err, committed, value(t, db, "half"))
	}
}

func TestALostConnectionIsReplaced(t *testing.T) {
	storetest.PostgresOnly(t, "SQLite's connection is in this process")
	db, other := storetest.Open(t, nil), storetest.Open(t, nil)
	ctx := t.Context()
	pid := 0
	if err := db.Tx(ctx, func(tx *store.Tx) error { return tx.Get(ctx, &pid, `SELECT pg_backend_pid()`) }); err != nil {
		t.Fatal(err)
	}
	var gone bool
	if err := other.Get(ctx, &gone, `SELECT pg_terminate_backend($1, 20000)`, pid); err != nil || !gone {
		t.Fatal(gone, err)
	}
	if err := set(ctx, db, "k", "v"); err != nil || value(t, db, "k") != "v" {
		t.Errorf("after the connection was lost: %v, kept %q", err, value(t, db, "k"))
	}
}

// Nobody can say whether it was kept, so nobody may do it a second time.
func TestACommitWhoseAnswerIsLostIsNotRepeated(t *testing.T) {
	storetest.PostgresOnly(t, "SQLite's connection is in this process")
	db := storetest.Open(t, nil)
	runAll(t, db, `CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER die AFTER INSERT ON metadata DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()`)
	ctx := t.Context()
	release, started := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { _ = db.Tx(ctx, func(*store.Tx) error { close(started); <-release; return nil }) })
	<-started
	const company = 3
	var runs [company]int
	var after bool
	var errs [company]error
	for i := range company {
		wg.Go(func() {
			errs[i] = db.Tx(ctx, func(tx *store.Tx) error {
				runs[i]++
				tx.OnCommit(func() { after = true })
				return store.SetMetadata(context.WithoutCancel(ctx), tx, fmt.Sprint("k", i), "v")
			})
		})
	}
	close(release)
	wg.Wait()
	for i := range company {
		if errs[i] == nil || runs[i] != 1 {
			t.Errorf("closure %d ran %d times: %v", i, runs[i], errs[i])
		}
	}
	if after {
		t.Error("OnCommit was called")
	}
	runAll(t, db, `DROP TRIGGER die ON metadata`)
}
