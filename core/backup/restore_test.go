package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/queue/maintenance"
	"gatehouse/core/store"
)

// source returns a vault with a database and two notes.
func source(t *testing.T) Source {
	t.Helper()
	dir := t.TempDir()
	src := Source{Vault: filepath.Join(dir, "vault"), Program: "test"}
	src.Database = filepath.Join(src.Vault, "Chat", "sessions.db")
	err := errors.Join(os.MkdirAll(filepath.Dir(src.Database), 0o700), os.MkdirAll(filepath.Join(src.Vault, "Notes"), 0o700),
		os.WriteFile(filepath.Join(src.Vault, "Notes", "tea.md"), []byte("green tea"), 0o600), os.WriteFile(filepath.Join(src.Vault, "today.md"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), src.Database, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Tx(t.Context(), func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, "test", "of the backup") })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return src
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestRestore_FinishesWhatAnInterruptedOneWasMoving(t *testing.T) {
	t.Parallel()
	src := source(t)
	dir := t.TempDir()
	file, other := filepath.Join(dir, "a.tar.gz"), filepath.Join(dir, "b.tar.gz")
	for _, f := range []string{file, other} {
		if _, err := Make(t.Context(), src, f, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(src.Vault, "second.md"), []byte("a second note"), 0o600); err != nil { // the second differs
			t.Fatal(err)
		}
	}
	to := Target{Vault: filepath.Join(dir, "new"), Database: filepath.Join(dir, "db", "sessions.db"), // a database elsewhere
		Settle: func(context.Context, *store.DB, *store.Tx) (maintenance.Restored, error) {
			return maintenance.Restored{}, nil
		}}
	r := newRestoring(to, nil)
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	report := Restored{}
	if err := r.mayBegin(); err != nil {
		t.Fatal(err)
	}
	if report.About, report.Total, err = r.check(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if err := r.begin(); err != nil {
		t.Fatal(err)
	}
	if err := r.stage(t.Context(), in, &report); err != nil {
		t.Fatal(err)
	}
	state := restoreState{Moving: true, Report: report, Database: to.Database}
	if state.Names, err = r.staged(); err != nil || len(state.Names) < 2 {
		t.Fatal(state.Names, err)
	}
	if err := r.writeState(state); err != nil {
		t.Fatal(err)
	}
	first := state.Names[0]
	if err := os.Rename(filepath.Join(r.tree(), first), filepath.Join(r.vault, first)); err != nil {
		t.Fatal(err)
	}
	_ = r.lock.Close() // as if the process had ended
	if _, err := Restore(t.Context(), to, other, nil); core.KindOf(err) != core.Conflict || !strings.Contains(err.Error(), "another backup") {
		t.Errorf("another archive: %v", err)
	}
	elsewhere := to
	elsewhere.Database = filepath.Join(dir, "other", "sessions.db")
	if _, err := Restore(t.Context(), elsewhere, file, nil); core.KindOf(err) != core.Conflict || !strings.Contains(err.Error(), to.Database) {
		t.Errorf("another place of the database: %v", err)
	}
	again, err := Restore(t.Context(), to, file, nil)
	if err != nil || again.ID != report.ID {
		t.Fatal(err)
	}
	for _, name := range state.Names {
		if !exists(filepath.Join(to.Vault, name)) {
			t.Errorf("%s is missing", name)
		}
	}
	db, err := store.Open(t.Context(), to.Database, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if value, _, err := store.Metadata(t.Context(), db, "test"); err != nil || value != "of the backup" {
		t.Errorf("%q %v", value, err)
	}
	if exists(filepath.Join(to.Vault, restoreDir)) || exists(to.Database+".restore") {
		t.Error("something is left of the work")
	}
}
