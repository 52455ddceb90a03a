package standby

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"strings"

	"gatehouse/core/store"
	"gatehouse/core/vault"
)

const (
	idFile = ".parachute/vault-id"
	idKey  = "vault.id" // in the table metadata
)

// Mark gives a vault and its database on a server one id, by which a gateway that stands
// by knows that its folder is that vault and not the empty place where it is mounted. The
// id of the database is kept where both have one: a vault that was restored gets it.
func Mark(ctx context.Context, db *store.DB, v *vault.Vault) error {
	id, _, err := store.Metadata(ctx, db, idKey)
	if err != nil {
		return err
	}
	has, err := idOf(v)
	if err != nil {
		return err
	}
	known := id != ""
	switch {
	case !known && has != "":
		id = has
	case !known:
		id = rand.Text()
	}
	if has != id {
		if err := v.WriteFile(idFile, []byte(id+"\n")); err != nil {
			return err
		}
	}
	if known {
		return nil
	}
	return db.Save(ctx, idKey, id)
}

// idOf returns the id that Mark has put into a vault; "" if there is none.
func idOf(v *vault.Vault) (string, error) {
	b, err := v.ReadNoLinks(idFile, 100)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(b)), err
}
