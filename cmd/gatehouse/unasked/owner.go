package unasked

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/store"
)

// TellOwner sends a text of the gateway itself to the owner, through the first of the bots
// that the owner has written to; through none if there is no such bot. key is the message's
// in the outbox.
func (m Mail) TellOwner(ctx context.Context, bots []string, key, text string) error {
	return m.DB.Tx(ctx, func(tx *store.Tx) error {
		for _, bot := range bots {
			owners, err := m.People.OwnerChats(ctx, tx, bot)
			if err != nil {
				return err
			}
			if len(owners) > 0 {
				return m.Outbox.Post(ctx, tx, core.Reply{Address: owners[0], Key: key, Parts: m.Render(owners[0], text)})
			}
		}
		return nil
	})
}
