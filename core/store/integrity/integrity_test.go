package integrity_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/integrity"
	"gatehouse/core/store/storetest"
)

// database makes one with some pages of text, closed.
func database(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions.db")
	storetest.Seed(t, path)
	db := reopened(t, path)
	err := db.Tx(t.Context(), func(tx *store.Tx) error {
		for i := range 200 {
			if err := store.SetMetadata(t.Context(), tx, fmt.Sprint("key", i), strings.Repeat("x", 4000)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func reopened(t *testing.T, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// overwrite writes garbage from a place on, for n bytes.
func overwrite(t *testing.T, path string, at, n int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(strings.Repeat("\xaa", int(n))), at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAFileThatIsNotTheOpenDatabaseAnyMoreIsNoticed(t *testing.T) {
	for name, x := range map[string]struct {
		do   func(t *testing.T, path string)
		want string
	}{
		"nothing": {func(*testing.T, string) {}, ""},
		"deleted": {func(t *testing.T, path string) { must(t, os.Remove(path)) }, "deleted or moved"},
		"replaced": {func(t *testing.T, path string) {
			in, err := os.ReadFile(path)
			must(t, err)
			must(t, os.WriteFile(path+".new", in, 0o600))
			must(t, os.Rename(path+".new", path))
		}, "replaced by another file"},
		"truncated": {func(t *testing.T, path string) { must(t, os.Truncate(path, 100_000)) }, "truncated"},
		"emptied":   {func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) }, "truncated"},
		"header":    {func(t *testing.T, path string) { overwrite(t, path, 0, 16) }, "no database any more"},
	} {
		t.Run(name, func(t *testing.T) {
			path := database(t)
			db := reopened(t, path)
			defer db.Close()
			w, err := integrity.Begin(path, core.System{})
			must(t, err)
			x.do(t, path)
			err = w.Look(t.Context())
			if x.want == "" {
				must(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "gatehouse restore") || !strings.Contains(err.Error(), "gatehouse reindex") {
				t.Errorf("Look = %v, want %q and what to do", err, x.want)
			}
		})
	}
}

func TestADatabaseThatIsWrittenAllTheTimeIsNotTakenForTruncated(t *testing.T) {
	path := database(t)
	db := reopened(t, path)
	defer db.Close()
	w, err := integrity.Begin(path, core.System{})
	must(t, err)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := db.Tx(context.Background(), func(tx *store.Tx) error {
				return store.SetMetadata(context.Background(), tx, fmt.Sprint("more", i), strings.Repeat("y", 200_000))
			}); err != nil {
				done <- err
				return
			}
		}
	}()
	for range 200 {
		if err := w.Look(t.Context()); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	must(t, <-done)
}

func TestADamagedDatabaseIsNoticedBeforeAStart(t *testing.T) {
	path := database(t)
	if done, err := integrity.Before(t.Context(), path); err != nil || !done {
		t.Fatalf("a sound one: %t, %v", done, err)
	}
	overwrite(t, path, 3*4096, 40*4096)
	for name, err := range map[string]error{"quick": second(integrity.Before(t.Context(), path)), "full": integrity.Full(t.Context(), path)} {
		if core.KindOf(err) != core.Invalid || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "gatehouse reindex") {
			t.Errorf("%s: %v", name, err)
		}
	}
	text := filepath.Join(t.TempDir(), "notes.db")
	must(t, os.WriteFile(text, []byte(strings.Repeat("no database\n", 1000)), 0o600))
	if _, err := integrity.Before(t.Context(), text); core.KindOf(err) != core.Invalid {
		t.Errorf("a text file: %v", err)
	}
	for name, path := range map[string]string{"missing": filepath.Join(t.TempDir(), "none.db"), "empty": os.DevNull} {
		if done, err := integrity.Before(t.Context(), path); err != nil || !done {
			t.Errorf("%s: %t, %v", name, done, err)
		}
	}
}

func TestTheCheckBeforeAStartIsBounded(t *testing.T) {
	path := database(t)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if done, err := integrity.Before(ctx, path); done || err != nil {
		t.Errorf("%t, %v", done, err)
	}
}

func TestWhatTheFullCheckFoundStaysKnown(t *testing.T) {
	path := database(t)
	w, err := integrity.Begin(path, core.System{})
	must(t, err)
	must(t, w.Full(t.Context()))
	overwrite(t, path, 3*4096, 40*4096)
	if err := w.Look(t.Context()); err != nil {
		t.Errorf("the header is whole: %v", err)
	}
	if err := w.Full(t.Context()); core.KindOf(err) != core.Invalid {
		t.Errorf("Full = %v", err)
	}
	if err := w.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("Look after it = %v", err)
	}
}

func second(_ bool, err error) error { return err }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
