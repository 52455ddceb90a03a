// Package ask shows questions and approvals in chat: their text, their buttons,
// what their buttons do, and what replaces them once they are decided.
package ask

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Mail posts messages to chats within a transaction; the queue is one.
type Mail interface {
	// Post returns a Conflict if the reply's key and part are taken.
	Post(ctx context.Context, tx *store.Tx, r core.Reply) error
	// Posted returns the replies, without parts, with keys that begin with prefix.
	Posted(ctx context.Context, tx *store.Tx, prefix string) ([]core.Reply, error)
}

// People knows the users of the bots.
type People interface {
	// OwnerChats returns the direct chats of the owner and the admins with a bot.
	OwnerChats(ctx context.Context, q store.Queryer, bot string) ([]core.Address, error)
	// Name returns the display name of a user.
	Name(ctx context.Context, q store.Queryer, user int64) (string, error)
}

// replace edits the first message of the reply under key to text, without
// buttons. An edit that was posted before stays.
func replace(ctx context.Context, tx *store.Tx, mail Mail, to core.Address, key, text string) error {
	return postOnce(ctx, tx, mail, core.Reply{Address: to, Key: key, First: 1, Replaces: "@" + key + "/0", Parts: []core.Part{{Text: text}}})
}

// postOnce posts a reply unless its key and part are taken.
func postOnce(ctx context.Context, tx *store.Tx, mail Mail, r core.Reply) error {
	err := mail.Post(ctx, tx, r)
	if core.KindOf(err) == core.Conflict {
		return nil
	}
	return err
}
