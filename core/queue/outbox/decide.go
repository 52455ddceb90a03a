package outbox

import (
	"context"
	"errors"

	"gatehouse/core"
	"gatehouse/core/store"
)

// SendAgain sends a failed reply, or one with an unknown outcome, again and
// without a mark. It returns NotFound when the reply is neither.
func (b *Outbox) SendAgain(ctx context.Context, seq int64, by core.Actor) error {
	return b.decideSend(ctx, seq, by, "queue.send_again", `UPDATE outbox SET state = 'ready', error = '', not_before = '', declined_at = '', replaces = '' WHERE seq = $1`)
}

// Settle marks a failed reply, or one with an unknown outcome, as sent.
func (b *Outbox) Settle(ctx context.Context, seq int64, by core.Actor) error {
	return b.decideSend(ctx, seq, by, "queue.settle", `UPDATE outbox SET state = 'sent', sent_at = created_at WHERE seq = $1`)
}

func (b *Outbox) decideSend(ctx context.Context, seq int64, by core.Actor, action, query string) error {
	return b.db.Tx(ctx, func(tx *store.Tx) error {
		var r unsureRow
		err := tx.Get(ctx, &r, unsureColumns+` WHERE seq = $1 AND state IN ('unknown', 'failed')`, seq)
		if errors.Is(err, store.ErrNoRows) {
			if err := store.Already(ctx, tx, "row", seq, map[string]string{"queue.send_again": "sent again", "queue.settle": "settled"}); err != nil {
				return err
			}
			return core.Errorf(core.NotFound, "no unsettled reply has the number %d: it may have been settled already", seq)
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, query, seq); err != nil {
			return err
		}
		if err := b.resolve(ctx, tx, &r, action == "queue.send_again"); err != nil {
			return err
		}
		tx.OnCommit(func() { b.wakeChat(chatKey{r.Bot, r.Chat}); b.o.Ring(core.TopicQueue) })
		return store.Audit(ctx, tx, by, action, "", map[string]any{"row": seq})
	})
}
