package outbox

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gatehouse/core"
	"gatehouse/core/store"
)

// removedBot begins the error of replies of a bot that is not configured any more.
const removedBot = "the bot was removed from the settings"

// Remove stops sending for a bot that is not configured any more. Its replies fail, so that
// the operator sees them.
func (b *Outbox) Remove(ctx context.Context, bot string) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	b.mu.Lock()
	delete(b.bots, bot)
	delete(b.places, bot)
	delete(b.blocked, bot)
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
		tx.OnCommit(func() { b.o.Ring(core.TopicQueue) })
	}
	return nil
}

// restore makes the replies of the last day that fail has ended wait again.
func (b *Outbox) restore(ctx context.Context, tx *store.Tx, bot string) error {
	n, err := tx.Exec(ctx, `UPDATE outbox SET state = 'ready', error = CASE WHEN error LIKE '%`+inDoubt+`' THEN '`+mayHaveArrived+`' ELSE '' END, not_before = '', declined_at = '', attempts = 0
		WHERE bot = $1 AND created_at > $2 AND state IN ('unknown', 'failed') AND state = 'failed' AND error LIKE '`+removedBot+`%'`, bot, core.Stamp(tx.Time().Add(-reopenFor)))
	if err != nil {
		return fmt.Errorf("restore replies of a bot: %w", err)
	}
	if n > 0 {
		tx.OnCommit(func() { b.o.Ring(core.TopicQueue) })
	}
	return nil
}

// unconfigured returns the bots that replies wait for and that are not among held.
func unconfigured(ctx context.Context, q store.Queryer, held map[string]int64) (bots []string, err error) {
	err = q.Select(ctx, &bots, `SELECT DISTINCT bot FROM outbox WHERE state IN ('ready', 'sending') AND state = 'ready'`)
	return slices.DeleteFunc(bots, func(bot string) bool { _, ours := held[bot]; return ours }), err
}

// failLate ends what waits for a bot that is not configured and came to wait after Remove: it was
// posted later, or was being sent at the time. It looks every ten seconds.
func (b *Outbox) failLate(ctx context.Context) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	now := b.o.Clock.Now()
	b.mu.Lock()
	held, due := maps.Clone(b.bots), b.sender != nil && (now.Sub(b.looked) >= lookLate || now.Before(b.looked))
	if due {
		b.looked = now
	}
	b.mu.Unlock()
	if !due {
		return nil
	}
	waiting, err := unconfigured(ctx, b.db, held)
	if err != nil || len(waiting) == 0 {
		return err
	}
	return b.db.Tx(ctx, func(tx *store.Tx) error {
		for _, bot := range waiting {
			if err := b.fail(ctx, tx, bot); err != nil {
				return err
			}
		}
		return nil
	})
}

// failUnconfigured ends what waits for bots that are not among held, which were removed while no
// gateway ran, and restores what waits for those that are.
func (b *Outbox) failUnconfigured(ctx context.Context, tx *store.Tx, held map[string]int64) error {
	waiting, err := unconfigured(ctx, tx, held)
	if err != nil {
		return err
	}
	for _, bot := range waiting {
		if err := b.fail(ctx, tx, bot); err != nil {
			return err
		}
	}
	for bot := range held {
		if err := b.restore(ctx, tx, bot); err != nil {
			return err
		}
	}
	return nil
}
