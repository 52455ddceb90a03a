// Package authtest gives tests of other packages an operator who can sign in
// without what a real password hash costs: tests of the panel are not about it.
package authtest

import (
	"context"
	"encoding/base64"
	"fmt"
	"testing"

	"golang.org/x/crypto/argon2"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth"
)

// Operator gives the operator the password, as someone who has chosen it and
// signed in already. It is stored as every password is, by an argon2id hash with
// its parameters, which here are the smallest: 8 KiB, once.
func Operator(t testing.TB, db *store.DB, password string) {
	t.Helper()
	salt := make([]byte, 16)
	key := argon2.IDKey([]byte(password), salt, 1, 8, 1, 32)
	encoded := fmt.Sprintf("$argon2id$v=%d$m=8,t=1,p=1$%s$%s", argon2.Version,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
	err := db.Tx(context.Background(), func(tx *store.Tx) error {
		_, err := tx.Exec(context.Background(), `INSERT INTO admin_accounts (user_id, name, argon2id, used) VALUES ($1, $2, $3, 1)
			ON CONFLICT (user_id) DO UPDATE SET argon2id = excluded.argon2id, must_change = 0, used = 1`, core.Operator, auth.AdminName, encoded)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
