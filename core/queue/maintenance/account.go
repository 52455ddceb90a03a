package maintenance

import (
	"context"

	"gatehouse/core/store"
)

// NewAccount clears the platform message ids of a bot that is now another
// account. The new account numbers its messages from the start, and they would
// be dropped as repeats. Call it while the bot receives nothing.
func NewAccount(ctx context.Context, db *store.DB, bot string) error {
	return db.Tx(ctx, func(tx *store.Tx) error {
		for _, query := range []string{
			`UPDATE inbox SET message_id = '' WHERE bot = $1 AND kind = 'message' AND message_id <> ''`,
			`UPDATE outbox SET replaces = '' WHERE bot = $1 AND state IN ('ready', 'sending') AND state = 'ready' AND replaces <> ''`,
			`UPDATE lane SET preview = '' WHERE preview <> '' AND key IN (SELECT lane FROM inbox WHERE bot = $1)`,
		} {
			if _, err := tx.Exec(ctx, query, bot); err != nil {
				return err
			}
		}
		return nil
	})
}
