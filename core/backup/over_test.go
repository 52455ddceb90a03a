package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/queue/maintenance"
	"gatehouse/core/store"
)

// A replacement is a vault that was changed since its backup, which is to be restored
// over it. A login, a token and a link that leads out are in no backup.
type replacement struct {
	file string // the backup
	to   Target
}

func newReplacement(t *testing.T, databaseElsewhere bool) replacement {
	t.Helper()
	src := source(t)
	dir := t.TempDir()
	if databaseElsewhere {
		db := filepath.Join(dir, "db", "sessions.db")
		must(t, os.Mkdir(filepath.Dir(db), 0o700), os.Rename(src.Database, db))
		src.Database = db
	}
	src.Without = map[string]string{filepath.Join(src.Vault, ".parachute", "tokens"): "secret", filepath.Join(src.Vault, "bots.yaml"): "secret"}
	must(t, os.MkdirAll(filepath.Join(src.Vault, ".parachute", "tokens"), 0o700), os.Mkdir(filepath.Join(src.Vault, ".claude"), 0o700),
		write(src.Vault, ".parachute/tokens/support", "a token of then"), write(src.Vault, ".claude/.credentials.json", "a login of then"), write(src.Vault, "bots.yaml", "a secret of then"))
	r := replacement{file: filepath.Join(dir, "backup.tar.gz")}
	if _, err := Make(t.Context(), src, r.file, nil); err != nil {
		t.Fatal(err)
	}
	readOnly := filepath.Join(src.Vault, "readonly", "deep")
	must(t, write(src.Vault, "Notes/tea.md", "black tea"), write(src.Vault, "later.md", "written later"), os.Remove(filepath.Join(src.Vault, "today.md")),
		write(src.Vault, ".parachute/tokens/support", "a token"), write(src.Vault, ".claude/.credentials.json", "a login"), write(src.Vault, "bots.yaml", "a secret"),
		os.MkdirAll(readOnly, 0o700), os.Symlink("/usr/bin/env", filepath.Join(readOnly, "out")), write(src.Vault, "readonly/deep/a.md", "a"), os.Chmod(readOnly, 0o500), os.Chmod(filepath.Dir(readOnly), 0o500),
		setTestValue(src.Database, "of now"))
	t.Cleanup(func() {
		_ = filepath.WalkDir(src.Vault, func(p string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() { // a link is followed
				_ = os.Chmod(p, 0o700)
			}
			return nil
		})
	})
	r.to = Target{Vault: src.Vault, Database: src.Database, Over: &Over{ID: "0123456789", Source: src},
		Settle: func(context.Context, *store.DB, *store.Tx) (r maintenance.Restored, err error) { return r, nil }}
	return r
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func write(vault, name, text string) error {
	return os.WriteFile(filepath.Join(vault, name), []byte(text), 0o600)
}

func setTestValue(database, value string) error {
	ctx := context.Background()
	db, err := store.Open(ctx, database, store.Options{})
	if err != nil {
		return err
	}
	err = db.Tx(ctx, func(tx *store.Tx) error { return store.SetMetadata(ctx, tx, "test", value) })
	return errors.Join(err, db.Close())
}

// state returns "then" where the vault and the database are those of the backup, "now"
// where they are as they were before the restore, and what is wrong otherwise.
func (r replacement) state(t *testing.T) string {
	t.Helper()
	for name, want := range map[string]string{".parachute/tokens/support": "a token", ".claude/.credentials.json": "a login", "bots.yaml": "a secret"} {
		if got, err := os.ReadFile(filepath.Join(r.to.Vault, name)); err != nil || string(got) != want {
			return name + " did not stay: " + string(got)
		}
	}
	if link, err := os.Readlink(filepath.Join(r.to.Vault, "readonly", "deep", "out")); err != nil || link != "/usr/bin/env" {
		return "the link that leads out did not stay"
	}
	if exists(filepath.Join(r.to.Vault, restoreDir)) || exists(r.to.Database+".restore") {
		return "the work of the restore is left"
	}
	db, err := store.Open(t.Context(), r.to.Database, store.Options{})
	if err != nil {
		return err.Error()
	}
	value, _, err := store.Metadata(t.Context(), db, "test")
	must(t, err, db.Close())
	note, _ := os.ReadFile(filepath.Join(r.to.Vault, "Notes", "tea.md"))
	later, today, inside := exists(filepath.Join(r.to.Vault, "later.md")), exists(filepath.Join(r.to.Vault, "today.md")), exists(filepath.Join(r.to.Vault, "readonly", "deep", "a.md"))
	switch {
	case value == "of the backup" && string(note) == "green tea" && !later && today && !inside:
		return "then"
	case value == "of now" && string(note) == "black tea" && later && !today && inside:
		return "now"
	}
	return "a mixture: " + value + ", " + string(note)
}

func TestRestoreOver_ReplacesTheVaultAndKeepsWhatNoBackupHas(t *testing.T) {
	t.Parallel()
	for name, elsewhere := range map[string]bool{"database in the vault": false, "database elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReplacement(t, elsewhere)
			noted := 0
			r.to.Over.Done = func(report Restored) error {
				if report.Files == 0 || !exists(filepath.Join(r.to.Vault, restoreDir)) {
					t.Errorf("the outcome is noted with %+v, or after the work is deleted", report)
				}
				noted++
				return nil
			}
			if about, err := Check(t.Context(), r.to, r.file, nil); err != nil || about.Program != "test" {
				t.Fatal(about, err)
			}
			if got := r.state(t); got != "now" {
				t.Fatalf("after the check it is %s", got)
			}
			if _, err := Restore(t.Context(), r.to, r.file, nil); err != nil {
				t.Fatal(err)
			}
			if got := r.state(t); got != "then" || noted != 1 {
				t.Errorf("it is %s, noted %d times", got, noted)
			}
			if err := CheckFinished(r.to.Vault); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRestoreOver_ChangesNothingWhenItCannotBeDone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, r *replacement)
		says  string
	}{
		"damaged archive": {func(t *testing.T, r *replacement) {
			b, err := os.ReadFile(r.file)
			must(t, err)
			b[len(b)-8] ^= 1 // of the checksum
			must(t, os.WriteFile(r.file, b, 0o600))
		}, "damaged"},
		"foreign archive": {func(t *testing.T, r *replacement) {
			must(t, os.WriteFile(r.file, []byte("this is not an archive of anything"), 0o600))
		}, "not a backup"},
		"no room":                        {func(t *testing.T, r *replacement) { r.to.Space = 10 }, "no room"},
		"a file that no backup can hold": {func(t *testing.T, r *replacement) { must(t, write(r.to.Vault, "\xff.md", "lost")) }, "would lose it"},
		"a file of the backup in the way of what stays": {func(t *testing.T, r *replacement) {
			must(t, os.Remove(filepath.Join(r.to.Vault, "later.md")), os.Mkdir(filepath.Join(r.to.Vault, "today.md"), 0o700), os.Symlink("/", filepath.Join(r.to.Vault, "today.md", "out")))
		}, "has to stay"},
		"a database that cannot be settled": {func(t *testing.T, r *replacement) {
			r.to.Settle = func(context.Context, *store.DB, *store.Tx) (r maintenance.Restored, err error) {
				return r, errors.New("no settlement")
			}
		}, "no settlement"},
		"an outcome that cannot be noted is finished by the next one": {func(t *testing.T, r *replacement) {
			r.to.Over.Done = func(Restored) error { return errors.New("no note") }
		}, "no note"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReplacement(t, false)
			c.spoil(t, &r)
			_, err := Restore(t.Context(), r.to, r.file, nil)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v, want %q", err, c.says)
			}
			switch {
			case c.says == "no note":
				if err := CheckFinished(r.to.Vault); core.KindOf(err) != core.Conflict || !strings.Contains(err.Error(), "gatehouse serve") {
					t.Error(err)
				}
				r.to.Over.Done = nil
				if found, done, err := Resume(r.to); !found || !done || err != nil || r.state(t) != "then" {
					t.Error(found, done, err, r.state(t))
				}
			case c.says == "has to stay": // the vault is another one than state knows
				if exists(filepath.Join(r.to.Vault, restoreDir)) || !exists(filepath.Join(r.to.Vault, "today.md", "out")) {
					t.Error("something was changed")
				}
			default:
				if got := r.state(t); got != "now" {
					t.Errorf("it is %s", got)
				}
			}
		})
	}
}

