package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gatehouse/configs"
)

func TestTheGatewaysOwnPathsAreAllListed(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(base, name) }
	for name, text := range map[string]string{"bot.token": "111111:topsecret-a", "env": "", "first": "222222:topsecret-b", "second": "222222:topsecret-c"} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("first", at("link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("bots.yaml"), []byte("bots: [{name: b, platform: telegram, token_file: bot.token}, {name: c, platform: telegram, token_file: link}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(c *configs.Config) {
		c.BotsFile = at("bots.yaml")
		c.BackupPath = at("backups")
		c.ReadFrom(at("env"))
	})
	vault := w.app.vault.Path()
	runtime, err := filepath.EvalSymlinks(w.app.runtime)
	if err != nil {
		t.Fatal(err)
	}
	own := w.app.own.Paths()
	for _, want := range []string{runtime, vault + "/.parachute", vault + "/Chat/sessions.db", vault + "/Chat/sessions.db-wal", vault + "/Chat/sessions.db-shm", vault + "/Chat/sessions.db-journal",
		at("env"), at("bots.yaml"), at("bot.token"), at("first"), at("backups")} {
		if !slices.Contains(own, want) {
			t.Errorf("%s is not in %v", want, own)
		}
	}
	// A link that leads elsewhere later uncovers nothing.
	if err := os.Remove(at("link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("second", at("link")); err != nil {
		t.Fatal(err)
	}
	if own := w.app.own.Paths(); !slices.Contains(own, at("first")) || !slices.Contains(own, at("second")) {
		t.Errorf("after the link was changed: %v", own)
	}
	for _, name := range []string{"agents", "skills", "workspaces"} {
		if w.app.veil() != nil {
			if st, err := os.Stat(filepath.Join(vault, ".parachute", name)); err != nil || !st.IsDir() {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A folder of backups that holds the vault as well is not hidden: its backups are.
func TestAFolderOfBackupsAroundTheVaultStaysVisible(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	dir := filepath.Dir(w.app.vault.Path())
	w.app.cfg.BackupPath = dir
	backup := filepath.Join(dir, "gatehouse-20260102-030405.tar.gz")
	if err := os.WriteFile(backup, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	own := w.app.own.Paths()
	if slices.Contains(own, dir) || !slices.Contains(own, backup) {
		t.Errorf("%v", own)
	}
}
