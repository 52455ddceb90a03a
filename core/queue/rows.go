package queue

import (
	"context"
	"errors"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Retry returns a dead letter to its lane. It returns NotFound without such a row
// and Invalid for an update that could not be decoded, which would fail again.
func (q *Queue) Retry(ctx context.Context, seq int64, by core.Actor) error {
	return q.tx(ctx, &unit{}, func(tx *store.Tx) error {
		in, err := q.deadRow(ctx, tx, seq)
		if err != nil {
			return err
		}
		if in.Malformed != "" {
			return core.Errorf(core.Invalid, "this update could not be decoded; trying again would fail the same way: dismiss it")
		}
		lane, err := q.o.Lane(ctx, tx, in)
		if err != nil {
			return err
		}
		// Messages that were one turn are that turn again: one by one, the second
		// would meet the answer of the first under their one run.
		if _, err := tx.Exec(ctx, `UPDATE inbox SET state = 'ready', attempts = 0, error = '', due = '', lane = $1
			WHERE seq = $2 OR state = 'dead' AND run <> '' AND run = (SELECT run FROM inbox WHERE seq = $2)`, lane, seq); err != nil {
			return err
		}
		tx.OnCommit(func() { q.o.Ring("queue") })
		if err := store.Audit(ctx, tx, by, "queue.retry", "", map[string]any{"row": seq}); err != nil {
			return err
		}
		return q.wake(ctx, tx, map[string]bool{lane: false})
	})
}

// Dismiss refuses a dead letter for good. It returns NotFound without such a row.
func (q *Queue) Dismiss(ctx context.Context, seq int64, by core.Actor) error {
	return q.db.Tx(ctx, func(tx *store.Tx) error {
		if _, err := q.deadRow(ctx, tx, seq); err != nil {
			return err
		}
		if err := q.refuse(ctx, tx, seq); err != nil {
			return err
		}
		tx.OnCommit(func() { q.o.Ring("queue") })
		return store.Audit(ctx, tx, by, "queue.dismiss", "", map[string]any{"row": seq})
	})
}

func (q *Queue) deadRow(ctx context.Context, tx *store.Tx, seq int64) (*core.Inbound, error) {
	var r inboxRow
	err := tx.Get(ctx, &r, inboxColumns+` WHERE seq = $1 AND state = 'dead'`, seq)
	if errors.Is(err, store.ErrNoRows) {
		if err := store.Already(ctx, tx, "row", seq, map[string]string{"queue.retry": "tried again", "queue.dismiss": "dismissed"}); err != nil {
			return nil, err
		}
		return nil, core.Errorf(core.NotFound, "no dead message has the number %d: it may have been settled already", seq)
	}
	if err != nil {
		return nil, err
	}
	in, err := r.inbound()
	if err != nil {
		in.Malformed = err.Error()
	}
	return &in, nil
}

// pruneBatch bounds one deletion, so that upkeep never holds the writer for long.
const pruneBatch = 1000

// Prune deletes finished updates and sent replies older than 48 h, and all but
// the newest 10,000 dead letters. It returns how many rows it deleted.
func (q *Queue) Prune(ctx context.Context) (int, error) {
	total := 0
	before := core.Stamp(q.o.Clock.Now().Add(-keepFinished))
	for _, query := range []string{
		`DELETE FROM inbox WHERE seq IN (SELECT seq FROM inbox WHERE state IN ('done', 'refused') AND received_at < $1 LIMIT $2)`,
		`DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox WHERE state = 'sent' AND sent_at < $1 LIMIT $2)`,
		`DELETE FROM inbox WHERE seq IN (SELECT seq FROM inbox WHERE state = 'dead' AND $1 <> '' AND seq <= (SELECT seq FROM inbox WHERE state = 'dead' ORDER BY seq DESC LIMIT 1 OFFSET 10000) LIMIT $2)`,
	} {
		for {
			var n int64
			err := q.db.Tx(ctx, func(tx *store.Tx) (err error) {
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
