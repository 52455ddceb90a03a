package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func set(ctx context.Context, db *store.DB, k, v string) error {
	return db.Tx(ctx, func(tx *store.Tx) error { return store.SetMetadata(ctx, tx, k, v) })
}

func value(t *testing.T, db *store.DB, k string) string {
	t.Helper()
	v, err := db.Load(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWhatIsCommittedIsThereAfterAReopen(t *testing.T) {
	path := storetest.Fresh(t)
	db := storetest.OpenAt(t, path, nil)
	if err := set(t.Context(), db, "k", "v"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := value(t, storetest.OpenAt(t, path, nil), "k"); got != "v" {
		t.Errorf("k = %q after reopening", got)
	}
}

func TestOneFailingClosureLeavesItsCompanyAlone(t *testing.T) {
	db := storetest.Open(t, nil)
	boom := errors.New("boom")
	release := make(chan struct{})
	started := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // holds the writer until the others stand in line
		_ = db.Tx(t.Context(), func(*store.Tx) error { close(started); <-release; return nil })
	})
	<-started
	errs := make([]error, 20)
	for i := range errs {
		wg.Go(func() {
			errs[i] = db.Tx(t.Context(), func(tx *store.Tx) error {
				if err := store.SetMetadata(t.Context(), tx, fmt.Sprint("k", i), "v"); err != nil {
					return err
				}
				if i%3 == 0 {
					return boom
				}
				return nil
			})
		})
	}
	close(release)
	wg.Wait()
	for i, err := range errs {
		want, kept := error(nil), "v"
		if i%3 == 0 {
			want, kept = boom, ""
		}
		if !errors.Is(err, want) || value(t, db, fmt.Sprint("k", i)) != kept {
			t.Errorf("closure %d: err %v, kept %q", i, err, value(t, db, fmt.Sprint("k", i)))
		}
	}
}

func TestACommitHoldsTheClosuresThatWaited(t *testing.T) {
	var mu sync.Mutex
	var groups []int
	db, err := store.Open(t.Context(), storetest.Fresh(t), store.Options{OnCommit: func(n int) {
		mu.Lock()
		groups = append(groups, n)
		mu.Unlock()
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const writers, each = 16, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := set(t.Context(), db, fmt.Sprintf("%d-%d", w, i), "v"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	total := 0
	for _, n := range groups {
		total += n
	}
	if total != writers*each {
		t.Errorf("%d closures committed, want %d", total, writers*each)
	}
	if len(groups) > total/2 {
		t.Errorf("%d commits for %d closures: writes are not grouped", len(groups), total)
	}
}

// A deferred foreign key breaks at COMMIT, not before: the caller must hear it,
// and whoever shared the commit must not.
func TestAFailedCommitReachesItsCallerOnly(t *testing.T) {
	db := storetest.Open(t, nil)
	ctx := t.Context()
	err := db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `CREATE TABLE child (p BIGINT REFERENCES users(id) DEFERRABLE INITIALLY DEFERRED)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	release, started := make(chan struct{}), make(chan struct{})
	var bad, good error
	var after bool
	var wg sync.WaitGroup
	wg.Go(func() { _ = db.Tx(ctx, func(*store.Tx) error { close(started); <-release; return nil }) })
	<-started
	wg.Go(func() {
		bad = db.Tx(ctx, func(tx *store.Tx) error {
			tx.OnCommit(func() { after = true })
			_, err := tx.Exec(ctx, `INSERT INTO child (p) VALUES (4711)`)
			return err
		})
	})
	wg.Go(func() { good = set(ctx, db, "company", "kept") })
	close(release)
	wg.Wait()
	if bad == nil || after {
		t.Errorf("a failed COMMIT returned %v and ran OnCommit: %v", bad, after)
	}
	if good != nil || value(t, db, "company") != "kept" {
		t.Errorf("the company's write: %v, kept %q", good, value(t, db, "company"))
	}
}

func TestAPanicIsItsCallersAndTheWriterLives(t *testing.T) {
	db := storetest.Open(t, nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach the caller")
			}
		}()
		_ = db.Tx(t.Context(), func(tx *store.Tx) error {
			_ = store.SetMetadata(t.Context(), tx, "half", "v")
			panic("oops")
		})
	}()
	if err := set(t.Context(), db, "next", "v"); err != nil {
		t.Fatal(err)
	}
	if value(t, db, "half") != "" {
		t.Error("what a panicking closure wrote was kept")
	}
}

func TestAfterCloseWritesAreRefused(t *testing.T) {
	db := storetest.Open(t, nil)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := set(t.Context(), db, "k", "v"); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Tx after Close: %v", err)
	}
}

func TestANewerOrForeignDatabaseIsRefusedUnchanged(t *testing.T) {
	storetest.SQLiteOnly(t, "its files; TestAForeignSchemaIsRefused is PostgreSQL's")
	for name, prepare := range map[string]struct{ sql, want string }{
		"newer":   {`CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL); INSERT INTO schema_version VALUES (999999, '')`, "newer"},
		"foreign": {`CREATE TABLE songs (id INTEGER)`, "something else"},
		"seed":    {`CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL); INSERT INTO schema_version VALUES (12, '')`, "missing sessions"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			raw, err := sql.Open("sqlite3", path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := raw.Exec(prepare.sql); err != nil {
				t.Fatal(err)
			}
			raw.Close()
			_, err = store.Open(t.Context(), path, store.Options{})
			if core.KindOf(err) != core.Invalid || !strings.Contains(core.TextOf(err), prepare.want) {
				t.Errorf("Open = %v", err)
			}
			raw, _ = sql.Open("sqlite3", path)
			defer raw.Close()
			var n int
			if err := raw.QueryRow(`SELECT count(*) FROM sqlite_master WHERE name = 'inbox'`).Scan(&n); err != nil || n != 0 {
				t.Errorf("the refused database was changed: %d %v", n, err)
			}
		})
	}
}

func TestTheDatabaseFileIsPrivate(t *testing.T) {
	storetest.SQLiteOnly(t, "the file's mode")
	db := storetest.Open(t, nil)
	st, err := os.Stat(db.Path())
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
}

// The settings that durability rests on, asked of the connections themselves.
func TestCommitsAreDurableAndForeignKeysHold(t *testing.T) {
	storetest.SQLiteOnly(t, "PRAGMA settings")
	db := storetest.Open(t, nil)
	var sync, fk int
	var journal string
	err := db.Tx(t.Context(), func(tx *store.Tx) error {
		return errors.Join(
			tx.Get(t.Context(), &sync, `PRAGMA synchronous`),
			tx.Get(t.Context(), &fk, `PRAGMA foreign_keys`),
			tx.Get(t.Context(), &journal, `PRAGMA journal_mode`))
	})
	if err != nil || sync != 2 || fk != 1 || journal != "wal" {
		t.Errorf("synchronous %d (want 2, FULL), foreign_keys %d, journal %q, %v", sync, fk, journal, err)
	}
}

func BenchmarkTx(b *testing.B) {
	db := storetest.Open(b, nil)
	ctx := context.Background()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := set(ctx, db, "k", "v"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestPlaceholdersMeanTheirNumberInAnyOrder(t *testing.T) {
	db := storetest.Open(t, nil)
	const query = `SELECT $2 || '-' || $1 || '-' || $2`
	var read, written string
	if err := db.Get(t.Context(), &read, query, "one", "two"); err != nil {
		t.Fatal(err)
	}
	err := db.Tx(t.Context(), func(tx *store.Tx) error { return tx.Get(t.Context(), &written, query, "one", "two") })
	if err != nil || read != "two-one-two" || written != read {
		t.Errorf("read %q, in a transaction %q, %v", read, written, err)
	}
}
