package unasked

import (
	"context"
	"errors"

	"gatehouse/core"
	"gatehouse/core/store"
)

// TellOwner sends a text of the gateway itself to the owner, through the first of the bots
// that the owner has written to; through none if there is no such bot. key is the message's
// in the outbox. The transaction that stores
// the message calls told.
func (m Mail) TellOwner(ctx context.Context, bots []string, key, text string, told func(context.Context, *store.Tx) error) error {
	return m.DB.Tx(ctx, func(tx *store.Tx) error {
		for _, bot := range bots {
			owner, ok, err := m.People.OwnerChat(ctx, tx, bot)
			if err != nil {
				return err
			}
			if ok {
				return errors.Join(told(ctx, tx), m.Outbox.Post(ctx, tx, core.Reply{Address: owner, Key: key, Parts: m.Render(owner, text)}))
			}
		}
		return nil
	})
}
