package store

import (
	"context"

	"gatehouse/core"
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
		if err := Forget(ctx, tx, id.Platform, id.ID); err != nil {
			return err
		}
	}
	return nil
}

// Exports returns the statements of an export.
func (Log) Exports() []Export {
	return []Export{{Name: "audit", Query: `SELECT at, via, action, subject FROM audit_events WHERE user_id = $1 ORDER BY at DESC, id DESC LIMIT $2`}}
}
