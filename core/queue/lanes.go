package queue

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Held reports whether a turn of the lane is claimed.
func (q *Queue) Held(ctx context.Context, tx *store.Tx, lane string) (held bool, err error) {
	err = tx.Get(ctx, &held, `SELECT EXISTS (SELECT 1 FROM lane WHERE key = $1 AND owner <> '')`, lane)
	return held, err
}

// Relane moves the waiting HTTP requests of a session from one lane to another,
// after the session was bound to another chat or to none. No turn of either lane
// may run for the session.
func (q *Queue) Relane(ctx context.Context, tx *store.Tx, session, from, to string) error {
	if from == to {
		return nil
	}
	n, err := tx.Exec(ctx, `UPDATE inbox SET lane = $1 WHERE lane = $2 AND state IN ('ready', 'limited') AND bot IN ($3, $4) AND chat = $5`, to, from, core.APIBot, core.ScheduleBot, session)
	if err != nil {
		return fmt.Errorf("move waiting requests: %w", err)
	}
	if n == 0 {
		return nil
	}
	tx.OnCommit(q.ring)
	return wake(ctx, tx, map[string]bool{to: false})
}
