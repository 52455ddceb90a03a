package remote_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/backup"
	"gatehouse/core/queue/maintenance"
	"gatehouse/core/store"
	"gatehouse/core/store/carry"
	"gatehouse/core/store/carry/remote"
	"gatehouse/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }

func save(t *testing.T, at, value string) {
	t.Helper()
	db := storetest.OpenAt(t, at, nil)
	if err := errors.Join(db.Save(t.Context(), "test", value), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, at string) (value string, unfinished bool) {
	t.Helper()
	db := storetest.OpenAt(t, at, nil)
	value, err := db.Load(t.Context(), "test")
	unfinished, failed := carry.Unfinished(t.Context(), db)
	if err := errors.Join(err, failed, db.Close()); err != nil {
		t.Fatal(err)
	}
	return value, unfinished
}

// settle is what a restore does with the database.
func settle(ctx context.Context, _ *store.DB, tx *store.Tx) (maintenance.Restored, error) {
	return maintenance.Restored{Messages: 3}, store.SetMetadata(ctx, tx, "settled", "yes")
}

// backedUp makes a backup of a vault with one file, with the database on the server.
func backedUp(t *testing.T) (file string, src backup.Source) {
	t.Helper()
	at, dir := storetest.Fresh(t), t.TempDir()
	save(t, at, "on the server")
	src = backup.Source{Vault: filepath.Join(dir, "vault"), Database: at, Server: remote.Database{Address: at}}
	if err := errors.Join(os.Mkdir(src.Vault, 0o700), os.WriteFile(filepath.Join(src.Vault, "tea.md"), []byte("green"), 0o600)); err != nil {
		t.Fatal(err)
	}
	open := storetest.OpenAt(t, at, nil) // the gateway serves
	file = filepath.Join(dir, "a.tar.gz")
	report, err := backup.Make(t.Context(), src, file, nil)
	if err := errors.Join(err, open.Close()); err != nil || report.Schema != store.Newest() {
		t.Fatal(report, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.part*")); len(left) > 0 {
		t.Error("left: ", left, err)
	}
	return file, src
}

func TestABackupOfAServerIsRestoredToEitherEngine(t *testing.T) {
	storetest.PostgresOnly(t, "the server is one")
	file, _ := backedUp(t)
	dir := t.TempDir()
	lite := filepath.Join(dir, "chat.db")
	at := storetest.Fresh(t)
	for name, to := range map[string]backup.Target{
		"file":   {Vault: filepath.Join(dir, "a"), Database: lite, Settle: settle},
		"server": {Vault: filepath.Join(dir, "b"), Database: at, Server: remote.Database{Address: at}, Settle: settle},
	} {
		r, err := backup.Restore(t.Context(), to, file, nil)
		if err != nil || r.Messages != 3 {
			t.Fatal(name, err)
		}
		if b, err := os.ReadFile(filepath.Join(to.Vault, "tea.md")); string(b) != "green" || backup.CheckFinished(to.Vault) != nil {
			t.Error(name, string(b), err)
		}
		if value, unfinished := load(t, to.Database); value != "on the server" || unfinished {
			t.Errorf("%s: %q, %v", name, value, unfinished)
		}
	}
}

func TestARestoreToAServerInUseIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	storetest.PostgresOnly(t, "the server is one")
	file, src := backedUp(t)
	to := backup.Target{Vault: filepath.Join(t.TempDir(), "new"), Database: src.Database, Server: src.Server, Settle: settle}
	_, err := backup.Restore(t.Context(), to, file, nil)
	if core.KindOf(err) != core.Conflict || !strings.Contains(err.Error(), "in use already") {
		t.Error(err)
	}
	if _, err := os.Stat(to.Vault); err == nil {
		t.Error("the vault was created")
	}
	if _, err := backup.Check(t.Context(), backup.Target{Vault: src.Vault, Database: src.Database, Server: src.Server, Over: &backup.Over{ID: "x", Source: src}}, file, nil); core.KindOf(err) != core.Invalid || !strings.Contains(err.Error(), "gatehouse restore FILE") {
		t.Errorf("in the panel: %v", err)
	}
}

// A dying imports half of the database, or all of it and does not return.
type dying struct {
	remote.Database
	half bool
	t    *testing.T
}

var errKilled = errors.New("killed")

func (d dying) Import(ctx context.Context, file string) error {
	if !d.half {
		return errors.Join(errKilled, d.Database.Import(ctx, file))
	}
	from, err := carry.Source(file)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := d.Target(ctx)
	if err != nil {
		return err
	}
	defer to.Close()
	ending, kill := context.WithCancelCause(ctx)
	_, err = carry.Copy(ending, from, to, func(step string, rows int, _ int64) {
		if step == carry.Copying && rows > 0 {
			kill(errKilled)
		}
	})
	return err
}

func TestAKilledRestoreToAServerIsCompletedByTheNext(t *testing.T) {
	storetest.PostgresOnly(t, "the server is one")
	file, _ := backedUp(t)
	for _, half := range []bool{true, false} {
		at := storetest.Fresh(t)
		to := backup.Target{Vault: filepath.Join(t.TempDir(), "new"), Database: at, Server: dying{remote.Database{Address: at}, half, t}, Settle: settle}
		if _, err := backup.Restore(t.Context(), to, file, nil); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if backup.CheckFinished(to.Vault) == nil {
			t.Error("the vault is taken for a whole one")
		}
		if _, unfinished := load(t, at); unfinished != half {
			t.Errorf("unfinished: %v", unfinished)
		}
		to.Server = remote.Database{Address: at}
		if _, err := backup.Restore(t.Context(), to, file, nil); err != nil {
			t.Fatal(err)
		}
		if value, unfinished := load(t, at); value != "on the server" || unfinished || backup.CheckFinished(to.Vault) != nil {
			t.Errorf("%q, %v", value, unfinished)
		}
	}
}

func TestNoErrorQuotesThePassword(t *testing.T) {
	const secret = "top-secret-4711"
	for _, d := range []remote.Database{
		{Address: "postgres://u@127.0.0.1:1/x", Password: secret}, {Address: "postgres://127.0.0.1:1/x?user=u", Password: secret},
		{Address: "postgres://u:" + secret + "@127.0.0.1:1/x"}, {Address: "postgres://u:" + secret + "@h:port/x", Password: secret},
	} {
		_, source := d.Source(t.Context())
		_, export := d.Export(t.Context(), filepath.Join(t.TempDir(), "x.db"))
		for _, err := range []error{source, export, d.Ready(t.Context())} {
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v", d.Address, err)
			}
		}
	}
}
