package queue

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
)

// HeardFrom is when a bot last got a message of somebody, by the platform's
// time, as far back as messages are remembered; the zero time for never.
func (q *Queue) HeardFrom(ctx context.Context, bot, sender string) (time.Time, error) {
	var at string
	err := q.db.Get(ctx, &at, `SELECT coalesce(max(sent_at), '') FROM inbox WHERE bot = $1 AND sender = $2 AND kind = 'message' AND counts = 1`, bot, sender)
	if err != nil {
		return time.Time{}, fmt.Errorf("last message of a person: %w", err)
	}
	return core.ParseStamp(at)
}
