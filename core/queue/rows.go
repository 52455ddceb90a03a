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
		in, was, err := q.deadRow(ctx, tx, seq)
		if err != nil {
			return err
		}
		if in.Malformed != "" {
			return core.Errorf(core.Invalid, "this update could not be decoded; trying again would fail the same way: dismiss it")
		}
		if was == "" {
			if was, err = q.admitAgain(ctx, tx, in, seq); err != nil {
				return err
			}
		}
		lane, control, err := q.laneNow(ctx, tx, in, was)
		if err != nil {
			return err
		}
		// Messages that were one turn are that turn again: one by one, the second
		// would meet the answer of the first under their one run.
		if _, err := tx.Exec(ctx, `UPDATE inbox SET state = 'ready', attempts = 0, error = '', stopped = '', due = '', lane = $1
			WHERE seq = $2 OR state = 'dead' AND run <> '' AND run = (SELECT run FROM inbox WHERE seq = $2)`, lane, seq); err != nil {
			return err
		}
		tx.OnCommit(func() { q.o.Ring(core.TopicQueue) })
		if err := store.Audit(ctx, tx, by, "queue.retry", "", map[string]any{"row": seq}); err != nil {
			return err
		}
		return wake(ctx, tx, map[string]bool{lane: control})
	})
}

// laneNow returns the lane of a stored update that was in the lane was, and
// whether that passes by the chat's turns, as the one it was in did.
func (q *Queue) laneNow(ctx context.Context, tx *store.Tx, in *core.Inbound, was string) (lane string, control bool, err error) {
	lane, err = q.moved.Of(ctx, tx, in)
	end := core.LaneEnd(was)
	return lane + end, end != "", err
}

// admitAgain stamps a row that could not be stored as what it was (putGuarded) with the
// trust that its sender has now. It returns the end of its lane. What starts no turn is
// refused when it is claimed, as it has no trust.
func (q *Queue) admitAgain(ctx context.Context, tx *store.Tx, in *core.Inbound, seq int64) (end string, err error) {
	switch in.Kind {
	case core.KindEdit, core.KindReaction, core.KindService:
		return "", nil
	}
	a, err := q.turns.Claim(ctx, tx, in)
	if err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, `UPDATE inbox SET trust = $1 WHERE seq = $2`, a.Trust, seq); err != nil {
		return "", err
	}
	if in.Kind == core.KindAnswer || in.Kind == core.KindCallback || a.Control {
		return core.ControlLane, nil
	}
	return "", nil
}

// Dismiss refuses a dead letter for good. It returns NotFound without such a row.
func (q *Queue) Dismiss(ctx context.Context, seq int64, by core.Actor) error {
	return q.db.Tx(ctx, func(tx *store.Tx) error {
		if _, _, err := q.deadRow(ctx, tx, seq); err != nil {
			return err
		}
		if err := q.refuse(ctx, tx, seq); err != nil {
			return err
		}
		tx.OnCommit(func() { q.o.Ring(core.TopicQueue) })
		return store.Audit(ctx, tx, by, "queue.dismiss", "", map[string]any{"row": seq})
	})
}

// deadRow returns a dead letter and the lane it was in, or NotFound.
func (q *Queue) deadRow(ctx context.Context, tx *store.Tx, seq int64) (in *core.Inbound, lane string, err error) {
	var r inboxRow
	err = tx.Get(ctx, &r, inboxColumns+` WHERE seq = $1 AND state = 'dead'`, seq)
	if errors.Is(err, store.ErrNoRows) {
		if err := store.Already(ctx, tx, "row", seq, map[string]string{"queue.retry": "tried again", "queue.dismiss": "dismissed"}); err != nil {
			return nil, "", err
		}
		return nil, "", core.Errorf(core.NotFound, "no dead message has the number %d: it may have been settled already", seq)
	}
	if err != nil {
		return nil, "", err
	}
	was, err := r.inbound()
	if err != nil {
		was.Malformed = err.Error()
	}
	return &was, r.Lane, nil
}
