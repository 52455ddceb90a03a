package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

const roleOf = `SELECT role FROM users WHERE id = $1`

func recalledRole(t *testing.T, d *store.DB, id int64) (role string) {
	t.Helper()
	err := d.Tx(t.Context(), func(tx *store.Tx) (err error) {
		role, err = store.Recall[string](t.Context(), tx, roleOf, id)
		if errors.Is(err, store.ErrNoRows) {
			role, err = "nobody", nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return role
}

func written(t *testing.T, d *store.DB, query string, args ...any) {
	t.Helper()
	if err := d.Tx(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(t.Context(), query, args...); return err }); err != nil {
		t.Fatal(err)
	}
}

const addUser = `INSERT INTO users (id, display, role, created_at) VALUES ($1, 'Ada', $2, '2026-01-01T00:00:00Z')`

// What is recalled is always what the table says: after each way to write it,
// in the same transaction and in others, and after what was undone.
func TestWhatIsRecalledIsWhatTheTableSays(t *testing.T) {
	d := storetest.Open(t, nil)
	is := func(id int64, want string) {
		t.Helper()
		for range 2 {
			if got := recalledRole(t, d, id); got != want {
				t.Fatalf("user %d is recalled as %q, not %q", id, got, want)
			}
		}
	}
	is(7, "nobody")
	written(t, d, addUser, 7, "guest")
	is(7, "guest")
	written(t, d, `UPDATE users SET role = 'admin' WHERE id = $1`, 7)
	is(7, "admin")
	undone := errors.New("undone")
	err := d.Tx(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.Exec(t.Context(), `UPDATE users SET role = 'owner' WHERE id = $1`, 7); err != nil {
			return err
		}
		if role, err := store.Recall[string](t.Context(), tx, roleOf, int64(7)); err != nil || role != "owner" {
			t.Errorf("its own write is recalled as %q, %v", role, err)
		}
		return undone
	})
	if !errors.Is(err, undone) {
		t.Fatal(err)
	}
	is(7, "admin")
	err = d.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Try(t.Context(), func() error {
			_, err := tx.Exec(t.Context(), `UPDATE users SET role = 'owner' WHERE id = $1`, 7)
			_, err2 := store.Recall[string](t.Context(), tx, roleOf, int64(7))
			return errors.Join(err, err2, undone)
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	is(7, "admin")
	written(t, d, `DELETE FROM users WHERE id = $1`, 7)
	is(7, "nobody")
}

// A query is asked again when any table of it was written, also one that it
// reads by an index alone or in a part of it.
func TestWhatIsRecalledKnowsEveryTableOfItsQuery(t *testing.T) {
	d := storetest.Open(t, nil)
	written(t, d, addUser, 7, "guest")
	const query = `SELECT u.role || (SELECT count(*) FROM blocks b WHERE b.platform = $1) || coalesce(i.display, '-')
		FROM users u LEFT JOIN identities i ON i.user_id = u.id AND i.platform = $1 WHERE u.id = $2`
	is := func(want string) {
		t.Helper()
		for range 2 {
			var got string
			err := d.Tx(t.Context(), func(tx *store.Tx) (err error) {
				got, err = store.Recall[string](t.Context(), tx, query, "elsewhere", int64(7))
				return err
			})
			if err != nil || got != want {
				t.Fatalf("recalled as %q, not %q: %v", got, want, err)
			}
		}
	}
	is("guest0-")
	written(t, d, `INSERT INTO identities (platform, platform_user_id, user_id, display, created_at) VALUES ('elsewhere', '42', 7, 'Ada', '2026-01-01T00:00:00Z')`)
	is("guest0Ada")
	written(t, d, `INSERT INTO blocks (platform, platform_user_id, bot, at) VALUES ('elsewhere', '9', '*', '2026-01-01T00:00:00Z')`)
	is("guest1Ada")
	written(t, d, `UPDATE users SET role = 'admin' WHERE id = 7`)
	is("admin1Ada")
}

// Another connection's write, as another program's, is seen too.
func TestWhatAnotherProgramWroteIsNotRecalledFromBefore(t *testing.T) {
	storetest.SQLiteOnly(t, "a file that two programs have open")
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	open := func() *store.DB {
		d, err := store.Open(context.Background(), path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
	a, b := open(), open()
	for i, role := range []string{"guest", "admin", "guest"} {
		if i == 0 {
			written(t, b, addUser, 7, role)
		} else {
			written(t, b, `UPDATE users SET role = $1 WHERE id = $2`, role, 7)
		}
		for range 2 {
			if got := recalledRole(t, a, 7); got != role {
				t.Fatalf("recalled as %q, not %q", got, role)
			}
		}
	}
}

// Asking again costs no statement; other arguments are another question.
func TestRecallingCostsNoStatement(t *testing.T) {
	storetest.SQLiteOnly(t, "on PostgreSQL each call asks")
	d := storetest.Open(t, nil)
	written(t, d, addUser, 7, "guest")
	written(t, d, addUser, 8, "admin")
	recalledRole(t, d, 7)
	recalledRole(t, d, 7)
	err := d.Tx(t.Context(), func(tx *store.Tx) error {
		before := d.Statements()
		for range 10 {
			if role, err := store.Recall[string](t.Context(), tx, roleOf, int64(7)); err != nil || role != "guest" {
				return fmt.Errorf("recalled as %q: %w", role, err)
			}
		}
		if n := d.Statements() - before; n != 0 {
			t.Errorf("ten times the same question took %d statements", n)
		}
		role, err := store.Recall[string](t.Context(), tx, roleOf, int64(8))
		if role != "admin" {
			t.Errorf("another person is recalled as %q", role)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What Recall takes for granted of the tables: only a deletion changes rows of
// tables that a statement does not name.
func TestOnlyDeletionsWriteOtherTables(t *testing.T) {
	storetest.SQLiteOnly(t, "the schema of SQLite; on PostgreSQL nothing is recalled")
	d := storetest.Open(t, nil)
	var found []string
	err := d.Select(t.Context(), &found, `SELECT name || ': ' || sql FROM sqlite_master
		WHERE type = 'trigger' AND upper(sql) NOT LIKE '%AFTER DELETE ON%' OR upper(sql) LIKE '%ON UPDATE %'`)
	if err != nil || len(found) > 0 {
		t.Errorf("%v, %q", err, found)
	}
}

// A closure that fails takes nothing of its company along, nor what it wrote
// itself into the commit; who had company may be run twice, and tells once.
func TestOneThatFailsIsAloneInIt(t *testing.T) {
	d := storetest.Open(t, nil)
	ctx := t.Context()
	const n = 24
	hold, held := make(chan struct{}), make(chan struct{})
	go func() { // so that the others wait, and share a commit
		_ = d.Tx(ctx, func(*store.Tx) error { close(held); <-hold; return nil })
	}()
	<-held
	type end struct {
		i   int
		err error
	}
	ends, told := make(chan end), make(chan int, 2*n)
	for i := range n {
		go func() {
			e := end{i: i}
			defer func() {
				if p := recover(); p != nil { // comes out of Tx
					e.err = fmt.Errorf("panic: %v", p)
				}
				ends <- e
			}()
			e.err = d.Tx(ctx, func(tx *store.Tx) error {
				tx.OnCommit(func() { told <- i })
				if _, err := tx.Exec(ctx, addUser, 100+i, "guest"); err != nil {
					return err
				}
				switch i % 6 {
				case 1:
					return errors.New("no")
				case 2:
					_, err := tx.Exec(ctx, addUser, 100+i, "guest") // the key is taken
					return err
				case 3:
					panic("broken")
				}
				return nil
			})
		}()
	}
	close(hold)
	for range n {
		e := <-ends
		if ok := e.i%6 != 1 && e.i%6 != 2 && e.i%6 != 3; ok != (e.err == nil) {
			t.Errorf("%d ended with %v", e.i, e.err)
		}
	}
	var ids []int64
	if err := d.Select(ctx, &ids, `SELECT id FROM users WHERE id >= 100 ORDER BY id`); err != nil {
		t.Fatal(err)
	}
	if len(ids) != n/2 || len(told) != n/2 {
		t.Errorf("%d were kept and %d told, want %d", len(ids), len(told), n/2)
	}
}
