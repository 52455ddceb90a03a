package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/sealing"
	"gatehouse/cmd/gatehouse/standby/vaultid"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/council/ledger"
	"gatehouse/core/store/carry"
	"gatehouse/core/store/integrity"
	"gatehouse/core/store/postgres"
)

// Times of the checks of the database.
const (
	quickCheck  = 5 * time.Second  // before it is opened; what is left of it is integrity.Watch's
	serverCheck = 15 * time.Second // of a database on a server
)

// checkStart refuses to serve a vault whose database is damaged, or is missing although
// conversations were stored: they would seem to be lost, and users would be strangers.
func checkStart(ctx context.Context, cfg *configs.Config, fresh bool) error {
	path := cfg.DatabasePath()
	if cfg.OnServer() {
		return checkServer(ctx, cfg, fresh)
	}
	if missing, err := checkMissing(cfg); missing && fresh {
		return nil
	} else if missing || err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, quickCheck)
	defer cancel()
	if _, err := integrity.Before(limited, path); core.KindOf(err) == core.Invalid {
		return err
	}
	return nil // other faults are reported by what opens it
}

// checkMissing reports whether the database is a file that is missing or empty, and returns
// an error if conversations were stored: they would seem to be lost.
func checkMissing(cfg *configs.Config) (missing bool, err error) {
	st, err := os.Stat(cfg.DatabasePath())
	what := "missing"
	switch {
	case cfg.OnServer(), err == nil && st.Size() > 0, err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, nil // other faults are reported by what opens it
	case err == nil:
		what = "empty"
	}
	if !hasConversations(cfg.VaultPath) {
		return true, nil
	}
	return true, core.Errorf(core.Invalid, "the vault %s has conversations, and its database %s is %s: restore a backup ('gatehouse restore FILE', into an empty vault), "+
		"or rebuild the list of conversations ('gatehouse reindex': users and keys come only from a backup), or set GATEHOUSE_DATABASE_URL to where the database is. "+
		"'gatehouse serve --new' begins with an empty database", cfg.VaultPath, cfg.DatabasePath(), what)
}

// checkServer is checkStart for a database on a server.
func checkServer(ctx context.Context, cfg *configs.Config, fresh bool) error {
	limited, cancel := context.WithTimeout(ctx, serverCheck)
	defer cancel()
	found, err := postgres.Look(limited, cfg.DatabasePath(), cfg.DatabasePassword.Reveal())
	switch {
	case core.KindOf(err) == core.Invalid:
		return err
	case core.KindOf(err) == core.Busy && found.Holder != "":
		return nil // what opens the database waits for the one that creates the tables
	case err != nil:
		return fmt.Errorf("the database cannot be reached (GATEHOUSE_DATABASE_URL, GATEHOUSE_DATABASE_PASSWORD_FILE): %w", err)
	case found.Version == 0 && !fresh && hasConversations(cfg.VaultPath):
		return core.Errorf(core.Invalid, "the vault %s has conversations, and its database on the server is empty: check the database and the search_path of GATEHOUSE_DATABASE_URL. "+
			"'gatehouse migrate --to' copies the one in the vault there, 'gatehouse serve --new' begins with an empty database", cfg.VaultPath)
	}
	return nil
}

// hasConversations reports whether a gateway stored conversations in the vault: each has a
// file next to its transcript. Transcripts alone are of Claude Code's command line.
func hasConversations(vault string) bool {
	files, err := os.ReadDir(filepath.Join(vault, ".parachute", "sessions"))
	if err != nil {
		return false
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".json") && !strings.HasPrefix(f.Name(), ".") {
			return true
		}
	}
	return false
}

// watchDatabase compares the open database with the file at its path, and opens the keys
// of its encrypted columns.
func (a *app) watchDatabase(ctx context.Context) (err error) {
	if !a.cfg.OnServer() {
		if fault, fix := vaultid.Elsewhere(ctx, a.cfg); fault != "" {
			a.log.Warn(fault, "fix", fix)
		}
		if a.file, err = integrity.Begin(a.cfg.DatabasePath(), a.clock); err != nil {
			return err
		}
	}
	if err := carry.Finished(ctx, a.db); err != nil {
		return err
	}
	if a.cfg.OnServer() {
		if err := vaultid.Mark(ctx, a.db, a.vault, a.log); err != nil {
			return err
		}
	}
	if a.sealed, err = sealing.Open(ctx, a.cfg, a.db, a.log); err != nil {
		return err
	}
	a.council = ledger.New(ledger.Options{DB: a.db, Clock: a.clock, Seal: a.sealed})
	return nil
}
