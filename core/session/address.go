package session

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Address returns the whole address of a chat that someone has talked in, with its
// thread and group; false of one that no one has.
func (s *Store) Address(ctx context.Context, q store.Queryer, bot, chat string) (core.Address, bool, error) {
	var c struct {
		Thread string `db:"thread"`
		Place  string `db:"place"`
	}
	to := core.Address{Bot: bot, Chat: chat}
	err := q.Get(ctx, &c, `SELECT thread, place FROM chats WHERE bot = $1 AND chat = $2`, bot, chat)
	if errors.Is(err, store.ErrNoRows) {
		return to, false, nil
	}
	if err != nil {
		return to, false, fmt.Errorf("address of a chat: %w", err)
	}
	to.Thread, to.Place = c.Thread, c.Place
	return to, true, nil
}
