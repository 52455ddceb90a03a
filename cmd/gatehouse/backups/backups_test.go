package backups_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/backups"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/backup"
	"gatehouse/core/store/storetest"
)

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }

// settings loads settings for the vault and the database.
func settings(t *testing.T, vault, database string) *configs.Config {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GATEHOUSE_VAULT_PATH", vault)
	t.Setenv("GATEHOUSE_DATABASE_URL", database)
	cfg, err := configs.Load()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func save(t *testing.T, at, value string) {
	t.Helper()
	db := storetest.OpenAt(t, at, nil)
	if err := errors.Join(db.Save(t.Context(), "test", value), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, at string) string {
	t.Helper()
	db := storetest.OpenAt(t, at, nil)
	value, err := db.Load(t.Context(), "test")
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return value
}

// A vault whose database was moved to a server, with the old file in it.
func TestABackupOfADatabaseOnAServerIsRestoredIntoAFileAndToAServer(t *testing.T) {
	storetest.PostgresOnly(t, "the server is one")
	dir := t.TempDir()
	cfg := settings(t, filepath.Join(dir, "vault"), storetest.Fresh(t))
	save(t, filepath.Join(cfg.VaultPath, "Chat", "sessions.db"), "old")
	save(t, cfg.DatabasePath(), "on the server")
	file := filepath.Join(dir, "a.tar.gz")
	report, err := backup.Make(t.Context(), backups.Source(cfg, "", "test"), file, nil)
	if err != nil || !strings.Contains(strings.Join(report.Left, "\n"), "Chat/sessions.db (the database is on a server now)") {
		t.Fatal(report, err)
	}
	for name, database := range map[string]string{"file": "", "server": storetest.Fresh(t)} {
		cfg := settings(t, filepath.Join(dir, name), database)
		if _, err := backup.Restore(t.Context(), backups.Target(cfg, core.Actor{Via: "cli"}, "a", ""), file, nil); err != nil {
			t.Fatal(name, err)
		}
		if got := load(t, cfg.DatabasePath()); got != "on the server" {
			t.Errorf("%s: %q", name, got)
		}
		if _, err := os.Stat(filepath.Join(cfg.VaultPath, "Chat", "sessions.db")); (err == nil) != (database == "") {
			t.Errorf("%s: the file: %v", name, err)
		}
	}
}
