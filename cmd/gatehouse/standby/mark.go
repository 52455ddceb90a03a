package standby

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"strings"

	"gatehouse/core/store"
	"gatehouse/core/vault"
)

const (
	idFile = ".parachute/vault-id"
	idKey  = "vault.id" // in the table metadata
)

// Mark gives a vault and its database on a server one id, by which a gateway that stands
// by knows that its folder is that vault and not the empty place where it is mounted. A
// vault without the database's id is left as it is, with a warning.
func Mark(ctx context.Context, db *store.DB, v *vault.Vault, log *slog.Logger) error {
	id, err := db.Load(ctx, idKey)
	if err != nil {
		return err
	}
	b, err := v.ReadNoLinks(idFile, 100)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	has := strings.TrimSpace(string(b))
	switch {
	case id == "" && has == "":
		id = rand.Text()
		if err := v.WriteFile(idFile, []byte(id+"\n")); err != nil {
			return err
		}
	case id == "":
		id = has
	case id != has:
		log.Warn("this may not be the vault that the database belongs to: is the folder mounted? If it is the one, write the id into the file", "vault", v.Path(), "file", idFile, "id", id)
		return nil
	default:
		return nil
	}
	return db.Save(ctx, idKey, id)
}
