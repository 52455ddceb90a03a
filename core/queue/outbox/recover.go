package outbox

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Recover makes replies ready again that are marked sending and that nobody sends: the
// connection to a server was lost during the commit of the mark, which was kept. They have
// never left. Call it now and then while the outbox is open; it writes only when there are
// some.
func (b *Outbox) Recover(ctx context.Context) error {
	found, err := b.orphans(ctx, b.db)
	if err != nil || len(found) == 0 {
		return err
	}
	return b.db.Tx(ctx, func(tx *store.Tx) error {
		found, err := b.orphans(ctx, tx) // between transactions nobody is about to send one
		for _, r := range found {
			if _, err := tx.Exec(ctx, `UPDATE outbox SET state = 'ready', attempts = attempts - 1 WHERE seq = $1`, r.Seq); err != nil {
				return err
			}
			tx.OnCommit(func() {
				b.o.Log.WarnContext(ctx, "a reply was marked by a commit whose answer was lost: it is sent now", "row", r.Seq)
				b.wakeChat(chatKey{r.Bot, r.Chat})
			})
		}
		return err
	})
}

// orphans returns the rows in sending whose chat nobody works on.
func (b *Outbox) orphans(ctx context.Context, q store.Queryer) (found []core.Outgoing, err error) {
	var rows []struct {
		Seq  int64  `db:"seq"`
		Bot  string `db:"bot"`
		Chat string `db:"chat"`
	}
	if err := q.Select(ctx, &rows, `SELECT seq, bot, chat FROM outbox WHERE state IN ('ready', 'sending') AND state = 'sending'`); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range rows {
		_, busy := b.sending[chatKey{r.Bot, r.Chat}]
		_, ours := b.bots[r.Bot]
		if !busy && ours && b.open {
			found = append(found, core.Outgoing{Seq: r.Seq, Address: core.Address{Bot: r.Bot, Chat: r.Chat}})
		}
	}
	return found, nil
}
