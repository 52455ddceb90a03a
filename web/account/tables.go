package account

import (
	"context"
	"errors"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth"
)

// Tables forgets and prunes API keys, accounts of the panel and their sessions.
type Tables struct {
	Keys     *auth.Keys
	Admins   *auth.Admins
	Accounts *Store
}

// Tables returns the tables that keep data of users.
func (Tables) Tables() []string {
	return []string{"api_keys", "admin_accounts", "admin_sessions", "admin_totp", "admin_recovery"}
}

// Revoke removes the user's keys, invitations, account and sessions; never the operator's.
func (t Tables) Revoke(ctx context.Context, tx *store.Tx, user int64) error {
	return errors.Join(t.Keys.Forget(ctx, tx, user), t.forget(ctx, tx, user))
}

// Merge ends the keys and the account that are merged: linking grants nothing.
func (t Tables) Merge(ctx context.Context, tx *store.Tx, from, _ int64) error {
	return t.Revoke(ctx, tx, from)
}

// Chores returns the tables' housekeeping.
func (t Tables) Chores() []core.Chore {
	return []core.Chore{{Name: "admin_sessions", Every: time.Hour, Run: t.Admins.Sweep}, {Name: "keys", Every: time.Minute, Run: t.Keys.Expire},
		{Name: "two_step", Every: 5 * time.Minute, Run: t.Accounts.Expire}}
}

// Exports returns the statements of an export.
func (Tables) Exports() []store.Export {
	return []store.Export{
		{Name: "api_keys", Query: `SELECT id, label, trust_level, scopes, created_at, last_used_at FROM api_keys WHERE user_id = $1 LIMIT $2`},
		{Name: "sign_in", Query: `SELECT name, role, used, created_at, signed_in_at FROM admin_accounts WHERE user_id = $1 LIMIT $2`},
		{Name: "two_step_sign_in", Query: `SELECT confirmed, at FROM admin_totp WHERE user_id = $1 LIMIT $2`},
	}
}

// forget removes a user's account with its sessions, its invitations and its app, never the operator's.
func (t Tables) forget(ctx context.Context, tx *store.Tx, user int64) error {
	if user <= 0 || user == core.Operator {
		return nil
	}
	if _, err := t.Admins.EndSession(ctx, tx, user, ""); err != nil {
		return err
	}
	if err := t.Accounts.Invitations.Withdraw(ctx, tx, user); err != nil {
		return err
	}
	if err := dropApp(ctx, tx, user); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM admin_accounts WHERE user_id = $1`, user)
	return err
}
