package standby

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/standby/vaultid"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

func open(t *testing.T) *vault.Vault {
	t.Helper()
	v, err := vault.Open(filepath.Join(t.TempDir(), "vault"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v
}

func TestReasonsThatAlternateAreLoggedOnceEach(t *testing.T) {
	var out coretest.Log
	w := &watch{log: slog.New(slog.NewTextHandler(&out, nil)), said: map[core.Kind]time.Time{}}
	for range 50 {
		w.because(core.Conflict, errors.New("another gateway has the vault"))
		w.because(core.Other, errors.New("the database is away"))
	}
	if n := strings.Count(out.String(), "msg=waiting"); n != 2 {
		t.Errorf("%d lines: %s", n, out.String())
	}
}

func TestOnlyTheVaultThatWasMarkedWithADatabaseFitsIt(t *testing.T) {
	db, mine, other := storetest.Open(t, nil), open(t), open(t)
	var out coretest.Log
	mark := func(v *vault.Vault) string {
		if err := vaultid.Mark(t.Context(), db, v, slog.New(slog.NewTextHandler(&out, nil))); err != nil {
			t.Fatal(err)
		}
		id, err := db.Load(t.Context(), vaultid.Key)
		if err != nil || id == "" {
			t.Fatalf("the database has the id %q, %v", id, err)
		}
		return id
	}
	fits := func(v *vault.Vault, id string) bool {
		return (&watch{cfg: &configs.Config{VaultPath: v.Path()}}).fits(id)
	}
	id := mark(mine)
	if again := mark(mine); again != id || !fits(mine, id) || fits(other, id) || out.String() != "" {
		t.Errorf("id %q, then %q; %s", id, again, out.String())
	}
	if mark(other); fits(other, id) || !strings.Contains(out.String(), "is the folder mounted?") {
		t.Errorf("another folder was marked, too: %s", out.String())
	}
	if _, err := os.Stat(filepath.Join(other.Path(), vaultid.File)); err == nil {
		t.Error("another folder has an id")
	}
	if !fits(other, "") {
		t.Error("a database without an id fits no vault")
	}
}
