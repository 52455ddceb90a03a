package backups_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/backups"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/backup"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
	"gatehouse/core/vaultsync"
	"gatehouse/core/vaultsync/wire"
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

// What was due since the backup was most likely done before the restore.
func TestARestoreRepeatsNoReminderAndMakesUpNoRun(t *testing.T) {
	dir := t.TempDir()
	cfg := settings(t, filepath.Join(dir, "vault"), "")
	db := storetest.OpenAt(t, cfg.DatabasePath(), nil)
	past, future := core.Stamp(time.Now().Add(-26*time.Hour)), core.Stamp(time.Now().Add(26*time.Hour))
	err := db.Tx(t.Context(), func(tx *store.Tx) error {
		for made, r := range map[string][3]string{"once": {"tea", "", past}, "daily": {"pills", "8:00", past}, "later": {"post", "", future}} {
			if _, err := tx.Exec(t.Context(), `INSERT INTO reminders (user_id, made, bot, chat, platform, sender, text, rule, zone, due, created)
				VALUES (1, $1, 'telegram', '7', 'telegram', '7', $2, $3, 'UTC', $4, $4)`, made, r[0], r[1], r[2]); err != nil {
				return err
			}
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO schedule_agents (name, rule, since) VALUES ('reflection', '8:00', $1)`, past)
		return err
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a.tar.gz")
	if _, err := backup.Make(t.Context(), backups.Source(cfg, "", "test"), file, nil); err != nil {
		t.Fatal(err)
	}
	began := core.Stamp(time.Now())
	cfg = settings(t, filepath.Join(dir, "again"), "")
	report, err := backup.Restore(t.Context(), backups.Target(cfg, core.Actor{Via: "cli"}, "a", ""), file, nil)
	if err != nil || report.Sends != 2 {
		t.Fatal(report, err)
	}
	db = storetest.OpenAt(t, cfg.DatabasePath(), nil)
	var due []struct{ Text, Due string }
	var posted []struct{ State, Body string }
	var since string
	err = errors.Join(db.Select(t.Context(), &due, `SELECT text, due FROM reminders ORDER BY text`),
		db.Select(t.Context(), &posted, `SELECT state, body FROM outbox ORDER BY body`), db.Get(t.Context(), &since, `SELECT since FROM schedule_agents`), db.Close())
	if err != nil {
		t.Fatal(err)
	}
	if len(due) != 2 || due[0].Text != "pills" || due[0].Due <= began || due[1].Text != "post" || due[1].Due != future {
		t.Errorf("what is due: %v", due)
	}
	if len(posted) != 2 || posted[0].State != "unknown" || !strings.Contains(posted[0].Body, "pills") || posted[1].State != "unknown" || !strings.Contains(posted[1].Body, "tea") {
		t.Errorf("what is left to the operator: %v", posted)
	}
	if since < began {
		t.Errorf("runs since %s are made up", since)
	}
}

// Devices have cursors of changes that the backup does not know.
func TestARestoreBeginsAnotherEpochOfTheSync(t *testing.T) {
	dir := t.TempDir()
	cfg := settings(t, filepath.Join(dir, "vault"), "")
	was := epoch(t, cfg)
	file := filepath.Join(dir, "a.tar.gz")
	if _, err := backup.Make(t.Context(), backups.Source(cfg, "", "test"), file, nil); err != nil {
		t.Fatal(err)
	}
	if again := epoch(t, cfg); again != was {
		t.Errorf("%q behind a backup, %q before", again, was)
	}
	cfg = settings(t, filepath.Join(dir, "again"), "")
	if _, err := backup.Restore(t.Context(), backups.Target(cfg, core.Actor{Via: "cli"}, "a", ""), file, nil); err != nil {
		t.Fatal(err)
	}
	if now := epoch(t, cfg); now == was || now == "" {
		t.Errorf("%q behind a restore, %q before", now, was)
	}
}

// epoch returns the epoch that a device is told.
func epoch(t *testing.T, cfg *configs.Config) string {
	t.Helper()
	v, err := vault.Open(cfg.VaultPath)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	db := storetest.OpenAt(t, cfg.DatabasePath(), nil)
	defer db.Close()
	s := vaultsync.New(vaultsync.Options{DB: db, Vault: v, Clock: core.System{}, Log: slog.New(slog.DiscardHandler)})
	every := func(core.Trust, int64, string, bool) bool { return true }
	out, err := s.List(t.Context(), vaultsync.Area{User: core.Operator, Trust: core.Full, May: every}, vaultsync.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	l, err := wire.Read(out, func(wire.File, bool) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return l.Epoch
}
