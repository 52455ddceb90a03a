package vaultid_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/standby/vaultid"
	"gatehouse/configs"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

func TestADatabaseThatDoesNotComeFromTheServerIsNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "vault")
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	db := storetest.Open(t, nil) // stands for the one on the server, and for its copy in a file
	older := filepath.Join(t.TempDir(), "older.db")
	elsewhere := func(url string) string {
		t.Helper()
		fault, fix := vaultid.Elsewhere(t.Context(), &configs.Config{VaultPath: dir, DatabaseURL: url})
		if (fault == "") != (fix == "") {
			t.Errorf("the fault %q has the remedy %q", fault, fix)
		}
		return fault
	}
	if got := elsewhere(older); got != "" {
		t.Errorf("a vault that never had a database on a server: %s", got)
	}
	if err := vaultid.Mark(t.Context(), db, v, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if got := elsewhere("postgres://gatehouse@127.0.0.1/gatehouse"); got != "" {
		t.Errorf("the server: %s", got)
	}
	if path := db.Path(); !strings.Contains(path, "://") && elsewhere(path) != "" {
		t.Errorf("the file with the vault's id: %s", elsewhere(path))
	}
	if got := elsewhere(older); !strings.Contains(got, older) {
		t.Errorf("a missing file: %q", got)
	}
	if err := os.WriteFile(older, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := elsewhere(older); !strings.Contains(got, vaultid.File) {
		t.Errorf("a file from before: %q", got)
	}
}
