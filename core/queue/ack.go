package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/store"
)

// A Result is what a turn leaves behind.
type Result struct {
	Replies []core.Reply
	// Write is called in Ack's transaction, after the fence has held: session
	// row, run row, usage, the terminal event.
	Write func(ctx context.Context, tx *store.Tx) error
	// Anew makes the first reply a new message, which notifies its readers, and deletes
	// the preview behind it; without Anew the reply edits the preview.
	Anew bool
	// Refused marks the rows refused instead of done.
	Refused bool
}

// Ack settles t. One transaction checks the epoch, finishes the rows, writes r
// and releases the lane; ErrFenced means that nothing was written. Publish the
// terminal event only after Ack has returned nil.
func (q *Queue) Ack(ctx context.Context, t *Turn, r Result) error {
	state := "done"
	if r.Refused {
		state = "refused"
	}
	u := &unit{}
	preview := t.Preview()
	return q.settle(ctx, t, u, func(tx *store.Tx) error {
		for _, seq := range t.seqs {
			if _, err := tx.Exec(ctx, `UPDATE inbox SET state = $1, payload = NULL WHERE seq = $2`, state, seq); err != nil {
				return err
			}
		}
		if err := q.release(ctx, tx, t, time.Time{}); err != nil { // the fence: behind it the turn is ours
			return err
		}
		if r.Write != nil {
			if err := r.Write(ctx, tx); err != nil {
				return err
			}
		}
		for i := range r.Replies {
			reply := r.Replies[i]
			edits := i == 0 && preview != "" && reply.Replaces == ""
			if edits && !r.Anew {
				reply.Replaces = preview
			}
			if err := q.outbox.PostNow(ctx, tx, reply, &u.sends); err != nil {
				return err
			}
			if edits && r.Anew {
				gone := core.Reply{Address: reply.Address, Key: outbox.PreviewKey + reply.Key, Replaces: preview, Parts: []core.Part{{}}}
				if err := q.outbox.PostNow(ctx, tx, gone, &u.sends); err != nil {
					return err
				}
			}
		}
		if preview != "" {
			return clearPreview(ctx, tx, t.Lane)
		}
		return nil
	})
}

// Fail returns t to its lane, to be tried again after 1, 2, 4 or 8 s. After
// MaxAttempts the rows become dead letters and the chat receives a notice.
func (q *Queue) Fail(ctx context.Context, t *Turn, why error) error {
	if errors.Is(why, ErrFenced) {
		t.settled = true
		q.slots.leave(t)
		q.slots.end(t)
		return nil
	}
	return q.settle(ctx, t, &unit{}, func(tx *store.Tx) error {
		if err := q.mine(ctx, tx, t); err != nil {
			return err
		}
		if t.Attempt >= MaxAttempts {
			if err := q.deadLetter(ctx, tx, t.seqs, why.Error()); err != nil {
				return err
			}
			if err := q.notifyGaveUp(ctx, tx, t.First(), t.Seq(), t.Preview()); err != nil {
				return err
			}
			return q.release(ctx, tx, t, time.Time{})
		}
		q.o.Log.WarnContext(ctx, "turn failed, will be tried again", "run", t.Run, "attempt", t.Attempt, "err", why)
		return q.release(ctx, tx, t, tx.Time().Add(time.Second<<(t.Attempt-1)))
	})
}

// GiveBack returns t to its lane without counting the attempt (graceful stop):
// the next claim may take it at once.
func (q *Queue) GiveBack(ctx context.Context, t *Turn) error {
	return q.settle(ctx, t, &unit{}, func(tx *store.Tx) error {
		for _, seq := range t.seqs {
			if _, err := tx.Exec(ctx, `UPDATE inbox SET attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END WHERE seq = $1`, seq); err != nil {
				return err
			}
		}
		return q.release(ctx, tx, t, time.Time{})
	})
}

// mine returns ErrFenced when the lane of t has another owner.
func (q *Queue) mine(ctx context.Context, tx *store.Tx, t *Turn) error {
	var mine bool
	err := tx.Get(ctx, &mine, `SELECT EXISTS (SELECT 1 FROM lane WHERE key = $1 AND epoch = $2 AND owner = $3)`, t.Lane, t.Epoch, q.o.Node)
	if err == nil && !mine {
		return ErrFenced
	}
	return err
}

