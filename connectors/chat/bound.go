package chat

import (
	"context"

	"gatehouse/core/command"
	"gatehouse/core/permission/raise"
	"gatehouse/core/session"
	"gatehouse/core/store"
)

// bound is the conversation that a chat has.
type bound struct {
	sessions *session.Store
	raises   *raise.Store
	platform func(bot string) string
}

// ref returns the chat of r as the sessions know it.
func (b *bound) ref(r command.Request) session.Ref {
	return session.Ref{Address: r.In.Address, User: r.User, Trust: r.Trust, PlaceName: r.In.Where(), Source: b.platform(r.In.Bot)}
}

// resolve returns the conversation of the chat. It begins one if there is none.
func (b *bound) resolve(ctx context.Context, tx *store.Tx, r command.Request) (session.Session, error) {
	ref := b.ref(r)
	ref.Admin = r.Manages()
	s, _, _, err := b.sessions.Resolve(ctx, tx, ref)
	return s, err
}

// dropRaises ends the raised trust of a conversation that the chat leaves. A
// group has none.
func (b *bound) dropRaises(ctx context.Context, tx *store.Tx, r command.Request, session string) error {
	if r.In.Group() {
		return nil
	}
	_, err := b.raises.Drop(ctx, tx, session, r.By())
	return err
}
