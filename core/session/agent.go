package session

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// SetAgent has the conversation of a chat answered by another agent. Conflict
// while the chat has no conversation. Whether there is such an agent, and who
// may choose it, is the caller's to know.
func (s *Store) SetAgent(ctx context.Context, tx *store.Tx, addr core.Address, name string) error {
	var id string
	err := tx.Get(ctx, &id, `UPDATE sessions SET agent_type = $3 WHERE id = (SELECT session_id FROM chats WHERE bot = $1 AND chat = $2) RETURNING id`, addr.Bot, addr.Chat, name)
	if errors.Is(err, store.ErrNoRows) {
		return texts.Error(core.Conflict, "no_conversation_yet")
	}
	if err != nil {
		return fmt.Errorf("agent of session: %w", err)
	}
	return s.keepCurrent(ctx, tx, id)
}