// Who can write in the vault cannot have the gateway restore something at its start.
func TestResume_LeavesAloneWhatTheCallerHasNotBegun(t *testing.T) {
	t.Parallel()
	r := newReplacement(t, false)
	work := filepath.Join(r.to.Vault, restoreDir)
	must(t, os.MkdirAll(filepath.Join(work, "tree", "Notes"), 0o700), write(work, "tree/Notes/tea.md", "forged"),
		write(work, "state.json", `{"moving": true, "over": "9876543210", "names": ["Notes"], "old": ["Notes"]}`))
	if found, done, err := Resume(r.to); found || done || err != nil {
		t.Fatal(found, done, err)
	}
	if note, err := os.ReadFile(filepath.Join(r.to.Vault, "Notes", "tea.md")); err != nil || string(note) != "black tea" {
		t.Errorf("%s %v", note, err)
	}
	if err := CheckFinished(r.to.Vault); core.KindOf(err) != core.Conflict {
		t.Error(err)
	}
}

// The child of TestResume_FinishesOrUndoesARestoreThatWasKilledAnywhere.
func TestMain(m *testing.M) {
	if vault := os.Getenv("GATEHOUSE_TEST_RESTORE_OVER"); vault != "" {
		src := Source{Vault: vault, Database: os.Getenv("GATEHOUSE_TEST_DATABASE"), Program: "test", Without: map[string]string{filepath.Join(vault, ".parachute", "tokens"): "secret", filepath.Join(vault, "bots.yaml"): "secret"}}
		to := Target{Vault: vault, Database: src.Database, Over: &Over{ID: "0123456789", Source: src},
			Settle: func(context.Context, *store.DB, *store.Tx) (r maintenance.Restored, err error) { return r, nil }}
		if _, err := Restore(context.Background(), to, os.Getenv("GATEHOUSE_TEST_FILE"), nil); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestResume_FinishesOrUndoesARestoreThatWasKilledAnywhere(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	outcomes := map[string]int{}
	for _, elsewhere := range []bool{false, true} {
		for n := 1; ; n++ {
			r := newReplacement(t, elsewhere)
			cmd := exec.Command(strace, "-f", "-o", "/dev/null", "-e", "trace=renameat,renameat2,unlinkat,mkdirat,fsync,fchmodat", "-e", "inject=renameat,renameat2,unlinkat,mkdirat,fsync,fchmodat:signal=KILL:when="+strconv.Itoa(n), os.Args[0])
			cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GATEHOUSE_TEST_RESTORE_OVER="+r.to.Vault, "GATEHOUSE_TEST_DATABASE="+r.to.Database, "GATEHOUSE_TEST_FILE="+r.file)
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() == 1 {
				t.Fatalf("%v %s", err, out)
			}
			_, done, errResume := Resume(r.to)
			if errResume != nil {
				t.Fatalf("killed at call %d: %v", n, errResume)
			}
			got := r.state(t)
			if got != "now" && got != "then" || done && got != "then" {
				t.Fatalf("killed at call %d, elsewhere %t: it is %s, done %t", n, elsewhere, got, done)
			}
			outcomes[got]++
			if err == nil {
				break
			}
		}
	}
	if t.Log(outcomes); outcomes["now"] < 3 || outcomes["then"] < 3 {
		t.Errorf("it was not killed in every part: %v", outcomes)
	}
}

// A gateway that was killed leaves a log next to its database: SQLite would play it into
// the restored one.
func TestRestoreOver_ReplacesTheLogOfTheDatabase(t *testing.T) {
	t.Parallel()
	r := newReplacement(t, true)
	db, err := store.Open(t.Context(), r.to.Database, store.Options{})
	must(t, err, db.Tx(t.Context(), func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, "test", "of now") }))
	log, err := os.ReadFile(r.to.Database + "-wal")
	must(t, err, db.Close())
	if len(log) == 0 {
		t.Fatal("there is no log")
	}
	must(t, os.WriteFile(r.to.Database+"-wal", log, 0o600))
	if _, err := Restore(t.Context(), r.to, r.file, nil); err != nil {
		t.Fatal(err)
	}
	if exists(r.to.Database + "-wal") {
		t.Error("the log of the old database is there")
	}
	if got := r.state(t); got != "then" {
		t.Errorf("it is %s", got)
	}
}
