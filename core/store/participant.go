package store

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store/migrations"
)

// An Export is a statement that returns what a table keeps of a user: $1 is the
// user's number, $2 the most rows.
type Export struct {
	Name, Query string
	// Open makes the encrypted columns of a row readable; nil: there are none.
	Open func(row map[string]any) error
}

// Log forgets and exports what the audit log and adopted rows keep of a user.
type Log struct{}

// Tables returns the tables with data of users.
func (Log) Tables() []string { return []string{"audit_events", "adopted_pairing_requests"} }

// Forget removes the user's accounts from them. Events keep the user's number.
func (Log) Forget(ctx context.Context, tx *Tx, r *core.Removal) error {
	if !r.Last {
		return nil
	}
	for _, id := range r.Identities {
		if err := forget(ctx, tx, id.Platform, id.ID); err != nil {
			return err
		}
	}
	return nil
}

// forget removes a platform's account from the subjects of the audit log, which
// name it for a block, and from the rows kept of the original system. The events
// stay.
func forget(ctx context.Context, tx *Tx, platform, id string) error {
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
	return err
}

// Exports returns the statements of an export.
func (Log) Exports() []Export {
	return []Export{{Name: "audit", Query: `SELECT at, via, action, subject FROM audit_events WHERE user_id = $1 ORDER BY at DESC, id DESC LIMIT $2`}}
}
