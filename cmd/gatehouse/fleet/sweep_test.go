package fleet

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/live"
	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// The bot chatter is of a platform that this gateway does not know any more: its settings are left
// out and stay stored, and so does its token.
func TestSweepTokensDeletesWhatNoStoredBotNames(t *testing.T) {
	const changes = `{"bots": {"support": {"added": {"platform": "telegram"}}, "chatter": {"added": {"platform": "irc"}}}}`
	for name, c := range map[string]struct {
		stored string
		left   []string
	}{
		"named bots": {changes, []string{"chatter", "support"}},
		"no change":  {"", nil},
		"policies":   {`{"bots": {"chatter": {}, "orphan": {}, "support": {}}}`, []string{"chatter", "orphan", "support"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir, _ := stored(t, c.stored)
			if log := sweep(t, s); strings.Contains(log, "WARN") || strings.Count(log, "deleted a token") != 4-len(c.left) || strings.Contains(log, "4711") {
				t.Errorf("logged %q", log)
			}
			if left := names(t, dir); !slices.Equal(left, c.left) {
				t.Errorf("left %q, want %q", left, c.left)
			}
		})
	}
}

func TestSweepTokensKeepsAllWhenTheStoredBotsCannotBeRead(t *testing.T) {
	s, dir, db := stored(t, "")
	if err := db.Tx(t.Context(), func(tx *store.Tx) error {
		return store.SetMetadata(t.Context(), tx, "setting:changes", "{half")
	}); err != nil {
		t.Fatal(err)
	}
	log := sweep(t, s)
	if left := names(t, dir); len(left) != 4 || !strings.Contains(log, "could not be deleted") {
		t.Errorf("left %q, logged %q", left, log)
	}
}

func TestSweepTokensWithoutTokensDoesNothing(t *testing.T) {
	s, dir, _ := stored(t, "")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if log := sweep(t, s); log != "" {
		t.Errorf("logged %q", log)
	}
}

// sweep returns what SweepTokens logs.
func sweep(t *testing.T, s *live.Settings) string {
	t.Helper()
	var log bytes.Buffer
	SweepTokens(t.Context(), s, slog.New(slog.NewTextHandler(&log, nil)))
	return log.String()
}

// stored returns settings with stored changes, "" for none, and a directory with four tokens.
func stored(t *testing.T, changes string) (*live.Settings, string, *store.DB) {
	t.Helper()
	db := storetest.Open(t, core.System{})
	if changes != "" {
		if err := db.Tx(t.Context(), func(tx *store.Tx) error {
			return store.SetMetadata(t.Context(), tx, "setting:changes", changes)
		}); err != nil {
			t.Fatal(err)
		}
	}
	cfg := &configs.Config{VaultPath: t.TempDir()}
	s, err := live.Open(t.Context(), cfg, db, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"support", "chatter", "orphan", ".support-17"} {
		if err := os.MkdirAll(cfg.TokensDir(), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cfg.TokensDir(), name), []byte("4711:secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s, cfg.TokensDir(), db
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}
