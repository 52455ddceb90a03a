package store

import (
	"context"
	"fmt"

	"gatehouse/core/store/migrations"
)

// Forget removes a platform's account from the subjects of the audit log, which
// name it for a block, and from the rows kept of the original system. The events
// stay.
func Forget(ctx context.Context, tx *Tx, platform, id string) error {
	if _, err := tx.Exec(ctx, `UPDATE audit_events SET subject = '' WHERE subject = $1`, platform+":"+id); err != nil {
		return fmt.Errorf("forget in the audit log: %w", err)
	}
	if tx.db.engine.kind != migrations.SQLite {
		return nil // adopts nothing
	}
	var kept bool
	if err := tx.Get(ctx, &kept, `SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'adopted_pairing_requests')`); err != nil || !kept {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM adopted_pairing_requests WHERE platform = $1 AND platform_user_id = $2`, platform, id)
	if err != nil {
		return fmt.Errorf("forget adopted rows: %w", err)
	}
	return nil
}
