package outbox

import (
	"cmp"
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
	none := core.Errorf(core.NotFound, "no unsettled reply has the number %d: it may have been settled already", seq)
	return b.decide(ctx, seq, by, action, none, func(tx *store.Tx) (chatKey, error) {
		var r unsureRow
		if err := tx.Get(ctx, &r, unsureColumns+` WHERE seq = $1 AND state IN ('unknown', 'failed')`, seq); err != nil {
			return chatKey{}, err
		}
		if _, err := tx.Exec(ctx, query, seq); err != nil {
			return chatKey{}, err
		}
		return chatKey{r.Bot, r.Chat}, b.resolve(ctx, tx, &r, action == "queue.send_again")
	})
}

// decisions has the verb of each decision, for who comes second.
var decisions = map[string]string{"queue.send_again": "sent again", "queue.settle": "settled", "queue.give_up": "given up"}

// decide runs act, which returns the chat of the reply, or store.ErrNoRows when there is nothing to decide on: then
// the error says who has decided before, or is none.
func (b *Outbox) decide(ctx context.Context, seq int64, by core.Actor, action string, none error, act func(*store.Tx) (chatKey, error)) error {
	return b.db.Tx(ctx, func(tx *store.Tx) error {
		key, err := act(tx)
		if errors.Is(err, store.ErrNoRows) {
			return cmp.Or(store.Already(ctx, tx, "row", seq, decisions), none)
		}
		if err != nil {
			return err
		}
		tx.OnCommit(func() { b.wakeChat(key); b.o.Ring(core.TopicQueue) })
		return store.Audit(ctx, tx, by, action, "", map[string]any{"row": seq})
	})
}
