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
