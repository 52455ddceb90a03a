package outbox

import (
	"cmp"
	"context"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue/flight"
	"gatehouse/core/store"
)

// Hold leases a bot that was added after TakeOver: its waiting replies are sent
// from now on, also those of the last day that failed when it was removed. Holding a bot
// again gives its lease a new epoch.
func (b *Outbox) Hold(ctx context.Context, bot string) error {
	b.changing.Lock() // failLate does not end what is restored
	defer b.changing.Unlock()
	var l leased
	err := b.db.Tx(ctx, func(tx *store.Tx) (err error) {
		if l, err = b.lease(ctx, tx, bot); err != nil {
			return err
		}
		return b.restore(ctx, tx, bot)
	})
	if err != nil {
		return err
	}
	b.o.Metrics.AddBot(bot)
	b.mu.Lock()
	b.bots[bot], b.blocked[bot] = l.Epoch, core.TimeOf(l.Blocked)
	b.mu.Unlock()
	b.ring()
	return nil
}

// TakeOver leases the bots of this node and decides on rows that an earlier
// process has left in sending: their outcome is unknown, unless sending again is
// safe (an edit; Sender.Repeats). Call it once, in the transaction that takes
// over the lanes, before Open.
func (b *Outbox) TakeOver(ctx context.Context, tx *store.Tx, bots []string, sender Sender) error {
	held, blocked := map[string]int64{}, map[string]time.Time{}
	for _, bot := range bots {
		l, err := b.lease(ctx, tx, bot)
		if err != nil {
			return err
		}
		held[bot], blocked[bot] = l.Epoch, core.TimeOf(l.Blocked)
	}
	b.mu.Lock()
	b.sender, b.bots, b.blocked = sender, held, blocked
	b.mu.Unlock()
	tx.OnCommit(b.o.Flight.Begin) // what it has found is decided on
	if err := b.failUnconfigured(ctx, tx, held); err != nil {
		return err
	}
	return b.takeOverSends(ctx, tx, held)
}

// takeOverSends decides on rows found in sending: first by what is recorded of them. Of
// the others, an edit can be repeated, and a message that the platform recognises is
// shown once. Any other row may have arrived, so the operator decides; this includes
// messages for a single user, which are sent without a nonce.
func (b *Outbox) takeOverSends(ctx context.Context, tx *store.Tx, held map[string]int64) error {
	if err := b.takeOverRecorded(ctx, tx, held); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE outbox SET state = 'ready' WHERE state IN ('ready', 'sending') AND state = 'sending' AND replaces <> ''`); err != nil {
		return err
	}
	for bot := range held {
		since := core.Stamp(tx.Time().Add(-b.sender.Repeats(bot)))
		if _, err := tx.Exec(ctx, `UPDATE outbox SET state = 'ready', error = $1 WHERE state IN ('ready', 'sending') AND state = 'sending'
			AND bot = $2 AND sent_at > $3 AND sent_at <= $4 AND body NOT LIKE '%"aside":"%'`, askedAgain, bot, since, core.Stamp(tx.Time().Add(slack))); err != nil {
			return err
		}
	}
	var unsure []unsureRow
	if err := tx.Select(ctx, &unsure, unsureColumns+` WHERE state IN ('ready', 'sending') AND state = 'sending'`); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE outbox SET state = 'unknown', error = 'the gateway ended while this was being sent' WHERE state IN ('ready', 'sending') AND state = 'sending'`); err != nil {
		return err
	}
	core.Sort(unsure, func(a, b unsureRow) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, r := range unsure {
		if err := b.tell(ctx, tx, &r); err != nil {
			return err
		}
	}
	return nil
}

// slack is by how much the clock of the gateway before may have been ahead.
const slack = 5 * time.Second

// takeOverRecorded decides on the rows of which the earlier process has recorded that
// they never left, which are ready again as they were, or that the platform has
// accepted them. held are the bots with their new epochs: a record of another
// epoch than the one before is not of the last process that could send.
func (b *Outbox) takeOverRecorded(ctx context.Context, tx *store.Tx, held map[string]int64) error {
	var rows []struct {
		Seq      int64  `db:"seq"`
		Bot      string `db:"bot"`
		Attempts int    `db:"attempts"`
	}
	if err := tx.Select(ctx, &rows, `SELECT seq, bot, attempts FROM outbox WHERE state IN ('ready', 'sending') AND state = 'sending'`); err != nil {
		return err
	}
	count := map[flight.Phase]int{}
	for _, r := range rows {
		epoch, ours := held[r.Bot]
		if !ours {
			continue
		}
		found := b.o.Flight.Found(flight.Mark{Seq: r.Seq, Epoch: epoch - 1, Attempt: r.Attempts})
		count[found.Phase]++
		var err error
		switch found.Phase {
		case flight.Marked:
			_, err = tx.Exec(ctx, `UPDATE outbox SET state = 'ready', attempts = attempts - 1 WHERE seq = $1`, r.Seq)
		case flight.Answered:
			_, err = tx.Exec(ctx, `UPDATE outbox SET state = 'sent', platform_message_id = $1, sent_at = $2, error = '' WHERE seq = $3`, found.MessageID, core.Stamp(tx.Time()), r.Seq)
		}
		if err != nil {
			return err
		}
	}
	if len(rows) > 0 {
		b.o.Log.InfoContext(ctx, "messages were being sent when the gateway ended", "n", len(rows), "not_begun", count[flight.Marked], "accepted", count[flight.Answered])
	}
	return nil
}

// leased is what the lease of a bot says.
type leased struct {
	Epoch   int64  `db:"epoch"`
	Blocked string `db:"blocked_until"` // the bot must write to no chat before
}

// lease takes the lease of one bot, under a new epoch.
func (b *Outbox) lease(ctx context.Context, tx *store.Tx, bot string) (l leased, err error) {
	err = tx.Get(ctx, &l, `INSERT INTO lease (name, owner, epoch, until) VALUES ($1, $2, 1, $3)
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, epoch = lease.epoch + 1, until = excluded.until
		RETURNING epoch, blocked_until`, "bot:"+bot, b.o.Node, core.Stamp(tx.Time().Add(leaseTime)))
	return l, err
}

// block stores that the platform takes nothing of a bot for a time: who holds its lease then, also
// after a restart, waits as long, or for as long as an earlier answer to another send has asked.
func (b *Outbox) block(ctx context.Context, tx *store.Tx, bot string, wait time.Duration) error {
	now, until := tx.Time(), tx.Time().Add(wait)
	tx.OnCommit(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if _, ours := b.bots[bot]; ours && (b.blocked[bot].Before(until) || b.blocked[bot].After(now.Add(maxPause))) {
			b.blocked[bot] = until
		}
	})
	_, err := tx.Exec(ctx, `UPDATE lease SET blocked_until = $1 WHERE name = $2 AND (blocked_until < $1 OR blocked_until > $3)`, core.Stamp(until), "bot:"+bot, core.Stamp(now.Add(maxPause)))
	return err
}

// wait returns how long to wait before the next send to the chat. The caller does not hold b.mu.
func (b *Outbox) wait(to core.Address) time.Duration {
	b.mu.Lock()
	sender, blocked := b.sender, b.blocked[to.Bot].Sub(b.o.Clock.Now())
	b.mu.Unlock()
	if blocked > maxPause { // the clock was set back
		blocked = 0
	}
	if sender == nil { // nothing is sent yet
		return 0
	}
	return max(sender.Wait(to), blocked)
}
