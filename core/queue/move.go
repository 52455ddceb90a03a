package queue

import (
	"context"

	"gatehouse/core/store"
)

// Move lets replies to a chat, and messages that are not answered yet, follow it to its new
// id (see moved.Lanes.Move). The present attempt at an answer goes on under the old id, and
// its replies follow when the platform reports the new id. Call it after the sessions' Move,
// which decides the line.
func (q *Queue) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	if from == to {
		return nil
	}
	if err := q.outbox.Move(ctx, tx, bot, from, to); err != nil {
		return err
	}
	lanes, err := q.moved.Move(ctx, tx, bot, from, to)
	if err != nil || len(lanes) == 0 {
		return err
	}
	tx.OnCommit(q.ring)
	return wake(ctx, tx, lanes)
}