// Holds reports whether t's lane is still its own: on a server another gateway may have taken this
// one's place, and the turn anew.
func (q *Queue) Holds(ctx context.Context, t *Turn) bool {
	if !store.OnServer(q.db.Path()) {
		return true
	}
	var held bool
	err := q.db.Get(ctx, &held, `SELECT EXISTS (SELECT 1 FROM lane WHERE key = $1 AND epoch = $2 AND owner = $3)`, t.Lane, t.Epoch, q.o.Node)
	return err == nil && held
}

// settle frees the slot of t and runs f, which checks the fence, in a transaction.
func (q *Queue) settle(ctx context.Context, t *Turn, u *unit, f func(tx *store.Tx) error) error {
	ctx = context.WithoutCancel(ctx)
	q.slots.leave(t)
	err := q.tx(ctx, u, f)
	if err == nil || errors.Is(err, ErrFenced) {
		t.settled = true
		q.slots.end(t)
	}
	return err
}

// SetPreview stores the platform id of the preview in the chat, so that the
// final reply or the next attempt edits it. It returns ErrFenced when the lane
// has another owner.
func (q *Queue) SetPreview(ctx context.Context, t *Turn, id string) error {
	err := q.db.Tx(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE lane SET preview = $1 WHERE key = $2 AND epoch = $3 AND owner = $4`, id, t.Lane, t.Epoch, q.o.Node)
		if err == nil && n == 0 {
			return ErrFenced
		}
		return err
	})
	if err == nil {
		t.mu.Lock()
		t.preview = id
		t.mu.Unlock()
	}
	return err
}

// notifyGaveUp posts a notice that a message was given up, in place of the
// preview. It is posted once, best effort; with an error the transaction has ended.
func (q *Queue) notifyGaveUp(ctx context.Context, tx *store.Tx, in *core.Inbound, seq int64, preview string) error {
	if core.OfSession(in.Bot) {
		return nil
	}
	notice := core.Reply{Address: in.Address, Key: fmt.Sprintf("notice:dead:%d", seq), Replaces: preview, Parts: []core.Part{{Text: q.o.Texts.GaveUp}}}
	failed, err := tx.Try(ctx, func() error { return q.outbox.Post(ctx, tx, notice) })
	if failed != nil && core.KindOf(failed) != core.Conflict {
		q.o.Log.ErrorContext(ctx, "notice of a given up message", "row", seq, "err", failed)
	}
	return err
}

// TakeOver frees the lanes of an earlier process of this node and leases every
// bot, for which sender sends from now on. turns decides about all updates from now on; Outbox.TakeOver decides on the rows
// that were being sent. Call it once, before the first Put.
func (q *Queue) TakeOver(ctx context.Context, bots []string, turns Turns, sender outbox.Sender) error {
	q.turns = turns
	return q.db.Tx(ctx, func(tx *store.Tx) error {
		now := core.Stamp(tx.Time())
		if _, err := tx.Exec(ctx, `UPDATE lane SET owner = '', pending = 1, not_before = $1 WHERE owner <> ''`, now); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE lane SET not_before = $1 WHERE pending = 1 AND owner = '' AND control IN (0, 1) AND not_before > $2`, now, now); err != nil {
			return err
		}
		// The HTTP client is gone: a request that has not begun counts as
		// interrupted, so that its run ends instead of answering no one.
		if _, err := tx.Exec(ctx, `UPDATE inbox SET attempts = 1 WHERE state = 'ready' AND bot = $1 AND attempts = 0`, core.APIBot); err != nil {
			return err
		}
		if err := q.moved.Load(ctx, tx); err != nil {
			return err
		}
		return q.outbox.TakeOver(ctx, tx, bots, sender)
	})
}

// renew extends the leases of this node on its lanes. It writes nothing while no
// turn runs.
func (q *Queue) renew(ctx context.Context) error {
	if q.Running() == 0 {
		return nil
	}
	return q.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE lane SET lease_until = $1 WHERE owner <> '' AND owner = $2`, core.Stamp(tx.Time().Add(leaseTime)), q.o.Node)
		return err
	})
}
