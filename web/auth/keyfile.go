package auth

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth/keyfile"
)

// keyFileID is the metadata row with the id of the key in the key file.
const keyFileID = "auth.keyfile"

// EnsureFile sees to it that the file at path holds a working key for local
// tools: the operator's, all scopes, trust vault. A file that works is left
// alone; otherwise a new key is written (mode 0600, replaced atomically) and
// the one before it is revoked. A file others may read is not trusted.
func (k *Keys) EnsureFile(ctx context.Context, path string) error {
	if secret, ok := keyfile.Read(path); ok {
		row, found, err := k.Find(ctx, secret)
		if err != nil {
			return err
		}
		if found && row.User == core.Operator {
			return nil
		}
	}
	var secret string
	err := k.db.Tx(ctx, func(tx *store.Tx) error {
		old, _, err := store.Metadata(ctx, tx, keyFileID)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM api_keys WHERE id = $1`, old); err != nil {
			return err
		}
		var row KeyRow
		secret, row, err = create(ctx, tx, NewKey{Label: "local tools", User: core.Operator, Trust: core.Vault, Scopes: Scopes()}, core.Actor{Via: "cli"})
		if err != nil {
			return err
		}
		return store.SetMetadata(ctx, tx, keyFileID, row.ID)
	})
	if err != nil {
		return fmt.Errorf("key for local tools: %w", err)
	}
	if err := keyfile.Write(path, secret); err != nil {
		return fmt.Errorf("key file %s: %w", path, err)
	}
	return nil
}
