// Package vaultid has the id that a vault and its database on a server share, and finds by it
// that the settings name another database than the vault's.
package vaultid

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"gatehouse/configs"
	"gatehouse/core/store"
	"gatehouse/core/store/snapshot"
	"gatehouse/core/vault"
)

// Where the id is kept.
const (
	File = ".parachute/vault-id" // in the vault
	Key  = "vault.id"            // in the table metadata
)

// Mark gives a vault and its database on a server one id, by which a gateway that stands
// by knows that its folder is that vault and not the empty place where it is mounted. A
// vault without the database's id is left as it is, with a warning.
func Mark(ctx context.Context, db *store.DB, v *vault.Vault, log *slog.Logger) error {
	id, err := db.Load(ctx, Key)
	if err != nil {
		return err
	}
	b, err := v.ReadNoLinks(File, 100)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	has := strings.TrimSpace(string(b))
	switch {
	case id == "" && has == "":
		id = rand.Text()
		if err := v.WriteFile(File, []byte(id+"\n")); err != nil {
			return err
		}
	case id == "":
		id = has
	case id != has:
		log.Warn("this may not be the vault that the database belongs to: is the folder mounted? If it is the one, write the id into the file", "vault", v.Path(), "file", File, "id", id)
		return nil
	default:
		return nil
	}
	return db.Save(ctx, Key, id)
}

// Of returns the id of the vault in a folder; an error without one.
func Of(path string) (string, error) {
	b, err := os.ReadFile(filepath.Join(path, File))
	return strings.TrimSpace(string(b)), err
}

// Elsewhere returns a fault and its remedy if the vault of cfg was served with a database
// on a server, and cfg names a file that does not come from there: it is older, or missing.
// A file that was copied back from the server has the vault's id.
func Elsewhere(ctx context.Context, cfg *configs.Config) (fault, fix string) {
	own, err := Of(cfg.VaultPath)
	if err != nil || cfg.OnServer() {
		return "", ""
	}
	if id, err := snapshot.Peek(ctx, cfg.DatabasePath(), Key); err != nil || id == own {
		return "", "" // what is wrong with the file is reported by what opens it
	}
	fault = fmt.Sprintf("the vault %s was served with a database on a server (its file %s), but these settings name the file %s, which lacks what is on the server", cfg.VaultPath, File, cfg.DatabasePath())
	return fault, "use the gateway's settings (--env-file, " + configs.Prefix + "_DATABASE_URL); if you went back to that file for good, delete " + File
}
