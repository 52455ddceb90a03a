package auth

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Forget removes a person's account and sign-ins; never the operator's.
func (a *Admins) Forget(ctx context.Context, tx *store.Tx, user int64) error {
	if user <= 0 || user == core.Operator {
		return nil
	}
	if _, err := deleteSessions(ctx, tx, user); err != nil {
		return fmt.Errorf("forget sign-ins: %w", err)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM admin_accounts WHERE user_id = $1`, user); err != nil {
		return fmt.Errorf("forget account: %w", err)
	}
	return nil
}
