package chat

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/permission/raise"
	"gatehouse/core/session"
	"gatehouse/core/store"
)

// Conversations finds conversations.
type Conversations interface {
	// Current returns the conversation that a chat has.
	Current(ctx context.Context, q store.Queryer, at core.Address) (session.Session, bool, error)
	// Own returns a user's conversation by its id or the beginning of it.
	Own(ctx context.Context, q store.Queryer, user int64, id string) (session.Session, error)
	// Bound returns the chat that has a conversation.
	Bound(ctx context.Context, q store.Queryer, id string) (core.Address, bool, error)
	List(ctx context.Context, f session.Filter) (page []session.Session, next string, err error)
}

// Bindings changes which conversation a chat has, and its agent.
type Bindings interface {
	// Continue gives the chat a new conversation that carries over another one.
	Continue(ctx context.Context, tx *store.Tx, ref session.Ref, from string) (session.Session, error)
	Rebind(ctx context.Context, tx *store.Tx, ref session.Ref, id string) error
	Unbind(ctx context.Context, tx *store.Tx, at core.Address) error
	SetAgent(ctx context.Context, tx *store.Tx, at core.Address, name string) error
}

// Resolver finds the conversation of a chat, or begins one.
type Resolver interface {
	Resolve(ctx context.Context, tx *store.Tx, ref session.Ref) (s session.Session, made bool, warnings []core.Warning, err error)
}

// Raises are the times of trust full that the operator confirms in the panel.
type Raises interface {
	Ask(ctx context.Context, tx *store.Tx, r raise.Raise, by core.Actor) error
	// Drop ends a session's raise, and reports whether there was one.
	Drop(ctx context.Context, tx *store.Tx, session string, by core.Actor) (bool, error)
	Held(ctx context.Context, q store.Queryer, at core.Address, session string, user int64) (raise.Raise, bool, error)
}

// bound is the conversation that a chat has.
type bound struct {
	sessions Conversations
	bindings Bindings
	resolver Resolver
	raises   Raises
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
	s, _, _, err := b.resolver.Resolve(ctx, tx, ref)
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
