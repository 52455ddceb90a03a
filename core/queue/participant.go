package queue

import (
	"context"
	"errors"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Tables forgets, moves and prunes what the queue's tables keep.
type Tables struct{ Queue *Queue }

// Tables returns the tables that keep data of users.
func (Tables) Tables() []string { return []string{"inbox", "outbox", "lane"} }

// Sweep removes the user's messages in short transactions and returns how far
// it read each table. note is called in each with the files that came with them.
func (t Tables) Sweep(ctx context.Context, p core.Person, note func(tx *store.Tx, files []string) error) (map[string]int64, error) {
	s, err := t.Queue.Sweep(ctx, p, note)
	return map[string]int64{"inbox": s.inbox, "outbox": s.outbox}, err
}

// Forget removes the replies to what was removed, and at last the messages that
// Sweep did not read.
func (t Tables) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if !r.Last {
		return errors.Join(t.Queue.ForgetRuns(ctx, tx, r.Runs, r.Asks), t.Queue.ForgetLanes(ctx, tx, r.Sessions))
	}
	files, err := t.Queue.Forget(ctx, tx, r.Person, r.Runs, r.Asks, Swept{inbox: r.Swept["inbox"], outbox: r.Swept["outbox"]})
	r.Files = append(r.Files, files...)
	return err
}

// Move rewrites a chat's id.
func (t Tables) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	return t.Queue.Move(ctx, tx, bot, from, to)
}

// Chores returns the tables' housekeeping.
func (t Tables) Chores() []core.Chore {
	return []core.Chore{{Name: "queue", Every: 10 * time.Minute, Run: t.Queue.Prune}}
}
