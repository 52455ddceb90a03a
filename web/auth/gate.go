package auth

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
)

// A Gate decides about turns that came over HTTP (bot core.APIBot) where the
// queue asks: when they are stored and again when they are taken.
type Gate struct {
	// Localhost: keyless chat from this machine is open (LOCALHOST_ACCESS=chat).
	Localhost bool
}

// Trust returns the present ceiling of in: the key's or the admin account's level as it is
// now, lowered to what the turn itself asked for. A revoked key, one that has expired or lost
// the scope chat or belongs to another user, and anything that is no API turn is a Stranger.
func (g Gate) Trust(ctx context.Context, tx *store.Tx, in *core.Inbound) (core.Trust, error) {
	if in.Bot != core.APIBot || in.Turn == nil {
		return core.Stranger, nil
	}
	ceiling, err := g.ceiling(ctx, tx, in.Turn)
	if err != nil || in.Turn.Trust == core.Stranger {
		return ceiling, err
	}
	return core.Least(ceiling, in.Turn.Trust), nil
}

// Admit stamps in when it is stored: run reports whether it may run, and at which
// trust. One function decides both times, so that they can't differ.
func (g Gate) Admit(ctx context.Context, tx *store.Tx, in *core.Inbound) (run bool, trust core.Trust, err error) {
	trust, err = g.Trust(ctx, tx, in)
	return err == nil && trust > core.Stranger, trust, err
}

func (g Gate) ceiling(ctx context.Context, tx *store.Tx, t *core.Options) (core.Trust, error) {
	switch t.Key {
	case LocalKey:
		if g.Localhost && t.User == LocalUser {
			return core.Sandboxed, nil
		}
		return core.Stranger, nil
	case "": // an admin session
		var n int
		err := tx.Get(ctx, &n, `SELECT count(*) FROM admin_accounts WHERE user_id = $1 AND (must_change = 0 OR by_link = 1) AND role = 'admin'`, t.User)
		if err != nil || n == 0 {
			return core.Stranger, err
		}
		return core.Vault, nil
	}
	var r keyRecord
	err := tx.Get(ctx, &r, `SELECT id, user_id, trust_level, scopes, expires_at FROM api_keys WHERE id = $1`, t.Key)
	if errors.Is(err, store.ErrNoRows) {
		return core.Stranger, nil
	}
	if err != nil || r.User != t.User || r.over(tx.Time()) || !slices.Contains(strings.Fields(r.Scopes), ScopeChat) {
		return core.Stranger, err
	}
	return r.Trust, nil
}
