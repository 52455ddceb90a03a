package queue

import (
	"context"

	"gatehouse/core/store"
)

// Hold takes the lease of a bot that came after TakeOver: what waits to be sent
// by it is sent from now on. Held again, it only gets a new epoch.
func (q *Queue) Hold(ctx context.Context, bot string) error {
	var epoch int64
	err := q.db.Tx(ctx, func(tx *store.Tx) (err error) {
		epoch, err = q.lease(ctx, tx, bot)
		return err
	})
	if err != nil {
		return err
	}
	q.o.Metrics.zero(bot)
	q.mu.Lock()
	q.bots[bot] = epoch
	q.mu.Unlock()
	q.ring()
	return nil
}

// LetGo ends what Hold or TakeOver began: what waits to be sent by that bot
// stays, until it is held again.
func (q *Queue) LetGo(bot string) {
	q.mu.Lock()
	delete(q.bots, bot)
	q.mu.Unlock()
}

// NewAccount forgets by which numbers the platform knows a bot's messages: from
// now on the bot is another account, whose messages are numbered anew, and what
// it hears would otherwise be taken for repeats. Call it while the bot takes
// nothing.
func (q *Queue) NewAccount(ctx context.Context, bot string) error {
	return q.db.Tx(ctx, func(tx *store.Tx) error {
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
