package outbox

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// removedBot begins the error of replies of a bot that is not configured any more.
const removedBot = "the bot was removed from the settings"

// Remove stops sending for a bot that is not configured any more. Its replies fail, so that
// the operator sees them.
func (b *Outbox) Remove(ctx context.Context, bot string) error {
	b.mu.Lock()
	delete(b.bots, bot)
	delete(b.places, bot)
	b.mu.Unlock()
	return b.db.Tx(ctx, func(tx *store.Tx) error { return b.fail(ctx, tx, bot) })
}

// fail ends the waiting replies of a bot that is not configured.
func (b *Outbox) fail(ctx context.Context, tx *store.Tx, bot string) error {
	n, err := tx.Exec(ctx, `UPDATE outbox SET state = 'failed', error = $1 || CASE WHEN error = '`+mayHaveArrived+`' OR error = '`+askedAgain+`' AND replaces = '' THEN '`+inDoubt+`' ELSE '' END
		WHERE bot = $2 AND state IN ('ready', 'sending') AND state = 'ready'`, removedBot, bot)
	if err != nil {
		return fmt.Errorf("fail replies of a bot: %w", err)
	}
	if n > 0 {
		tx.OnCommit(func() { b.o.Ring("queue") })
	}
	return nil
}

// restore makes the replies of the last day that fail has ended wait again.
func (b *Outbox) restore(ctx context.Context, tx *store.Tx, bot string) error {
	n, err := tx.Exec(ctx, `UPDATE outbox SET state = 'ready', error = CASE WHEN error LIKE '%`+inDoubt+`' THEN '`+mayHaveArrived+`' ELSE '' END, not_before = '', attempts = 0
		WHERE bot = $1 AND created_at > $2 AND state IN ('unknown', 'failed') AND state = 'failed' AND error LIKE '`+removedBot+`%'`, bot, core.Stamp(tx.Time().Add(-reopenFor)))
	if err != nil {
		return fmt.Errorf("restore replies of a bot: %w", err)
	}
	if n > 0 {
		tx.OnCommit(func() { b.o.Ring("queue") })
	}
	return nil
}

// failUnconfigured ends what waits for bots that are not among held, which were removed while no
// gateway ran, and restores what waits for those that are.
func (b *Outbox) failUnconfigured(ctx context.Context, tx *store.Tx, held map[string]int64) error {
	var waiting []string
	if err := tx.Select(ctx, &waiting, `SELECT DISTINCT bot FROM outbox WHERE state IN ('ready', 'sending') AND state = 'ready'`); err != nil {
		return err
	}
	for _, bot := range waiting {
		if _, ours := held[bot]; !ours {
			if err := b.fail(ctx, tx, bot); err != nil {
				return err
			}
		}
	}
	for bot := range held {
		if err := b.restore(ctx, tx, bot); err != nil {
			return err
		}
	}
	return nil
}
