package outbox

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Hold leases a bot that was added after TakeOver: its waiting replies are sent
// from now on. Holding a bot again gives its lease a new epoch.
func (b *Outbox) Hold(ctx context.Context, bot string) error {
	var epoch int64
	err := b.db.Tx(ctx, func(tx *store.Tx) (err error) {
		epoch, err = b.lease(ctx, tx, bot)
		return err
	})
	if err != nil {
		return err
	}
	b.o.Metrics.AddBot(bot)
	b.mu.Lock()
	b.bots[bot] = epoch
	b.mu.Unlock()
	b.ring()
	return nil
}

// LetGo stops sending for a bot. Its replies stay stored until the bot is held
// again.
func (b *Outbox) LetGo(bot string) {
	b.mu.Lock()
	delete(b.bots, bot)
	b.mu.Unlock()
}

// TakeOver leases the bots of this node and decides on rows that an earlier
// process has left in sending: their outcome is unknown, unless sending again is
// safe (an edit; Sender.Repeats). Call it once, in the transaction that takes
// over the lanes, before Open.
func (b *Outbox) TakeOver(ctx context.Context, tx *store.Tx, bots []string, sender Sender) error {
	held := map[string]int64{}
	for _, bot := range bots {
		epoch, err := b.lease(ctx, tx, bot)
		if err != nil {
			return err
		}
		held[bot] = epoch
	}
	b.mu.Lock()
	b.sender, b.bots = sender, held
	b.mu.Unlock()
	return b.takeOverSends(ctx, tx, bots)
}

// takeOverSends decides on rows found in sending. An edit can be repeated, and
// a message that the platform recognises is shown once. Any other row may have
// arrived, so the operator decides; this includes messages for a single user,
// which are sent without a nonce.
func (b *Outbox) takeOverSends(ctx context.Context, tx *store.Tx, bots []string) error {
	if _, err := tx.Exec(ctx, `UPDATE outbox SET state = 'ready' WHERE state IN ('ready', 'sending') AND state = 'sending' AND replaces <> ''`); err != nil {
		return err
	}
	for _, bot := range bots {
		since := core.Stamp(tx.Time().Add(-b.sender.Repeats(bot)))
		if _, err := tx.Exec(ctx, `UPDATE outbox SET state = 'ready', error = $1 WHERE state IN ('ready', 'sending') AND state = 'sending'
			AND bot = $2 AND sent_at > $3 AND sent_at <= $4 AND body NOT LIKE '%"aside":"%'`, askedAgain, bot, since, core.Stamp(tx.Time())); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `UPDATE outbox SET state = 'unknown', error = 'the gateway ended while this was being sent' WHERE state IN ('ready', 'sending') AND state = 'sending'`)
	return err
}

// lease takes the lease of one bot and returns its new epoch.
func (b *Outbox) lease(ctx context.Context, tx *store.Tx, bot string) (epoch int64, err error) {
	err = tx.Get(ctx, &epoch, `INSERT INTO lease (name, owner, epoch, until) VALUES ($1, $2, 1, $3)
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, epoch = lease.epoch + 1, until = excluded.until
		RETURNING epoch`, "bot:"+bot, b.o.Node, core.Stamp(tx.Time().Add(leaseTime)))
	return epoch, err
}
