// Package maintenance changes the queue's tables outside of its work: it erases what
// they keep of a user, prunes what is finished, and makes a restored backup safe
// to serve.
package maintenance

import (
	"context"
	"errors"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Tables forgets, moves and prunes what the queue's tables keep.
type Tables struct {
	DB    *store.DB
	Clock core.Clock
	Queue Mover
}

// A Mover rewrites the id of a chat in the tables, and has the moved messages
// answered there; the queue is one.
type Mover interface {
	Move(ctx context.Context, tx *store.Tx, bot, from, to string) error
}

// Tables returns the tables that keep data of users.
func (Tables) Tables() []string { return []string{"inbox", "outbox", "lane"} }

// Sweep removes the user's messages in short transactions and returns how far
// it has read each table. It calls note in each transaction with the files of the
// removed messages.
func (t Tables) Sweep(ctx context.Context, p core.Person, note func(tx *store.Tx, files []string) error) (map[string]int64, error) {
	s, err := sweepTables(ctx, t.DB, p, note)
	return map[string]int64{"inbox": s.inbox, "outbox": s.outbox}, err
}

// Forget removes the replies to what was removed, and at last the messages that
// Sweep did not read.
func (t Tables) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if !r.Last {
		return errors.Join(forgetRuns(ctx, tx, r.Runs, r.Asks), forgetLanes(ctx, tx, r.Sessions))
	}
	files, err := forget(ctx, tx, r.Person, r.Runs, r.Asks, swept{inbox: r.Swept["inbox"], outbox: r.Swept["outbox"]})
	r.Files = append(r.Files, files...)
	return err
}

// Move rewrites a chat's id.
func (t Tables) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	return t.Queue.Move(ctx, tx, bot, from, to)
}

// Chores returns the tables' housekeeping.
func (t Tables) Chores() []core.Chore {
	return []core.Chore{{Name: "queue", Every: 10 * time.Minute, Run: t.prune}, {Name: "lanes", Every: time.Hour, Run: t.pruneLanes}}
}

// keepFinished is how long a repeated update is recognised.
const keepFinished = 48 * time.Hour

// pruneBatch bounds one deletion, so that upkeep never holds the writer for long.
const pruneBatch = 1000

// prune deletes finished updates and sent replies older than 48 h, and all but
// the newest 10,000 dead letters and 10,000 replies that could not be sent or have an
// unknown outcome. It returns how many rows it deleted.
func (t Tables) prune(ctx context.Context) (int, error) {
	total := 0
	before := core.Stamp(t.Clock.Now().Add(-keepFinished))
	for _, query := range []string{
		`DELETE FROM inbox WHERE seq IN (SELECT seq FROM inbox WHERE state IN ('done', 'refused') AND received_at < $1 LIMIT $2)`,
		`DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox WHERE state = 'sent' AND sent_at < $1 LIMIT $2)`,
		`DELETE FROM inbox WHERE seq IN (SELECT seq FROM inbox WHERE state = 'dead' AND $1 <> '' AND seq <= (SELECT seq FROM inbox WHERE state = 'dead' ORDER BY seq DESC LIMIT 1 OFFSET 10000) LIMIT $2)`,
		`DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox WHERE state IN ('unknown', 'failed') AND $1 <> '' AND seq <= (SELECT seq FROM outbox WHERE state IN ('unknown', 'failed') ORDER BY seq DESC LIMIT 1 OFFSET 10000) LIMIT $2)`,
	} {
		for {
			var n int64
			err := t.DB.Tx(ctx, func(tx *store.Tx) (err error) {
				n, err = tx.Exec(ctx, query, before, pruneBatch)
				return err
			})
			if err != nil {
				return total, err
			}
			if total += int(n); n < pruneBatch {
				break
			}
		}
	}
	return total, nil
}
