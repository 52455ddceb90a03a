package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"gatehouse/core"
	"gatehouse/core/store"
)

// keyFileID is the metadata row with the id of the key in the key file.
const keyFileID = "auth.keyfile"

// EnsureFile sees to it that the file at path holds a working key for local
// tools: the operator's, all scopes, trust vault. A file that works is left
// alone; otherwise a new key is written (mode 0600, replaced atomically) and
// the one before it is revoked. A file others may read is not trusted.
func (k *Keys) EnsureFile(ctx context.Context, path string) error {
	if secret, ok := readKeyFile(path); ok {
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
	if err := writeKeyFile(path, secret); err != nil {
		return fmt.Errorf("key file %s: %w", path, err)
	}
	return nil
}

// readKeyFile reads a regular file of ours that no one else may touch.
func readKeyFile(path string) (string, bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Mode().Perm()&0o077 != 0 || st.Size() > 256 {
		return "", false
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != os.Getuid() {
		return "", false
	}
	body := make([]byte, st.Size())
	n, err := f.Read(body)
	return string(bytes.TrimSpace(body[:n])), err == nil
}

func writeKeyFile(path, secret string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(secret + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
